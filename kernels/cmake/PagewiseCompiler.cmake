# Language standards, warnings, and the compiler's name as it appears in records and modules.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# No Fortran source here is preprocessed, and flang-22 -E, which Ninja would use, doubles backslashes in strings.
set(CMAKE_Fortran_PREPROCESS OFF)
# Only GCC and LLVM search folders that are given as system folders for Fortran modules.
set(CMAKE_NO_SYSTEM_FROM_IMPORTED ON)
include(GNUInstallDirs)
# A compiler that sees driver and timed code together may compute the result of equal passes once.
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION OR "${CMAKE_C_FLAGS} ${CMAKE_Fortran_FLAGS}" MATCHES "(^| )-(flto|ipo|Klto|Mipa)")
    message(FATAL_ERROR "Interprocedural optimisation (-flto, CMAKE_INTERPROCEDURAL_OPTIMIZATION) may remove timed passes: "
                        "build without it"
    )
endif()
# When cross-compiling, QEMU runs what is built; tests of the installed programs read this command here.
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|ppc64le|riscv64)$")
    if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
        set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/emulate)
    endif()
    install(PROGRAMS ${CMAKE_CURRENT_LIST_DIR}/emulate DESTINATION ${CMAKE_INSTALL_DATADIR}/pagewise)
endif()

if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    set(pagewise_fortran_warnings -std=f2018 -Wall -Wextra -fimplicit-none)
    set(_name gcc)
elseif(CMAKE_Fortran_COMPILER_ID STREQUAL "LLVMFlang")
    set(pagewise_fortran_warnings -std=f2018)
    set(_name llvm)
else()
    set(pagewise_fortran_warnings "")
    string(TOLOWER "${CMAKE_Fortran_COMPILER_ID}" _name)
endif()
# CMake detects only the version of Fujitsu's C compiler; both compilers are released together.
set(_version ${CMAKE_Fortran_COMPILER_VERSION})
if(NOT _version)
    set(_version ${CMAKE_C_COMPILER_VERSION})
endif()
set(PAGEWISE_COMPILER "${_name}-${_version}")
set(pagewise_c_warnings -Wall -Wextra -Wpedantic -Wconversion)
set(pagewise_is_old_flang OFF)
if(CMAKE_Fortran_COMPILER_ID STREQUAL "LLVMFlang" AND _version VERSION_LESS 21)
    set(pagewise_is_old_flang ON)
endif()
if(PAGEWISE_WERROR)
    # flang before 21 warns of directives that it does not know, such as `!dir$ novector`.
    if(NOT pagewise_is_old_flang)
        list(APPEND pagewise_fortran_warnings -Werror)
    endif()
    list(APPEND pagewise_c_warnings -Werror)
endif()

# Undo options that assume there is no NaN or Inf, such as -Ofast: in the library and the drivers, which validate results.
set(pagewise_fortran_has_nan "")
set(pagewise_c_has_nan "")
if(CMAKE_Fortran_COMPILER_ID MATCHES "^(GNU|LLVMFlang|Flang)$")
    set(pagewise_fortran_has_nan -fno-fast-math)
elseif(CMAKE_Fortran_COMPILER_ID STREQUAL "Fujitsu")
    set(pagewise_fortran_has_nan -Kfp_precision)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "^(GNU|Clang|ArmClang|FujitsuClang|CrayClang)$")
    set(pagewise_c_has_nan -fno-fast-math)
endif()

# The target of the compiler's flags, by archspec's name (cascadelake, zen4, neoverse_v1). With compilers that are not
# driven like GCC and LLVM it is the processor family.
function(_pagewise_target result)
    separate_arguments(_flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
    # Run as for compiling: Spack's wrappers do not add the target's flags when only preprocessing.
    execute_process(
        COMMAND ${CMAKE_C_COMPILER} ${_flags} "-###" -c -x c /dev/null
        OUTPUT_QUIET
        ERROR_VARIABLE _driver
    )
    set(_target ${CMAKE_SYSTEM_PROCESSOR})
    # Fujitsu's C compiler in its classic mode (without -Nclang) has one target in addition to the family, which is its default.
    if(CMAKE_C_COMPILER_ID STREQUAL "Fujitsu" AND NOT CMAKE_C_FLAGS MATCHES "GENERIC_CPU")
        set(_target a64fx)
    endif()
    foreach(_option "\"-target-cpu\" \"" "\"-march=" "\"-mcpu=" " -march=" " -mcpu=")
        string(REGEX MATCH "${_option}([a-z0-9_-]+)" _found "${_driver}")
        if(_found AND NOT CMAKE_MATCH_1 STREQUAL "native" AND NOT CMAKE_MATCH_1 STREQUAL "generic")
            set(_target ${CMAKE_MATCH_1})
            break()
        endif()
    endforeach()
    string(REGEX REPLACE "^znver" "zen" _target ${_target})
    string(REPLACE "-" "_" _target ${_target})
    set(${result} ${_target} PARENT_SCOPE)
endfunction()
_pagewise_target(PAGEWISE_TARGET)

# A64FX: Fujitsu, A64FX Microarchitecture Manual; POWER: its processors' user's manuals.
set(_line 64)
if(PAGEWISE_TARGET STREQUAL "a64fx")
    set(_line 256)
elseif(PAGEWISE_TARGET MATCHES "^(power|ppc64)")
    set(_line 128)
endif()
set(PAGEWISE_LINE_BYTES ${_line} CACHE STRING "Bytes of a cache line: the unit of prefetch distances")
if(NOT PAGEWISE_LINE_BYTES MATCHES "^(64|128|256)$")
    message(FATAL_ERROR "PAGEWISE_LINE_BYTES=${PAGEWISE_LINE_BYTES}: choose 64, 128 or 256")
endif()

# Code that validates: it must detect NaN and Inf.
function(pagewise_compile_with_nan target)
    pagewise_compile(${target})
    target_compile_options(
        ${target} PRIVATE $<$<COMPILE_LANGUAGE:Fortran>:${pagewise_fortran_has_nan}> $<$<COMPILE_LANGUAGE:C>:${pagewise_c_has_nan}>
    )
endfunction()

# Warnings, and threads if enabled, for the sources of one of the project's targets.
function(pagewise_compile target)
    target_compile_options(
        ${target} PRIVATE $<$<COMPILE_LANGUAGE:Fortran>:${pagewise_fortran_warnings}>
                          $<$<COMPILE_LANGUAGE:C>:${pagewise_c_warnings}>
    )
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:PW_LINE_BYTES=${PAGEWISE_LINE_BYTES}>)
    if(PAGEWISE_OPENMP)
        target_link_libraries(${target} PRIVATE OpenMP::OpenMP_Fortran)
    endif()
endfunction()
