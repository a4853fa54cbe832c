# The library of mathematical functions that a build's programs call, for kernels that are sensitive to `library`
# (kernel.yaml).
#
# mathlib=libm makes scalar calls. With any other library the compiler makes vector calls, in a second compilation of the
# timed code, and the linked library serves them. One row per library: the processors and compilers it is for, the options
# that make each compiler call it (GCC knows the vector ABI by itself), and what is linked. Rows marked `untried` await a
# machine that has the library.
set(PAGEWISE_MATHLIB libm CACHE STRING "Mathematical functions: libm (scalar calls), libmvec, sleef, armpl, mass, fujitsu")
set(pagewise_all_mathlib libm libmvec sleef armpl mass fujitsu)

# The vector ABI of GNU: both libraries have the same functions with the same names.
set(pagewise_mathlib_libmvec_COMPILER "GNU|LLVM")
set(pagewise_mathlib_libmvec_PROCESSOR "x86_64|AMD64|aarch64")
set(pagewise_mathlib_libmvec_LLVM -fveclib=libmvec)
if(pagewise_is_old_flang)
    set(pagewise_mathlib_libmvec_LLVM
        $<$<COMPILE_LANGUAGE:C>:-fveclib=libmvec> "$<$<COMPILE_LANGUAGE:Fortran>:SHELL:-Xflang -fveclib=LIBMVEC>"
    )
endif()
set(pagewise_mathlib_libmvec_LINK mvec)
set(pagewise_mathlib_sleef_COMPILER "GNU|LLVM")
set(pagewise_mathlib_sleef_PROCESSOR "x86_64|AMD64|aarch64")
set(pagewise_mathlib_sleef_LLVM ${pagewise_mathlib_libmvec_LLVM})
set(pagewise_mathlib_sleef_LINK sleefgnuabi)
# untried: Arm Performance Libraries.
set(pagewise_mathlib_armpl_COMPILER "LLVM")
set(pagewise_mathlib_armpl_PROCESSOR "aarch64")
set(pagewise_mathlib_armpl_LLVM -fveclib=ArmPL)
set(pagewise_mathlib_armpl_LINK amath)
# untried: IBM's MASS on POWER.
set(pagewise_mathlib_mass_COMPILER "GNU|LLVM")
set(pagewise_mathlib_mass_PROCESSOR "ppc64le|ppc64")
set(pagewise_mathlib_mass_GNU -mveclibabi=mass -funsafe-math-optimizations)
set(pagewise_mathlib_mass_LLVM -fveclib=MASSV)
set(pagewise_mathlib_mass_DEFINE PW_MATH_MASSV)
set(pagewise_mathlib_mass_LINK massvp9 mass)
# untried: A64FX, whose compiler (frt, fcc) contains the functions and links its library.
set(pagewise_mathlib_fujitsu_COMPILER "Fujitsu|FujitsuClang")
set(pagewise_mathlib_fujitsu_PROCESSOR "aarch64")
set(pagewise_mathlib_fujitsu_Fujitsu -Kfast,simd,mfunc)
set(pagewise_mathlib_fujitsu_LINK "")

# Options for timed code without vectors, which calls no vector library. Those of flang are options of the driver since version 21.
if(pagewise_is_old_flang)
    set(pagewise_fortran_no_vectors "SHELL:-mllvm -vectorize-loops=false -mllvm -vectorize-slp=false")
endif()
set(pagewise_no_vectors "$<$<COMPILE_LANGUAGE:C>:${pagewise_c_no_vectors}>" "$<$<COMPILE_LANGUAGE:Fortran>:${pagewise_fortran_no_vectors}>")

# The libraries that this compiler can call on this processor.
set(pagewise_mathlibs "")
foreach(_mathlib ${pagewise_all_mathlib})
    if(_mathlib STREQUAL "libm" OR (CMAKE_SYSTEM_PROCESSOR MATCHES "^(${pagewise_mathlib_${_mathlib}_PROCESSOR})$"
                                    AND pagewise_compiler_family MATCHES "^(${pagewise_mathlib_${_mathlib}_COMPILER})$")
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
set(PAGEWISE_CALLED_LIBRARY "")
if(NOT PAGEWISE_MATHLIB STREQUAL "libm")
    set(PAGEWISE_CALLED_LIBRARY ${PAGEWISE_MATHLIB})
endif()
