# The module for what `cmake --install` installs, with the same layout, facts and settings as the modules that
# Spack writes.
set(PAGEWISE_MODULE_DIR "" CACHE PATH "Module tree to install into; empty: share/pagewise/modules in the prefix")

# Set `result` to the address that the sources were cloned from, or to their folder.
function(pagewise_address result)
    execute_process(
        COMMAND git -C ${PROJECT_SOURCE_DIR} config --get remote.origin.url
        OUTPUT_VARIABLE _address
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
    )
    if(NOT _address)
        set(_address ${PROJECT_SOURCE_DIR})
    endif()
    string(REGEX REPLACE "//[^/@]*@" "//" _address ${_address}) # without a password
    set(${result} ${_address} PARENT_SCOPE)
endfunction()

# pagewise_install_module(<package> [MPI]): install rules for the package's module in this build; MPI: whether it uses ranks
# is one of its facts. Package managers write the modules themselves.
function(pagewise_install_module package)
    set(_Package ${package})
    set(_Version develop)
    set(_Compiler ${PAGEWISE_COMPILER})
    foreach(_fact Hugepages Prefetch Stores Loop)
        string(TOUPPER ${_fact} _variable)
        set(_${_fact} ${PAGEWISE_${_variable}})
    endforeach()
    set(_OpenMP ${PAGEWISE_OPENMP})
    set(_PAPI ${PAGEWISE_PAPI})
    set(_MPI ${pagewise_mpi})
    foreach(_fact OpenMP PAPI MPI)
        if(_${_fact})
            set(_${_fact} on)
        else()
            set(_${_fact} off)
        endif()
    endforeach()
    set(_Target ${PAGEWISE_TARGET})
    set(_Library ${PAGEWISE_CALLED_LIBRARY})
    set(_Builder cmake)

    # Equal builds have equal hashes: compiler and flags are part of the facts, the location is not.
    set(_facts Package Version Compiler Hugepages Prefetch Stores Loop OpenMP PAPI ${ARGN} Target)
    set(_suffix "")
    if(NOT PAGEWISE_OPENMP)
        string(APPEND _suffix -serial)
    endif()
    # Facts that are not reported if they are the default, each with what its value follows in the name.
    set(_Runtime "${PAGEWISE_OTHER_RUNTIME}")
    set(_SIMD "${PAGEWISE_REPORTED_SIMD}")
    set(_Sector "${PAGEWISE_REPORTED_SECTOR}")
    foreach(_optional Library:- Runtime:- SIMD:-simd- Sector:-sector-)
        string(REPLACE ":" ";" _optional ${_optional})
        list(POP_FRONT _optional _fact)
        if(_${_fact})
            list(APPEND _facts ${_fact})
            string(APPEND _suffix ${_optional}${_${_fact}})
        endif()
    endforeach()
    string(REGEX REPLACE "^pagewise-[a-z]+|-(other|native|${PAGEWISE_TARGET})" "" _Flags "${PAGEWISE_TOOLCHAIN}")
    if(_Flags)
        list(APPEND _facts Flags)
        string(APPEND _suffix ${_Flags})
        string(REGEX REPLACE "^-" "" _Flags ${_Flags})
    endif()
    set(_identity "")
    foreach(_fact ${_facts} Builder)
        string(TOUPPER ${_fact} _variable)
        string(APPEND _identity "${_variable}=${_${_fact}}\n")
    endforeach()
    foreach(_language C Fortran)
        string(TOUPPER "CMAKE_${_language}_FLAGS_${CMAKE_BUILD_TYPE}" _of_type)
        string(REPLACE "CMAKE_FORTRAN" "CMAKE_Fortran" _of_type ${_of_type})
        string(APPEND _identity "${CMAKE_${_language}_COMPILER_ID} ${CMAKE_${_language}_COMPILER_VERSION} "
                            "${CMAKE_${_language}_FLAGS} ${${_of_type}}\n"
        )
    endforeach()
    string(SHA256 _Hash "${_identity}")

    set(MODULE_NAME ${package})
    set(MODULE_VERSION ${_Version})
    set(MODULE_DESCRIPTION "Kernels of pagewise in one configuration: pages, prefetching, store type and compiler.")
    pagewise_address(MODULE_URL)
    set(MODULE_SETTINGS "family(\"pagewise\")\nprepend_path(\"PATH\", \"\${CMAKE_INSTALL_PREFIX}/bin\")\n")
    foreach(_fact ${_facts} Hash Builder)
        string(TOUPPER ${_fact} _variable)
        string(TOLOWER ${_fact} _label)
        string(APPEND MODULE_SETTINGS "setenv(\"PAGEWISE_${_variable}\", \"${_${_fact}}\")\n")
        if(NOT _fact MATCHES "^(Package|Version)$")
            string(APPEND MODULE_WHATIS "whatis(\"${_label}: ${_${_fact}}\")\n")
        endif()
        string(SUBSTRING "${_label}          " 0 10 _label)
        string(APPEND MODULE_HELP "  ${_label} ${_${_fact}}\n")
    endforeach()
    string(APPEND MODULE_SETTINGS "setenv(\"PAGEWISE_PREFIX\", \"\${CMAKE_INSTALL_PREFIX}\")")
    string(APPEND MODULE_HELP "  prefix     \${CMAKE_INSTALL_PREFIX}\n\nLoading another configuration swaps this one out.")

    string(JSON _count ERROR_VARIABLE _none LENGTH "${pagewise_pages_environment}")
    if(NOT _none)
        math(EXPR _last "${_count} - 1")
        foreach(_place RANGE ${_last})
            string(JSON _variable MEMBER "${pagewise_pages_environment}" ${_place})
            string(JSON _value GET "${pagewise_pages_environment}" ${_variable})
            string(APPEND MODULE_SETTINGS "setenv(\"${_variable}\", \"${_value}\")\n")
        endforeach()
    endif()

    # In two steps: @NAME@ is known now, ${CMAKE_INSTALL_PREFIX} when `cmake --install` runs.
    set(_template ${PROJECT_BINARY_DIR}/${package}.lua.in)
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/module.lua.in ${_template} @ONLY)
    set(_name ${package}/${_Version}/${_Compiler}/${_Hugepages}/${pagewise_built_variant}${_suffix})
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
