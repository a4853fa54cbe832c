# Kernels that measure a library (`needs: blas` or `needs: fftw` in kernel.yaml). The build selects that library, and then
# contains only the programs of such kernels. Otherwise it contains the kernels that need none; tests use the system's
# library.
set(PAGEWISE_NEEDS "" CACHE STRING "Build only the programs that need this library: blas, fftw")
set(PAGEWISE_NEEDED_NAME "" CACHE STRING "Name of the library, as it appears in records and modules: openblas")
set(PAGEWISE_NEEDED_LIBRARIES "" CACHE STRING "Its files, the one with the functions first")

# File names of such libraries in the system's folders.
set(pagewise_system_blas openblas blis blas)
set(pagewise_system_fftw fftw3)

if(PAGEWISE_NEEDS)
    if(NOT PAGEWISE_NEEDS MATCHES "^(blas|fftw)$")
        message(FATAL_ERROR "PAGEWISE_NEEDS=${PAGEWISE_NEEDS}: choose blas or fftw")
    endif()
    if(NOT PAGEWISE_NEEDED_NAME OR NOT PAGEWISE_NEEDED_LIBRARIES)
        message(FATAL_ERROR "PAGEWISE_NEEDS=${PAGEWISE_NEEDS} also needs PAGEWISE_NEEDED_NAME and PAGEWISE_NEEDED_LIBRARIES, for example "
                            "openblas and /usr/lib/libopenblas.so"
        )
    endif()
    set(PAGEWISE_CALLED_LIBRARY ${PAGEWISE_NEEDED_NAME})
endif()

# Set `result` to what a kernel needs, empty where it needs nothing.
function(pagewise_needs kernel result)
    pagewise_json(${PROJECT_SOURCE_DIR}/micro/${kernel}/kernel.yaml _json)
    pagewise_member("${_json}" _needs needs)
    set(${result} "${_needs}" PARENT_SCOPE)
endfunction()

# Set `name` and `files` to the library of this kind that programs are linked with, empty if there is none.
function(pagewise_needed needs name files)
    set(_name "")
    set(_files "")
    if(needs STREQUAL PAGEWISE_NEEDS)
        set(_name ${PAGEWISE_NEEDED_NAME})
        set(_files ${PAGEWISE_NEEDED_LIBRARIES})
    elseif(BUILD_TESTING)
        find_library(PAGEWISE_SYSTEM_${needs} NAMES ${pagewise_system_${needs}})
        mark_as_advanced(PAGEWISE_SYSTEM_${needs})
        if(PAGEWISE_SYSTEM_${needs})
            set(_files ${PAGEWISE_SYSTEM_${needs}})
            get_filename_component(_name ${_files} NAME_WE)
            string(REGEX REPLACE "^lib" "" _name ${_name})
        endif()
    endif()
    # FFTW has a library per precision; the weak references to that of single precision do not make linkers keep it.
    if(needs STREQUAL "fftw" AND "${_files}" MATCHES "^([^;]*)/libfftw3\\.so[.0-9]*$")
        file(GLOB _single ${CMAKE_MATCH_1}/libfftw3f.so ${CMAKE_MATCH_1}/libfftw3f.so.3)
        if(_single)
            list(GET _single 0 _single)
            list(APPEND _files -Wl,--push-state,--no-as-needed ${_single} -Wl,--pop-state)
        endif()
    endif()
    set(${name} "${_name}" PARENT_SCOPE)
    set(${files} "${_files}" PARENT_SCOPE)
endfunction()
