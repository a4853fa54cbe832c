# Tests of a micro-kernel: every variant that it is sensitive to runs, validates its result, and contains the instructions
# that it claims; its record agrees with the traffic in kernel.yaml; the validation detects a wrong kernel.

find_program(PAGEWISE_PYTHON NAMES python3 REQUIRED)

# The test `name`: a check of the instructions in objects, with its further arguments (check_code.py).
function(pagewise_check_code name check objects)
    add_test(NAME ${name} COMMAND ${PAGEWISE_PYTHON} ${PROJECT_SOURCE_DIR}/cmake/check_code.py ${check} ${CMAKE_OBJDUMP}
                                  ${CMAKE_SYSTEM_PROCESSOR} "$<TARGET_OBJECTS:${objects}>" ${ARGN}
    )
endfunction()

# The test `name`: a check of the record of a program with these arguments, with its further arguments (check_record.py).
function(pagewise_check_record name program arguments check)
    add_test(NAME ${name} COMMAND ${PAGEWISE_PYTHON} ${PROJECT_SOURCE_DIR}/cmake/check_record.py ${check}
                                  ${CMAKE_CURRENT_BINARY_DIR}/${name}.jsonl ${ARGN} -- ${CMAKE_CROSSCOMPILING_EMULATOR}
                                  $<TARGET_FILE:${program}> ${arguments}
    )
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# Small runs: the arguments under smoke in a description.
function(_pagewise_smoke description result)
    pagewise_json(${description} _json)
    pagewise_members("${_json}" _arguments smoke arguments)
    set(${result} ${_arguments} PARENT_SCOPE)
endfunction()

# On x86-64, the timed code of the kernel has multiply-adds of each width: scalar, 128 and 256 bits.
function(pagewise_test_widths kernel)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND CMAKE_C_FLAGS MATCHES "-march=(native|x86-64-v[34]|[a-z]*lake|znver[1-9])")
        pagewise_test_instructions(${kernel}.instructions ${kernel} hardware-regular
                                   "vfmadd[0-9]+sd" "vfmadd[0-9]+pd[^\n]*%xmm" "vfmadd[0-9]+pd[^\n]*%ymm")
    endif()
endfunction()

# The test `name`: the objects of a kernel in one variant differ from those of the variant that `claimed` is compared with by the
# instructions that `claimed` names. A fifth argument names the kernel of the latter objects, if it is another one.
function(pagewise_test_difference name kernel variant claimed)
    set(_compared ${kernel})
    if(ARGC GREATER 4)
        set(_compared ${ARGV4})
    endif()
    pagewise_split(${claimed})
    set(_reference hardware-regular)
    if(loop STREQUAL "compiler" AND prefetch STREQUAL "compiler")
        set(_reference hardware-regular-loop-compiler)
    endif()
    pagewise_check_code(${name} difference pw-${kernel}-timed-${variant} "$<TARGET_OBJECTS:pw-${_compared}-timed-${_reference}>"
                        ${prefetch} ${stores} ${loop})
endfunction()

# A kernel that skips some of its work fails validation, and one with NaN or Inf in its result: broken.c in the kernel's
# folder or, if its timed code comes from a header of the harness, that of the header.
if(NOT TARGET pagewise-broken)
    add_custom_target(pagewise-broken)
endif()
function(_pagewise_test_broken kernel smoke whole_numbers)
    set(_broken broken.c)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/broken.c)
        pagewise_source(kernel.c _kernel)
        file(STRINGS ${_kernel} _header REGEX "^#include \"pw_[a-z]+\\.h\"$")
        string(REGEX REPLACE ".*pw_([a-z]+)\\.h.*" "${PROJECT_SOURCE_DIR}/harness/broken/\\1.c" _broken "${_header}")
    endif()
    pagewise_timed_code(pw-${kernel}-timed-broken hardware-regular ${_broken})
    pagewise_written(${kernel} _written)
    target_include_directories(pw-${kernel}-timed-broken PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${_written})
    pagewise_program(pw-${kernel}-broken ${kernel} pw-${kernel}-timed-broken hardware-regular)
    set(_values wrong)
    get_filename_component(_broken ${_broken} ABSOLUTE)
    file(STRINGS ${_broken} _repeats REGEX "pw_broken_is\\(\"repeat\"\\)")
    if(_repeats)
        list(APPEND _values repeat)
    endif()
    if(NOT whole_numbers)
        list(APPEND _values nan inf)
    endif()
    pagewise_test_detects(${kernel} "${smoke}" ${_values})
