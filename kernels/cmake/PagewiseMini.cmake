# Building a mini-app: unlike the micro-kernels, all of it in one configuration.
#
# A mini-app's folder holds its main program, main.f90; its modules in further .f90 files; and C sources, of which its
# CMakeLists.txt selects those of the build. Its tests are tests/test_<module>.f90 and small runs of the program; further
# .f90 files in tests are modules that the tests share.
include(PagewiseTests)
set(PAGEWISE_MPI OFF CACHE STRING "MPI ranks: ON, OFF, AUTO (if an MPI library exists)")
set(pagewise_mpi ${PAGEWISE_MPI})
if(PAGEWISE_MPI STREQUAL "AUTO")
    find_package(MPI COMPONENTS C)
    set(pagewise_mpi OFF)
    if(MPI_C_FOUND)
        set(pagewise_mpi ON)
    endif()
elseif(PAGEWISE_MPI)
    find_package(MPI REQUIRED COMPONENTS C)
endif()

# Open MPI refuses root and more ranks than cores, and binds the threads of a rank to one core. These variables allow both
# and unbind: version 4 reads the names of OMPI, later versions those of PRTE. Threads that share a core must not wait
# busily.
set(pagewise_mpi_environment
    OMP_WAIT_POLICY=passive
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none
    PRTE_ALLOW_RUN_AS_ROOT=1
    PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    PRTE_MCA_hwloc_default_binding_policy=none
)

# The target compiled as code of the mini-app in the current folder, in this build's configuration.
function(_pagewise_mini_compile target)
    pagewise_compile(${target})
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/harness)
    pagewise_effective(prefetch ${PAGEWISE_PREFETCH} hardware _prefetch)
    string(TOUPPER "PW_PREFETCH_${_prefetch}" _variant)
    target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:${_variant}>)
    if(_prefetch STREQUAL "compiler")
        target_compile_options(${target} PRIVATE ${pagewise_compiler_prefetch})
    endif()
    # Fortran sources find the modules of an installed library only through this.
    get_target_property(_sources ${target} SOURCES)
    list(FILTER _sources INCLUDE REGEX "\\.f90$")
    set_source_files_properties(${_sources} PROPERTIES OBJECT_DEPENDS ${pagewise_archive})
endfunction()

# A program of the mini-app `app` from the sources that follow, linked with the library of the app's modules.
function(pagewise_mini_program target app)
    pagewise_build_facts(${pagewise_built_variant} "" _facts)
    add_executable(${target} ${ARGN})
    _pagewise_mini_compile(${target})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${_facts}>)
    set_target_properties(
        ${target} PROPERTIES LINKER_LANGUAGE Fortran Fortran_MODULE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target}.modules
    )
    target_link_libraries(${target} PRIVATE ${app})
    pagewise_link_pages(${target})
endfunction()

