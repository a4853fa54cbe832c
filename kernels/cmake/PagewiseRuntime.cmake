# The OpenMP runtime library.
#
# runtime=compiler is the one that the compiler links by default. LLVM's also provides the entry points of GCC's code: with
# runtime=libomp the same objects are linked with it. (Clang and flang generate no code for libgomp.)
# runtime=fjomplib is Fujitsu's own library for A64FX, which its compiler links on request instead of its libomp. It serves Fortran
# and C in the classic mode, not C of the clang mode (A64FX microarchitecture guide, OpenMP libraries). Tested by stand-ins only.
set(PAGEWISE_RUNTIME compiler
    CACHE STRING "OpenMP runtime: compiler (its default), libomp (LLVM's, for GCC's code), fjomplib (Fujitsu's, A64FX)"
)
if(NOT PAGEWISE_RUNTIME MATCHES "^(compiler|libomp|fjomplib)$")
    message(FATAL_ERROR "PAGEWISE_RUNTIME=${PAGEWISE_RUNTIME}: choose compiler, libomp or fjomplib")
endif()

# As builds report it; the compiler's default is not reported.
string(REGEX REPLACE "^compiler$" "" PAGEWISE_OTHER_RUNTIME ${PAGEWISE_RUNTIME})
if(PAGEWISE_RUNTIME STREQUAL "libomp")
    if(NOT PAGEWISE_OPENMP OR NOT CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
        message(FATAL_ERROR "PAGEWISE_RUNTIME=libomp needs GCC with OpenMP; LLVM uses it by default: set PAGEWISE_RUNTIME=compiler")
    endif()
    find_library(PAGEWISE_LIBRARY_omp omp)
    mark_as_advanced(PAGEWISE_LIBRARY_omp)
    if(NOT PAGEWISE_LIBRARY_omp)
        message(FATAL_ERROR "PAGEWISE_RUNTIME=libomp: libomp is missing; install LLVM's OpenMP (libomp-dev), or add its "
                            "folder to CMAKE_PREFIX_PATH"
        )
    endif()
    # Preset what CMake would search for.
    set(OpenMP_gomp_LIBRARY ${PAGEWISE_LIBRARY_omp} CACHE FILEPATH "Instead of GCC's" FORCE)
endif()
if(PAGEWISE_RUNTIME STREQUAL "fjomplib")
    if(NOT PAGEWISE_OPENMP OR NOT CMAKE_Fortran_COMPILER_ID STREQUAL "Fujitsu")
        message(FATAL_ERROR "PAGEWISE_RUNTIME=fjomplib needs Fujitsu's compiler with OpenMP; set PAGEWISE_RUNTIME=compiler")
    endif()
    add_link_options($<$<LINK_LANGUAGE:Fortran>:-Nfjomplib>)
endif()

# Name of the library that programs are linked with, empty if the compiler does not report it; compared with the library
# loaded at run time.
set(PAGEWISE_RUNTIME_NAME "")
if(PAGEWISE_OPENMP)
    set(_linker_flags "${CMAKE_EXE_LINKER_FLAGS}")
    if(PAGEWISE_RUNTIME STREQUAL "fjomplib")
        # CMake links programs to find out which libraries OpenMP needs, and would link the default one as well.
        string(APPEND CMAKE_EXE_LINKER_FLAGS " -Nfjomplib")
    endif()
    find_package(OpenMP REQUIRED COMPONENTS Fortran)
    set(CMAKE_EXE_LINKER_FLAGS "${_linker_flags}")
    foreach(_file ${OpenMP_Fortran_LIBRARIES})
        file(REAL_PATH ${_file} _file)
        get_filename_component(_stem ${_file} NAME_WE)
        if(_stem MATCHES "omp|craymp" AND NOT PAGEWISE_RUNTIME STREQUAL "fjomplib")
            set(PAGEWISE_RUNTIME_NAME ${_stem})
            break()
        endif()
    endforeach()
endif()