endfunction()

# Tests that pw-<kernel>-broken detects the values that follow.
function(pagewise_test_detects kernel smoke)
    add_dependencies(pagewise-broken pw-${kernel}-broken)
    foreach(_value ${ARGN})
        pagewise_test_fault(${kernel}.broken.${_value} pw-${kernel}-broken "${smoke}" ${_value})
    endforeach()
endfunction()

# The test `name`: a wrong program, run with these arguments, detects a value of PAGEWISE_BROKEN.
function(pagewise_test_fault name program arguments value)
    pagewise_check_record(${name} ${program} "${arguments}" broken ${value})
endfunction()

# The test `name`: the timed code of a kernel in a variant has instructions of each of the patterns that follow.
function(pagewise_test_instructions name kernel variant)
    pagewise_check_code(${name} contains pw-${kernel}-timed-${variant} ${ARGN})
endfunction()

function(pagewise_test_variants kernel whole_numbers)
    _pagewise_smoke(kernel.yaml _smoke)
    pagewise_write_json(kernel.yaml ${kernel} _description)
    pagewise_described("" traffic _traffic "")
    pagewise_kernel_variants(_variants)
    foreach(_variant ${_variants})
        pagewise_split(${_variant})
        set(_target pw-${kernel}-${_variant})
        set(_timed pw-${kernel}-timed-${_variant})
        pagewise_program(${_target} ${kernel} ${_timed} ${_variant})
        foreach(_pages none thp)
            add_test(NAME ${kernel}.${_variant}.${_pages} COMMAND ${_target} ${_smoke} --pages ${_pages})
            # Page tests change the machine's settings temporarily.
            set_tests_properties(${kernel}.${_variant}.${_pages} PROPERTIES RESOURCE_LOCK machine_settings)
        endforeach()
        # Those settings may refuse thp; base pages are always available.
        set_tests_properties(${kernel}.${_variant}.thp PROPERTIES SKIP_RETURN_CODE 3)
        pagewise_check_code(${kernel}.${_variant}.instructions instructions ${_timed} ${prefetch} ${stores})
        if(NOT _variant STREQUAL "hardware-regular")
            pagewise_test_difference(${kernel}.${_variant}.difference ${kernel} ${_variant} ${_variant})
        endif()
        if(_traffic AND prefetch STREQUAL "hardware")
            pagewise_check_record(${kernel}.${_variant}.traffic ${_target} "${_smoke}" traffic ${_description} ${PAGEWISE_LINE_BYTES})
        endif()
    endforeach()

    # In the record, the timed repetitions are the region's calls.
    pagewise_check_record(${kernel}.regions pw-${kernel} "${_smoke}" regions)
    add_test(NAME ${kernel}.serial-first-touch COMMAND pw-${kernel} ${_smoke} --first-touch serial)
    # A serial library need not allow calls from several threads.
    pagewise_needs(${kernel} _needs)
    if(PAGEWISE_OPENMP AND NOT _needs)
        # Kernels with one thread only refuse the option.
        add_test(NAME ${kernel}.two-threads COMMAND pw-${kernel} ${_smoke} --threads 2)
        set_tests_properties(${kernel}.two-threads PROPERTIES SKIP_RETURN_CODE 2)
    endif()
    _pagewise_test_broken(${kernel} "${_smoke}" ${whole_numbers})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/tests/CMakeLists.txt)
        add_subdirectory(tests)
    endif()
endfunction()

# Every variant of a kernel of many streams is right with elements of every type, and its validation detects a fault with each.
function(pagewise_test_types kernel)
    pagewise_kernel_variants(_variants)
    foreach(_variant ${_variants})
        add_test(NAME ${kernel}.${_variant}.types
                 COMMAND pw-${kernel}-${_variant} --working-set 300kB --repetitions 1 --threads 2 --sweep type
        )
    endforeach()
    foreach(_type fp32 int8)
        pagewise_test_fault(${kernel}.broken.${_type} pw-${kernel}-broken "--working-set;300kB;--repetitions;2;--type;${_type}" wrong)
    endforeach()
endfunction()
