# A module for what `cmake --install` installs, with the facts and settings of those that Spack writes.
set(PAGEWISE_MODULE_DIR "" CACHE PATH "Module tree to install into; empty: share/pagewise/modules in the prefix")

# What the compiler's flags make it compile for, by archspec's name (cascadelake, zen4, neoverse_v1).
function(_pagewise_target result)
    separate_arguments(_flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
    execute_process(
        COMMAND ${CMAKE_C_COMPILER} ${_flags} "-###" -E -x c /dev/null
        OUTPUT_QUIET
        ERROR_VARIABLE _driver
    )
    set(_target ${CMAKE_SYSTEM_PROCESSOR})
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

# pagewise_install_module(PACKAGE <name>): install rules for the module of this build. A package manager writes one of its
# own.
function(pagewise_install_module)
    cmake_parse_arguments(PARSE_ARGV 0 _module "" "PACKAGE" "")
    set(MODULE_PACKAGE ${_module_PACKAGE})
    set(MODULE_VERSION develop)
    set(MODULE_COMPILER ${PAGEWISE_COMPILER})
    foreach(_fact HUGEPAGES PREFETCH STORES)
        set(MODULE_${_fact} ${PAGEWISE_${_fact}})
    endforeach()
    foreach(_fact OPENMP PAPI)
        set(MODULE_${_fact} off)
        if(PAGEWISE_${_fact})
            set(MODULE_${_fact} on)
        endif()
    endforeach()
    _pagewise_target(MODULE_TARGET)
    set(MODULE_BUILDER cmake)

    # Equal builds have equal hashes: compiler and flags belong to the facts, the place does not.
    set(_facts "")
    foreach(_fact PACKAGE VERSION COMPILER HUGEPAGES PREFETCH STORES OPENMP PAPI TARGET BUILDER)
        string(APPEND _facts "${_fact}=${MODULE_${_fact}}\n")
    endforeach()
    foreach(_language C Fortran)
        string(TOUPPER "CMAKE_${_language}_FLAGS_${CMAKE_BUILD_TYPE}" _of_type)
        string(REPLACE "CMAKE_FORTRAN" "CMAKE_Fortran" _of_type ${_of_type})
        string(APPEND _facts "${CMAKE_${_language}_COMPILER_ID} ${CMAKE_${_language}_COMPILER_VERSION} "
                             "${CMAKE_${_language}_FLAGS} ${${_of_type}}\n"
        )
    endforeach()
    string(SHA256 MODULE_HASH "${_facts}")

    # In two steps: @NAME@ is known now, ${CMAKE_INSTALL_PREFIX} when it is installed.
    set(_template ${PROJECT_BINARY_DIR}/${MODULE_PACKAGE}.lua.in)
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/module.lua.in ${_template} @ONLY)
    set(_name ${MODULE_PACKAGE}/${MODULE_VERSION}/${MODULE_COMPILER}/${MODULE_HUGEPAGES})
    string(APPEND _name /${MODULE_PREFETCH}-${MODULE_STORES})
    install(
        CODE "
            set(_tree \"${PAGEWISE_MODULE_DIR}\")
            if(_tree STREQUAL \"\")
                set(_tree \"\${CMAKE_INSTALL_PREFIX}/share/pagewise/modules\")
            endif()
            set(_file \"\$ENV{DESTDIR}\${_tree}/${_name}.lua\")
            message(STATUS \"Installing: \${_file}\")
            configure_file(\"${_template}\" \"\${_file}\")
        "
    )
endfunction()
