# Facts in the kernel.yaml of the current folder, and sources that are written from them.

# Set `result` to the value of `field`: of a field of the mapping `section`, which stands on one line, or of a line of its
# own if `section` is empty.
function(pagewise_described section field result)
    set(_pattern "^${section}:.*[{ ]${field}: *([^,}]+).*")
    if(section STREQUAL "")
        set(_pattern "^${field}: *(.+)")
    endif()
    file(STRINGS kernel.yaml _line REGEX "${_pattern}")
    if(NOT _line)
        message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/kernel.yaml has no ${section} ${field} on one line")
    endif()
    string(REGEX REPLACE "${_pattern}" "\\1" _value "${_line}")
    set(${result} "${_value}" PARENT_SCOPE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS kernel.yaml)
endfunction()

# Set `result` to the folder of the sources that are written for a kernel.
function(pagewise_written kernel result)
    set(${result} ${PROJECT_BINARY_DIR}/written/${kernel} PARENT_SCOPE)
endfunction()

# Set `result` to the path of a source of the kernel in the current folder: the one there, or the one that is written.
function(pagewise_source name result)
    set(_path ${CMAKE_CURRENT_SOURCE_DIR}/${name})
    if(NOT EXISTS ${_path})
        get_filename_component(_kernel ${CMAKE_CURRENT_SOURCE_DIR} NAME)
        pagewise_written(${_kernel} _folder)
        set(_path ${_folder}/${name})
    endif()
    set(${result} ${_path} PARENT_SCOPE)
endfunction()

# Write the driver of the kernel in the current folder from a template in harness: its name, summary, default working set
# (of compare; without one there, the machine's), and the caller's variables.
function(pagewise_write_driver template)
    pagewise_described("" name name)
    pagewise_described("" equation equation)
    pagewise_described("" summary summary)
    string(REPLACE "'" "''" summary "${summary}")
    pagewise_described("" compare _compare)
    set(default_working_set "! default_working_set comes from the machine")
    if(_compare MATCHES "--working-set, *([^],]+)")
        set(default_working_set "kernel%default_working_set = '${CMAKE_MATCH_1}'")
    endif()
    pagewise_written(${name} _folder)
    configure_file(${PROJECT_SOURCE_DIR}/harness/${template} ${_folder}/main.f90 @ONLY)
endfunction()

# Write the explicit code of the kernel in the current folder, which is a header in harness after the definitions that follow.
function(pagewise_write_timed_code header)
    pagewise_described("" name _name)
    pagewise_written(${_name} _folder)
    list(TRANSFORM ARGN REPLACE "^([^=]+)=?(.*)" "#define \\1 \\2\n" OUTPUT_VARIABLE _definitions)
    list(JOIN _definitions "" _definitions)
    file(CONFIGURE OUTPUT ${_folder}/kernel.c CONTENT "@_definitions@#include \"${header}\"\n" @ONLY)
endfunction()
