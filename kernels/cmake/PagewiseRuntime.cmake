# The library that serves OpenMP's threads.
#
# runtime=compiler is the one that the compiler links by itself. LLVM's has the entries that GCC's code calls, too: with
# runtime=libomp the same objects are linked with it. (Clang and flang make no code for libgomp.)
set(PAGEWISE_RUNTIME compiler CACHE STRING "Library of OpenMP's threads: compiler (its own), libomp (LLVM's, for GCC's code)")
if(NOT PAGEWISE_RUNTIME MATCHES "^(compiler|libomp)$")
    message(FATAL_ERROR "PAGEWISE_RUNTIME=${PAGEWISE_RUNTIME}: compiler or libomp is wanted")
endif()

# As builds tell it; the compiler's own is not told.
set(PAGEWISE_OTHER_RUNTIME "")
if(PAGEWISE_RUNTIME STREQUAL "libomp")
    if(NOT PAGEWISE_OPENMP OR NOT CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
        message(FATAL_ERROR "PAGEWISE_RUNTIME=libomp is for GCC's code with OpenMP; LLVM has it anyway: PAGEWISE_RUNTIME=compiler")
    endif()
    find_library(PAGEWISE_LIBRARY_omp omp)
    mark_as_advanced(PAGEWISE_LIBRARY_omp)
    if(NOT PAGEWISE_LIBRARY_omp)
        message(FATAL_ERROR "PAGEWISE_RUNTIME=libomp: there is no libomp here; install LLVM's OpenMP (libomp-dev), or name its "
                            "place in CMAKE_PREFIX_PATH"
        )
    endif()
    # What CMake would look for by itself, it takes as given then.
    set(OpenMP_gomp_LIBRARY ${PAGEWISE_LIBRARY_omp} CACHE FILEPATH "In place of GCC's own" FORCE)
    set(PAGEWISE_OTHER_RUNTIME libomp)
endif()

# Name of the library that programs are linked with, empty where the compiler does not tell: what runs is held against it.
set(PAGEWISE_RUNTIME_NAME "")
if(PAGEWISE_OPENMP)
    find_package(OpenMP REQUIRED COMPONENTS Fortran)
    foreach(_file ${OpenMP_Fortran_LIBRARIES})
        file(REAL_PATH ${_file} _file)
        get_filename_component(_stem ${_file} NAME_WE)
        if(_stem MATCHES "omp|craymp")
            set(PAGEWISE_RUNTIME_NAME ${_stem})
            break()
        endif()
    endforeach()
endif()
