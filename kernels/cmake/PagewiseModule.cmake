# A module for what `cmake --install` installs, with the facts and settings of those that Spack writes.
set(PAGEWISE_MODULE_DIR "" CACHE PATH "Module tree to install into; empty: share/pagewise/modules in the prefix")

# pagewise_install_module(<package> [MPI]): install rules for the package's module in this build; MPI: whether it has ranks
# is one of its facts. A package manager writes one of its own.
function(pagewise_install_module package)
    set(_Package ${package})
    set(_Version develop)
    set(_Compiler ${PAGEWISE_COMPILER})
    foreach(_fact Hugepages Prefetch Stores)
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
    set(_Builder cmake)

    # Equal builds have equal hashes: compiler and flags belong to the facts, the place does not.
    set(_facts Package Version Compiler Hugepages Prefetch Stores OpenMP PAPI ${ARGN} Target)
    set(_told "")
    foreach(_fact ${_facts} Builder)
        string(TOUPPER ${_fact} _variable)
        string(APPEND _told "${_variable}=${_${_fact}}\n")
    endforeach()
    foreach(_language C Fortran)
        string(TOUPPER "CMAKE_${_language}_FLAGS_${CMAKE_BUILD_TYPE}" _of_type)
        string(REPLACE "CMAKE_FORTRAN" "CMAKE_Fortran" _of_type ${_of_type})
        string(APPEND _told "${CMAKE_${_language}_COMPILER_ID} ${CMAKE_${_language}_COMPILER_VERSION} "
                            "${CMAKE_${_language}_FLAGS} ${${_of_type}}\n"
        )
    endforeach()
    string(SHA256 _Hash "${_told}")

    set(MODULE_PACKAGE ${package})
    foreach(_fact ${_facts} Hash Builder)
        string(TOUPPER ${_fact} _variable)
        set(_label ${_fact})
        if(_fact STREQUAL "Package")
            set(_label Name)
        endif()
        string(APPEND MODULE_WHATIS "whatis(\"${_label}: ${_${_fact}}\")\n")
        string(TOLOWER "${_fact}          " _label)
        string(SUBSTRING "${_label}" 0 10 _label)
        string(APPEND MODULE_HELP "  ${_label} ${_${_fact}}\n")
        string(APPEND MODULE_SETTINGS "setenv(\"PAGEWISE_${_variable}\", \"${_${_fact}}\")\n")
    endforeach()

    # In two steps: @NAME@ is known now, ${CMAKE_INSTALL_PREFIX} when it is installed.
    set(_template ${PROJECT_BINARY_DIR}/${MODULE_PACKAGE}.lua.in)
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/module.lua.in ${_template} @ONLY)
    set(_name ${package}/${_Version}/${_Compiler}/${_Hugepages}/${_Prefetch}-${_Stores})
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
