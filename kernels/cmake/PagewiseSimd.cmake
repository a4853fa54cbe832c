# The SIMD width of timed code, both of compiled loops and of explicit vector code.
#
# simd=compiler leaves it to the flags of the toolchain; scalar uses no vectors of doubles, 128, 256 and 512 use vectors of
# so many bits, and vla vectors whose length only the processor knows (SVE). The options are facts of the compiler (compilers/).
set(pagewise_all_simd compiler scalar 128 256 512 vla)

# The macro that shows whether the build's instruction set has a width, by kind of processor.
set(_macros_x86_64 128=__SSE2__ 256=__AVX__ 512=__AVX512F__)
set(_macros_aarch64 128=__ARM_NEON 256=__ARM_FEATURE_SVE 512=__ARM_FEATURE_SVE vla=__ARM_FEATURE_SVE)
set(_macros_ppc64 128=__VSX__)

# Set `result` to whether the compiler, with the build's flags, predefines a macro that is not 0. Compiles instead of only
# preprocessing, because Spack's wrappers do not add the target's flags when only preprocessing.
function(pagewise_has_macro macro result)
    separate_arguments(_flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
    execute_process(
        COMMAND ${CMAKE_C_COMPILER} ${_flags} -DPW_HAS=${macro} -fsyntax-only ${PROJECT_SOURCE_DIR}/cmake/has_macro.c
        RESULT_VARIABLE _missing
        OUTPUT_QUIET ERROR_QUIET
    )
    if(_missing EQUAL 0)
        set(${result} ON PARENT_SCOPE)
    else()
        set(${result} OFF PARENT_SCOPE)
    endif()
endfunction()

# The widths that both compilers and the instruction set support.
set(pagewise_simds compiler)
foreach(_width ${pagewise_all_simd})
    pagewise_options(pagewise_simd_${_width} simd ${pagewise_processor} ${_width})
    if(NOT pagewise_simd_${_width}_LANGUAGES STREQUAL "C;Fortran")
        continue()
    endif()
    # Loops declared `omp simd` in the source are not left to the vectoriser: the options that switch it off do not affect them.
    set(_has ON)
    if(_width STREQUAL "scalar")
        list(PREPEND pagewise_simd_scalar ${pagewise_no_vectors})
    elseif("${_macros_${pagewise_processor}}" MATCHES "${_width}=([A-Z0-9_]+)")
        pagewise_has_macro(${CMAKE_MATCH_1} _has)
    endif()
    if(_has)
        list(APPEND pagewise_simds ${_width})
    endif()
endforeach()
if(NOT PAGEWISE_SIMD IN_LIST pagewise_simds)
    message(FATAL_ERROR "PAGEWISE_SIMD=${PAGEWISE_SIMD}: for ${PAGEWISE_TARGET}, ${PAGEWISE_COMPILER} supports "
                        "${pagewise_simds}; choose one of them, or a processor that has it (-march, -mcpu)"
    )
endif()
if(NOT PAGEWISE_LIBRARY AND NOT PAGEWISE_SIMD STREQUAL pagewise_built_simd)
    message(FATAL_ERROR "PAGEWISE_SIMD=${PAGEWISE_SIMD}: the installed library has timed code of simd=${pagewise_built_simd}; "
                        "set that, or name another library in pagewise_ROOT"
    )
endif()

# As builds report it; the default, set by the compiler's flags, is not reported.
string(REGEX REPLACE "^compiler$" "" PAGEWISE_REPORTED_SIMD ${PAGEWISE_SIMD})

# Compile a target's timed code for one SIMD width. PW_VECTOR_BITS is the width of explicit vectors; 64: a double, no vector.
function(pagewise_simd target width)
    if(width STREQUAL "compiler")
        return()
    endif()
    target_compile_options(${target} PRIVATE ${pagewise_simd_${width}})
    set(_bits ${width})
    if(width STREQUAL "scalar")
        set(_bits 64)
    elseif(width STREQUAL "vla")
        set(_bits 256)
    endif()
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:PW_VECTOR_BITS=${_bits}>)
endfunction()