# The test `name` of the program of this main source with the arguments that follow, and one on three ranks if MPI is enabled
# and the source starts parallel execution.
function(pagewise_mini_test name target source)
    file(STRINGS ${source} _ranks REGEX "comm%begin\\(error\\)")
    set(_folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
    file(MAKE_DIRECTORY ${_folder})
    add_test(NAME ${name} COMMAND ${target} ${ARGN} WORKING_DIRECTORY ${_folder})
    if(_ranks AND pagewise_mpi AND MPIEXEC_EXECUTABLE)
        file(MAKE_DIRECTORY ${_folder}.ranks)
        add_test(NAME ${name}.ranks
                 COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 3 $<TARGET_FILE:${target}> ${ARGN}
                 WORKING_DIRECTORY ${_folder}.ranks
        )
        set_tests_properties(${name}.ranks PROPERTIES ENVIRONMENT "${pagewise_mpi_environment}" PROCESSORS 3)
    endif()
endfunction()

# The mini-app in the current folder: a library of its modules and, if the build includes the mini-app itself, its program
# and its tests. Arguments: its C sources; USES, the mini-apps whose modules it uses; LONG, its tests that take seconds: they
# have CTest's label `long`, which everyday test runs exclude.
function(pagewise_mini_app)
    cmake_parse_arguments(PARSE_ARGV 0 _arg "" "" "USES;LONG")
    foreach(_used ${_arg_USES})
        if(NOT TARGET ${_used})
            add_subdirectory(${PROJECT_SOURCE_DIR}/mini/${_used} ${PROJECT_BINARY_DIR}/mini/${_used})
        endif()
    endforeach()
    get_filename_component(_app ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    file(GLOB _parts CONFIGURE_DEPENDS *.f90)
    list(FILTER _parts EXCLUDE REGEX "/main\\.f90$")
    add_library(${_app} STATIC ${_parts} ${_arg_UNPARSED_ARGUMENTS})
    _pagewise_mini_compile(${_app})
    set(_modules ${CMAKE_CURRENT_BINARY_DIR}/modules)
    set_target_properties(${_app} PROPERTIES Fortran_MODULE_DIRECTORY ${_modules})
    target_include_directories(${_app} PUBLIC ${_modules})
    target_link_libraries(${_app} PUBLIC pagewise::pagewise pagewise_hdf5 ${_arg_USES})
    if(pagewise_mpi)
        target_link_libraries(${_app} PRIVATE MPI::MPI_C)
    endif()

    if(NOT _app IN_LIST pagewise_mini_apps)
        return()
    endif()

    pagewise_mini_program(pw-${_app} ${_app} main.f90)
    pagewise_static_arrays(pw-${_app} ${CMAKE_CURRENT_SOURCE_DIR})
    install(TARGETS pw-${_app} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # kernel.yaml describes the mini-app, each further <test>.yaml another test case of the same program.
    file(GLOB _descriptions CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.yaml)
    foreach(_description ${_descriptions})
        string(REPLACE "kernel.yaml" "${_app}.yaml" _name ${_description})
        string(REPLACE ".yaml" "" _name ${_name})
        pagewise_write_json(${_description} ${_name} _written)
        install(FILES ${_written} DESTINATION ${CMAKE_INSTALL_DATADIR}/pagewise/kernels)
    endforeach()
    if(PAGEWISE_MODULE)
        include(PagewiseModule)
        pagewise_install_module(pagewise-${_app} MPI)
    endif()

    if(BUILD_TESTING)
        file(GLOB _tests CONFIGURE_DEPENDS tests/test_*.f90)
        file(GLOB _shared CONFIGURE_DEPENDS tests/*.f90)
        list(FILTER _shared EXCLUDE REGEX "/test_[^/]*$")
        set(_testing ${_app}_testing)
        add_library(${_testing} STATIC ${_shared} ${PROJECT_SOURCE_DIR}/mini/expectations.f90)
        _pagewise_mini_compile(${_testing})
        set(_modules ${CMAKE_CURRENT_BINARY_DIR}/${_testing}.modules)
        set_target_properties(${_testing} PROPERTIES Fortran_MODULE_DIRECTORY ${_modules})
        target_include_directories(${_testing} PUBLIC ${_modules})
        target_link_libraries(${_testing} PUBLIC ${_app})
        foreach(_source ${_tests})
            get_filename_component(_name ${_source} NAME_WE)
            string(REGEX REPLACE "^test_" "" _name ${_name})
            pagewise_mini_program(test_${_app}_${_name} ${_testing} ${_source})
            pagewise_mini_test(${_app}.${_name} test_${_app}_${_name} ${_source})
            if(_name IN_LIST _arg_LONG)
                set_property(TEST ${_app}.${_name} PROPERTY LABELS long)
                if(TEST ${_app}.${_name}.ranks)
                    set_property(TEST ${_app}.${_name}.ranks PROPERTY LABELS long)
                endif()
            endif()
        endforeach()

        if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/broken.c)
            _pagewise_smoke(kernel.yaml _smoke)
            pagewise_mini_program(pw-${_app}-broken ${_app} main.f90 broken.c)
            pagewise_test_detects(${_app} "${_smoke}" wrong nan inf)
        endif()

        foreach(_description ${_descriptions})
            string(REPLACE "kernel.yaml" "${_app}" _test ${_description})
            string(REPLACE ".yaml" "" _test ${_test})
            _pagewise_smoke(${_description} _smoke)
            foreach(_pages none thp)
                pagewise_mini_test(${_test}.${_pages} pw-${_app} main.f90 ${_smoke} --pages ${_pages})
            endforeach()
            # The machine's settings may refuse thp, and page tests change them temporarily.
            set_tests_properties(${_test}.thp PROPERTIES RESOURCE_LOCK machine_settings SKIP_RETURN_CODE 3)
            if(TEST ${_test}.thp.ranks)
                set_tests_properties(${_test}.thp.ranks PROPERTIES RESOURCE_LOCK machine_settings SKIP_RETURN_CODE 3)
            endif()
        endforeach()
    endif()
endfunction()
