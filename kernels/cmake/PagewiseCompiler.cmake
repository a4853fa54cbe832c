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

# The facts of a compiler are in compilers/<name>.json: by language and by the name that CMake has for it (CMAKE_C_COMPILER_ID),
# its family (what PagewiseMathlib and PagewiseSimd distinguish), the warnings, the options that undo the assumption that there is
# no NaN, and those that switch its vectoriser off.
file(GLOB _files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/compilers/*.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_files})
# Set `result` to the facts of a language's compiler, if a file has them, and `result`_NAME to the compiler's name. Some compilers
# share an ID of CMake, and only some of them exist for this processor: first the file that has the IDs of both languages, then the one that names this ID first.
function(_pagewise_facts language result)
    set(_id ${CMAKE_${language}_COMPILER_ID})
    string(TOLOWER ${language} _key)
    set(_known "")
    set(_best 0)
    foreach(_file ${_files})
        file(READ ${_file} _text)
        string(JSON _facts ERROR_VARIABLE _none GET "${_text}" ${_key} "${_id}")
        string(JSON _first MEMBER "${_text}" ${_key} 0)
        string(JSON _title GET "${_text}" title)
        list(APPEND _known "${_title} (${_first})")
        string(JSON _processor ERROR_VARIABLE _any GET "${_text}" processor)
        if(_none OR NOT (_any OR _processor STREQUAL CMAKE_SYSTEM_PROCESSOR))
            continue()
        endif()
        string(JSON _c ERROR_VARIABLE _no_c GET "${_text}" c "${CMAKE_C_COMPILER_ID}")
        string(JSON _fortran ERROR_VARIABLE _no_fortran GET "${_text}" fortran "${CMAKE_Fortran_COMPILER_ID}")
        set(_rank 1)
        if(NOT _no_c AND NOT _no_fortran)
            set(_rank 3)
        elseif(_first STREQUAL _id)
            set(_rank 2)
        endif()
        if(_rank GREATER _best)
            set(_best ${_rank})
            string(JSON _name GET "${_text}" name)
            set(${result} "${_facts}" PARENT_SCOPE)
            set(${result}_NAME ${_name} PARENT_SCOPE)
        endif()
    endforeach()
    if(_best EQUAL 0)
        list(JOIN _known ", " _known)
        message(FATAL_ERROR "The ${language} compiler ${CMAKE_${language}_COMPILER} (CMAKE_${language}_COMPILER_ID=${_id}) is unknown: no file "
                            "in ${PROJECT_SOURCE_DIR}/cmake/compilers has \"${_key}\": {\"${_id}\": ...} with its warnings, keeps_nan and "
                            "no_vectors. Add them, or use ${_known}"
        )
    endif()
endfunction()
# Set `result` to a list of options in a compiler's facts.
function(_pagewise_options facts field result)
    set(_options "")
    string(JSON _array GET "${facts}" ${field})
    string(JSON _last LENGTH "${_array}")
    while(_last GREATER 0)
        math(EXPR _last "${_last} - 1")
        string(JSON _option GET "${_array}" ${_last})
        list(PREPEND _options ${_option})
    endwhile()
    set(${result} "${_options}" PARENT_SCOPE)
endfunction()
foreach(_language C Fortran)
    string(TOLOWER ${_language} _key)
    _pagewise_facts(${_language} _facts)
    foreach(_field warnings keeps_nan no_vectors)
        _pagewise_options("${_facts}" ${_field} pagewise_${_key}_${_field})
    endforeach()
    if(_language STREQUAL "C")
        string(JSON pagewise_compiler_family GET "${_facts}" family)
    endif()
endforeach()
set(_name ${_facts_NAME})
# CMake detects only the version of Fujitsu's C compiler; both compilers are released together.
set(_version ${CMAKE_Fortran_COMPILER_VERSION})
if(NOT _version)
    set(_version ${CMAKE_C_COMPILER_VERSION})
endif()
set(PAGEWISE_COMPILER "${_name}-${_version}")
set(pagewise_is_old_flang OFF)
if(CMAKE_Fortran_COMPILER_ID STREQUAL "LLVMFlang" AND _version VERSION_LESS 21)
    set(pagewise_is_old_flang ON)
endif()
if(PAGEWISE_WERROR)
    # flang before 21 warns of directives that it does not know, such as `!dir$ novector`.
    if(pagewise_fortran_warnings AND NOT pagewise_is_old_flang)
        list(APPEND pagewise_fortran_warnings -Werror)
    endif()
    if(pagewise_c_warnings)
        list(APPEND pagewise_c_warnings -Werror)
    endif()
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

# Code that validates: options such as -Ofast, which assume that there is no NaN or Inf, are undone.
function(pagewise_compile_with_nan target)
    pagewise_compile(${target})
    target_compile_options(
        ${target} PRIVATE $<$<COMPILE_LANGUAGE:Fortran>:${pagewise_fortran_keeps_nan}> $<$<COMPILE_LANGUAGE:C>:${pagewise_c_keeps_nan}>
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
