# Kernels of indirect access: their folder has kernel.yaml, whose equation defines them, and loop.f90; the driver and the
# explicit code are written from kernel.yaml.

# The kernel in the current folder. Its equation is a(INDEX) = b(INDEX), a(INDEX) = a(INDEX) + s*b(INDEX) or
# a(INDEX) = b(INDEX) + s*d(INDEX), with i or c(i) as INDEX, the same for b and d.
function(pagewise_indirect_kernel)
    pagewise_described("" name name)
    pagewise_described("" equation equation)
    set(_element "\\((i|c\\(i\\))\\)")
    # Not in the condition: CMake evaluates parts in parentheses before the others, and so before MATCHES.
    string(REGEX MATCH "^a${_element} = (a${_element} [+] s\\*)?b${_element}( [+] s\\*d${_element})?$" _found "${equation}")
    if(NOT _found OR (CMAKE_MATCH_2 AND (CMAKE_MATCH_5 OR NOT CMAKE_MATCH_1 STREQUAL CMAKE_MATCH_3))
       OR (CMAKE_MATCH_5 AND NOT CMAKE_MATCH_4 STREQUAL CMAKE_MATCH_6)
    )
        message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/kernel.yaml: the equation '${equation}' is not one of indirect access; "
                            "write it like a(i) = a(i) + s*b(c(i))"
        )
    endif()
    set(_indices "${CMAKE_MATCH_1} ${CMAKE_MATCH_4}")
    string(LENGTH "${CMAKE_MATCH_2}" _added)
    string(LENGTH "${CMAKE_MATCH_5}" _paired)
    set(_scatters 0)
    set(_gathers 0)
    set(_updates 0)
    set(_pairs 0)
    set(_loads 1.5) # a word and the index
    set(_stores 1)
    set(_flops 0)
    if(_indices MATCHES "^c")
        set(_scatters 1)
    endif()
    if(_indices MATCHES "c\\(i\\)$")
        set(_gathers 1)
    endif()
    if(_added GREATER 0)
        set(_updates 1)
        set(_loads 2.5)
        set(_flops 2)
    endif()
    if(_paired GREATER 0)
        set(_pairs 1)
        set(_loads 2.5)
        set(_flops 2)
    endif()
    foreach(_field loads stores flops)
        pagewise_described(traffic ${_field} _value)
        if(NOT _value EQUAL _${_field})
            message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/kernel.yaml: traffic has ${_field}: ${_value}, but the equation has "
                                "${_${_field}}; correct one"
            )
        endif()
    endforeach()
    pagewise_write_main(pw_indirect indirect_t
        "kernel%scatters = ${_scatters} == 1" "kernel%gathers = ${_gathers} == 1" "kernel%updates = ${_updates} == 1"
        "kernel%pairs = ${_pairs} == 1"
    )
    pagewise_write_timed_code(
        pw_indirect.h PW_SCATTERS=${_scatters} PW_GATHERS=${_gathers} PW_UPDATES=${_updates} PW_PAIRS=${_pairs}
    )
    pagewise_micro_kernel()
    if(TARGET pw-${name}-broken)
        # A size that leaves a rest of bytes.
        add_test(NAME ${name}.orders COMMAND pw-${name} --working-set 100015 --repetitions 1 --threads 2 --sweep indices)
        if(_gathers AND NOT _scatters)
            # Smaller than the other arrays, and larger.
            foreach(_table 4KiB 60kB)
                add_test(NAME ${name}.table-${_table}
                         COMMAND pw-${name} --working-set 200kB --table-size ${_table} --repetitions 1 --threads 2 --sweep indices
                )
            endforeach()
            add_test(NAME ${name}.table-too-large COMMAND pw-${name} --working-set 200kB --table-size 200kB)
            set_tests_properties(${name}.table-too-large PROPERTIES PASS_REGULAR_EXPRESSION "--table-size.*remedy")
        endif()
        add_test(NAME ${name}.types COMMAND pw-${name} --working-set 100kB --repetitions 1 --threads 2 --sweep type)
        add_test(NAME ${name}.distances
                 COMMAND pw-${name}-software-regular --working-set 2kB --repetitions 1 --sweep prefetch-distance=1,99,500
        )
    endif()
endfunction()
