# Tests of a micro-kernel: every variant of it runs and checks its result, holds the instructions that it claims, and the
# check of the result finds a kernel that is wrong (the folder's broken.c).

function(pagewise_test_variants kernel)
    set(_instructions ${PROJECT_SOURCE_DIR}/cmake/check_instructions.cmake)
    foreach(_prefetch ${pagewise_all_prefetch})
        foreach(_stores ${pagewise_all_stores})
            set(_target pw-${kernel}-${_prefetch}-${_stores})
            pagewise_kernel_source(${_prefetch} ${_stores} _source)
            pagewise_kernel_executable(${_target} ${_prefetch} ${_stores} ${_source} ${ARGN})
            foreach(_pages none thp)
                add_test(NAME ${kernel}.${_prefetch}-${_stores}.${_pages}
                         COMMAND ${_target} --working-set 300kB --repetitions 2 --pages ${_pages}
                )
                # Tests of pages change the machine's settings for a moment.
                set_tests_properties(
                    ${kernel}.${_prefetch}-${_stores}.${_pages} PROPERTIES RESOURCE_LOCK machine_settings
                )
            endforeach()
            # Those settings may refuse thp; base pages can always be had.
            set_tests_properties(${kernel}.${_prefetch}-${_stores}.thp PROPERTIES SKIP_RETURN_CODE 3)
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
    # A kernel that leaves some of its work undone fails its check.
    pagewise_kernel_executable(pw-${kernel}-broken hardware regular broken.c ${ARGN})
    add_test(NAME ${kernel}.broken COMMAND pw-${kernel}-broken --working-set 300kB --repetitions 1)
    set_tests_properties(${kernel}.broken PROPERTIES PASS_REGULAR_EXPRESSION "check +FAILED")
endfunction()
