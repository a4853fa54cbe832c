# The SIMD width of timed code, both of compiled loops and of explicit vector code.
#
# simd=compiler leaves it to the flags of the toolchain; scalar uses no vectors of doubles, 128, 256 and 512 use vectors of
# so many bits, and vla vectors whose length only the processor knows (SVE). One row per width and kind of processor: the
# macro that shows whether the build's instruction set has it, and the options that make each compiler use it.
set(pagewise_all_simd compiler scalar 128 256 512 vla)

# Loops declared `omp simd` in the source are not left to the vectoriser: -fno-tree-vectorize and -fno-vectorize
# do not affect them.
set(_no_vectors_GNU -fno-tree-vectorize -fdisable-tree-vect)
set(_no_vectors_LLVM ${pagewise_no_vectors} "SHELL:-mllvm -force-vector-width=1")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(pagewise_simd_scalar_GNU ${_no_vectors_GNU})
    set(pagewise_simd_scalar_LLVM ${_no_vectors_LLVM})
    set(pagewise_simd_128_HAS __SSE2__)
    set(pagewise_simd_256_HAS __AVX__)
    set(pagewise_simd_512_HAS __AVX512F__)
    foreach(_width 128 256 512)
        set(pagewise_simd_${_width}_GNU -mprefer-vector-width=${_width})
        set(pagewise_simd_${_width}_LLVM $<$<COMPILE_LANGUAGE:C>:-mprefer-vector-width=${_width}>)
    endforeach()
    # flang-22 ignores that option; clang translates it to these, and the last of each wins.
    foreach(_feature 128:+128:+256 256:-128:+256 512:-128:-256)
        string(REPLACE ":" ";" _words ${_feature})
        list(POP_FRONT _words _width)
        foreach(_word ${_words})
            string(REGEX REPLACE "^(.)(.*)" "\\1prefer-\\2-bit" _word ${_word})
            list(APPEND pagewise_simd_${_width}_LLVM
                "$<$<COMPILE_LANGUAGE:Fortran>:SHELL:-Xflang -target-feature -Xflang ${_word}>"
            )
        endforeach()
    endforeach()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(pagewise_simd_scalar_GNU ${_no_vectors_GNU})
    set(pagewise_simd_scalar_LLVM ${_no_vectors_LLVM})
    # Only NEON, even if SVE is available.
    set(pagewise_simd_128_HAS __ARM_NEON)
    set(pagewise_simd_128_GNU -msve-vector-bits=scalable --param=aarch64-autovec-preference=1)
    set(pagewise_simd_128_LLVM -msve-vector-bits=scalable "SHELL:-mllvm -scalable-vectorization=off")
    foreach(_width 256 512)
        set(pagewise_simd_${_width}_HAS __ARM_FEATURE_SVE)
        set(pagewise_simd_${_width}_GNU -msve-vector-bits=${_width})
        set(pagewise_simd_${_width}_LLVM -msve-vector-bits=${_width})
    endforeach()
    set(pagewise_simd_vla_HAS __ARM_FEATURE_SVE)
    set(pagewise_simd_vla_GNU -msve-vector-bits=scalable)
    set(pagewise_simd_vla_LLVM -msve-vector-bits=scalable "SHELL:-mllvm -scalable-vectorization=preferred")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^ppc64")
    set(pagewise_simd_scalar_GNU ${_no_vectors_GNU})
    set(pagewise_simd_scalar_LLVM ${_no_vectors_LLVM})
    set(pagewise_simd_128_HAS __VSX__)
    set(pagewise_simd_128_GNU -mvsx)
    set(pagewise_simd_128_LLVM -mvsx)
endif()

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

# Set `result` to the widths that this compiler and instruction set support.
function(_pagewise_supported_simd result)
    set(_supported compiler)
    foreach(_width scalar 128 256 512 vla)
        if(NOT DEFINED pagewise_simd_${_width}_${pagewise_compiler_family})
            continue()
        endif()
        set(_has ON)
        if(NOT _width STREQUAL "scalar")
            pagewise_has_macro("${pagewise_simd_${_width}_HAS}" _has)
        endif()
        if(_has)
            list(APPEND _supported ${_width})
        endif()
    endforeach()
    set(${result} ${_supported} PARENT_SCOPE)
endfunction()
_pagewise_supported_simd(pagewise_simds)
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
set(PAGEWISE_REPORTED_SIMD "")
if(NOT PAGEWISE_SIMD STREQUAL "compiler")
    set(PAGEWISE_REPORTED_SIMD ${PAGEWISE_SIMD})
endif()

# Compile a target's timed code for one SIMD width. PW_VECTOR_BITS is the width of explicit vectors; 64: a double, no vector.
function(pagewise_simd target width)
    if(width STREQUAL "compiler")
        return()
    endif()
    target_compile_options(${target} PRIVATE ${pagewise_simd_${width}_${pagewise_compiler_family}})
    set(_bits ${width})
    if(width STREQUAL "scalar")
        set(_bits 64)
    elseif(width STREQUAL "vla")
        set(_bits 256)
    endif()
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:PW_VECTOR_BITS=${_bits}>)
endfunction()
