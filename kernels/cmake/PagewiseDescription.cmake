# Facts in the kernel.yaml of the current folder, and sources that are written from them.

include(PagewiseYaml)

# Set `result` to the value of `field` in `section`, or at the top level if that is empty. With a fourth argument, the field may
# be missing; this is then its value.
function(pagewise_described section field result)
    pagewise_json(kernel.yaml _json)
    pagewise_member("${_json}" _value ${section} ${field})
    if(_value STREQUAL "")
        if(ARGC LESS 4)
            message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/kernel.yaml has no ${section} ${field}")
        endif()
        set(_value "${ARGV3}")
    endif()
    set(${result} "${_value}" PARENT_SCOPE)
endfunction()

# Set `result` to the folder of the sources that are written for a kernel.
function(pagewise_written kernel result)
    set(${result} ${PROJECT_BINARY_DIR}/written/${kernel} PARENT_SCOPE)
endfunction()

# Set `result` to the path of a source of the kernel in the current folder, or in that of a third argument: the one there, or the
# one that is written.
function(pagewise_source name result)
    set(_source ${CMAKE_CURRENT_SOURCE_DIR})
    if(ARGC GREATER 2)
        set(_source ${ARGV2})
    endif()
    set(_path ${_source}/${name})
    if(NOT EXISTS ${_path})
        get_filename_component(_kernel ${_source} NAME)
        pagewise_written(${_kernel} _folder)
        set(_path ${_folder}/${name})
    endif()
    set(${result} ${_path} PARENT_SCOPE)
endfunction()

# Set `result` to a character constant of Fortran, on lines of at most 132 columns.
function(pagewise_constant text result)
    set(_constant "")
    string(LENGTH "${text}" _length)
    foreach(_start RANGE 0 ${_length} 60)
        string(SUBSTRING "${text}" ${_start} 60 _part)
        string(REPLACE "'" "''" _part "${_part}")
        string(APPEND _constant "'// &\n        '${_part}")
    endforeach()
    set(${result} "'${_constant}'" PARENT_SCOPE)
endfunction()

# Write the main program of the kernel in the current folder: the object `kernel` of the type `type` in `module` with the facts
# of kernel.yaml; without --working-set in compare, the default size comes from the machine. Statements may follow.
function(pagewise_write_main module type)
    pagewise_described("" name name)
    pagewise_described("" summary _summary)
    pagewise_constant("${_summary}" _summary)
    set(facts "kernel%name = '${name}'\n    kernel%summary = ${_summary}")
    pagewise_json(kernel.yaml _json)
    pagewise_members("${_json}" _compare compare arguments)
    if(_compare MATCHES "--working-set;([^;]+)")
        string(APPEND facts "\n    kernel%default_working_set = '${CMAKE_MATCH_1}'")
    endif()
    foreach(_field loads stores write_allocate lines flops element_bytes)
        pagewise_described(traffic ${_field} _value "")
        if(NOT _value STREQUAL "")
            string(APPEND facts "\n    kernel%per_element%${_field} = ${_value}")
        endif()
    endforeach()
    foreach(_statement ${ARGN})
        string(APPEND facts "\n    ${_statement}")
    endforeach()
    pagewise_written(${name} _folder)
    configure_file(${PROJECT_SOURCE_DIR}/harness/pw_main.f90.in ${_folder}/main.f90 @ONLY)
endfunction()

# The same for the only public type in the module of a source.
function(pagewise_write_main_of source)
    file(STRINGS ${source} _module REGEX "^module [a-z0-9_]+$")
    file(STRINGS ${source} _type REGEX "^ *type, extends\\([a-z0-9_]+\\), public :: ")
    string(REPLACE "module " "" _module "${_module}")
    string(REGEX REPLACE ".*:: *" "" _type "${_type}")
    if(_module STREQUAL "" OR NOT _type MATCHES "^[a-z0-9_]+$")
        message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${source} does not have exactly one module with one public type that extends "
                            "another: write 'type, extends(kernel_t), public :: NAME_t'"
        )
    endif()
    pagewise_write_main(${_module} ${_type})
endfunction()

# Write the explicit code of the kernel in the current folder, which is a header in harness after the definitions that follow.
function(pagewise_write_timed_code header)
    pagewise_described("" name _name)
    pagewise_written(${_name} _folder)
    list(TRANSFORM ARGN REPLACE "^([^=]+)=?(.*)" "#define \\1 \\2\n" OUTPUT_VARIABLE _definitions)
    list(JOIN _definitions "" _definitions)
    file(CONFIGURE OUTPUT ${_folder}/kernel.c CONTENT "@_definitions@#include \"${header}\"\n" @ONLY)
endfunction()
