# Tests of a micro-kernel: every variant of it runs and checks its result, holds the instructions that it claims, and the
# check of the result finds a kernel that is wrong (the folder's broken.c).

function(pagewise_test_variants kernel)
    set(_instructions ${PROJECT_SOURCE_DIR}/cmake/check_instructions.cmake)
    foreach(_prefetch ${pagewise_all_prefetch})
        foreach(_stores ${pagewise_all_stores})
            set(_target pw-${kernel}-${_prefetch}-${_stores})
            pagewise_kernel_executable(${_target} ${_prefetch} ${_stores} ${ARGN})
            foreach(_pages none thp)
                add_test(NAME ${kernel}.${_prefetch}-${_stores}.${_pages}
                         COMMAND ${_target} --working-set 300kB --repetitions 2 --pages ${_pages}
                )
                # The sysfs settings of the machine decide whether thp can be had, and tests of pages change them.
                set_tests_properties(
                    ${kernel}.${_prefetch}-${_stores}.${_pages} PROPERTIES RESOURCE_LOCK machine_settings
                    SKIP_RETURN_CODE 3
                )
            endforeach()
            pagewise_kernel_source(${_prefetch} ${_stores} _source)
            get_filename_component(_stem ${_source} NAME_WE)
            add_test(NAME ${kernel}.${_prefetch}-${_stores}.instructions
                     COMMAND ${CMAKE_COMMAND} -DOBJDUMP=${CMAKE_OBJDUMP} -DOBJECT=$<TARGET_OBJECTS:${_target}-kernel>
                             -DPROCESSOR=${CMAKE_SYSTEM_PROCESSOR} -DSOURCE=${_stem} -DPREFETCH=${_prefetch}
                             -DSTORES=${_stores} -P ${_instructions}
            )
        endforeach()
    endforeach()

    add_test(NAME ${kernel}.sweep COMMAND pw-${kernel} --sweep --working-set 100kB --repetitions 1)
    add_test(NAME ${kernel}.serial-first-touch
             COMMAND pw-${kernel} --working-set 1MB --repetitions 1 --first-touch serial
    )
    pagewise_broken_kernel(${kernel} ${ARGN})
endfunction()

# A kernel that leaves some of its work undone must end with exit code 1.
function(pagewise_broken_kernel kernel)
    set(_target pw-${kernel}-broken)
    set(prefetch hardware)
    set(stores regular)
    set(_build ${CMAKE_CURRENT_BINARY_DIR}/${_target}.build)
    configure_file(${PROJECT_SOURCE_DIR}/harness/pw_build.f90.in ${_build}/pw_build.f90)
    add_executable(${_target} main.f90 broken.c ${ARGN} ${_build}/pw_build.f90)
    pagewise_compile(${_target})
    set_target_properties(${_target} PROPERTIES Fortran_MODULE_DIRECTORY ${_build} LINKER_LANGUAGE Fortran)
    target_link_libraries(${_target} PRIVATE pagewise_harness)
    add_test(NAME ${kernel}.broken COMMAND ${_target} --working-set 300kB --repetitions 1)
    set_tests_properties(${kernel}.broken PROPERTIES PASS_REGULAR_EXPRESSION "check +FAILED")
endfunction()
