# The library of mathematical functions that a build's programs call, for kernels that are sensitive to `library`
# (kernel.yaml).
#
# mathlib=libm makes scalar calls. With any other library the compiler makes vector calls, in a second compilation of the
# timed code, and the linked library serves them. The options are facts of the compiler (compilers/); here are the processors of
# each library, and what is linked. armpl, mass and fujitsu await a machine that has the library.
set(PAGEWISE_MATHLIB libm CACHE STRING "Mathematical functions: libm (scalar calls), libmvec, sleef, armpl, mass, fujitsu")

# The vector ABI of GNU: both libraries have the same functions with the same names.
set(pagewise_mathlib_libmvec_PROCESSOR "x86_64|aarch64")
set(pagewise_mathlib_libmvec_LINK mvec)
set(pagewise_mathlib_sleef_PROCESSOR "x86_64|aarch64")
set(pagewise_mathlib_sleef_LINK sleefgnuabi)
set(pagewise_mathlib_armpl_PROCESSOR "aarch64")
set(pagewise_mathlib_armpl_LINK amath)
set(pagewise_mathlib_mass_PROCESSOR "ppc64")
set(pagewise_mathlib_mass_DEFINE PW_MATH_MASSV)
set(pagewise_mathlib_mass_LINK massvp9 mass)
set(pagewise_mathlib_fujitsu_PROCESSOR "aarch64")
set(pagewise_mathlib_fujitsu_LINK "")

# The libraries that both compilers can call on this processor.
set(pagewise_mathlibs libm)
foreach(_mathlib libmvec sleef armpl mass fujitsu)
    pagewise_options(pagewise_mathlib_${_mathlib} mathlib ${_mathlib})
    if(pagewise_processor MATCHES "^(${pagewise_mathlib_${_mathlib}_PROCESSOR})$"
       AND pagewise_mathlib_${_mathlib}_LANGUAGES STREQUAL "C;Fortran"
    )
        list(APPEND pagewise_mathlibs ${_mathlib})
    endif()
endforeach()
if(NOT PAGEWISE_MATHLIB IN_LIST pagewise_mathlibs)
    message(FATAL_ERROR "PAGEWISE_MATHLIB=${PAGEWISE_MATHLIB}: on ${CMAKE_SYSTEM_PROCESSOR}, ${PAGEWISE_COMPILER} supports "
                        "${pagewise_mathlibs}"
    )
endif()

# Set `result` to the files that programs with the library link, empty if this system does not have it.
function(pagewise_mathlib_link mathlib result)
    set(_found "")
    foreach(_name ${pagewise_mathlib_${mathlib}_LINK})
        find_library(PAGEWISE_LIBRARY_${_name} ${_name})
        mark_as_advanced(PAGEWISE_LIBRARY_${_name})
        if(NOT PAGEWISE_LIBRARY_${_name})
            set(_found "")
            break()
        endif()
        list(APPEND _found ${PAGEWISE_LIBRARY_${_name}})
    endforeach()
    set(${result} ${_found} PARENT_SCOPE)
endfunction()

if(NOT PAGEWISE_MATHLIB STREQUAL "libm")
    pagewise_mathlib_link(${PAGEWISE_MATHLIB} _link)
    if(NOT _link AND pagewise_mathlib_${PAGEWISE_MATHLIB}_LINK)
        message(FATAL_ERROR "PAGEWISE_MATHLIB=${PAGEWISE_MATHLIB}: its library is missing "
                            "(${pagewise_mathlib_${PAGEWISE_MATHLIB}_LINK}); install it, or add its folder to CMAKE_PREFIX_PATH"
        )
    endif()
endif()

# As builds report it; the default is not reported.
string(REGEX REPLACE "^libm$" "" PAGEWISE_CALLED_LIBRARY ${PAGEWISE_MATHLIB})
