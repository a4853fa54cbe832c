# Kernels that measure a library (`needs: blas` or `needs: fftw` in kernel.yaml). Which library that is, a build says: it then
# has the programs of such kernels and no others. Without one, it has those that need none; tests take what the system has.
set(PAGEWISE_NEEDS "" CACHE STRING "Build the programs that need such a library, and no others: blas, fftw")
set(PAGEWISE_NEEDED_NAME "" CACHE STRING "Name of the library, as records and modules have it: openblas")
set(PAGEWISE_NEEDED_LIBRARIES "" CACHE STRING "Its files, first the one that has the functions")

# As libraries are named in a system's folders.
set(pagewise_system_blas openblas blis blas)
set(pagewise_system_fftw fftw3)

if(PAGEWISE_NEEDS)
    if(NOT PAGEWISE_NEEDS MATCHES "^(blas|fftw)$")
        message(FATAL_ERROR "PAGEWISE_NEEDS=${PAGEWISE_NEEDS}: blas or fftw is wanted")
    endif()
    if(NOT PAGEWISE_NEEDED_NAME OR NOT PAGEWISE_NEEDED_LIBRARIES)
        message(FATAL_ERROR "PAGEWISE_NEEDS=${PAGEWISE_NEEDS} wants PAGEWISE_NEEDED_NAME and PAGEWISE_NEEDED_LIBRARIES too: "
                            "openblas and /usr/lib/libopenblas.so"
        )
    endif()
    set(PAGEWISE_CALLED_LIBRARY ${PAGEWISE_NEEDED_NAME})
endif()

# Set `result` to what a kernel needs, empty where it needs nothing.
function(pagewise_needs kernel result)
    file(STRINGS ${PROJECT_SOURCE_DIR}/micro/${kernel}/kernel.yaml _needs REGEX "^needs:")
    string(REGEX REPLACE "^needs: *" "" _needs "${_needs}")
    set(${result} "${_needs}" PARENT_SCOPE)
endfunction()

# Set `name` and `files` to the library of this kind that programs are linked with, empty where there is none.
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
    set(${name} "${_name}" PARENT_SCOPE)
    set(${files} "${_files}" PARENT_SCOPE)
endfunction()
