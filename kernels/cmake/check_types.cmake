# Every Fortran type with bind(c) has the size of the C structure that its comment names, and the same components at the same
# offsets. gfortran prints the type as C (-fc-prototypes); a C compiler compares both.
#
# Arguments: FORTRAN and C (compilers), C_FLAGS, FORTRAN_FLAGS (lists; with the folders of modules and headers), FOLDERS (with the
# sources, as a list), OUTPUT (a folder to write).
file(MAKE_DIRECTORY ${OUTPUT})
set(_checked 0)
list(TRANSFORM FOLDERS APPEND "/*.h" OUTPUT_VARIABLE _headers)
list(TRANSFORM FOLDERS APPEND "/*.f90" OUTPUT_VARIABLE _sources)
file(GLOB _headers ${_headers})
file(GLOB _sources ${_sources})
foreach(_source ${_sources})
    file(READ ${_source} _text)
    string(REPLACE ";" "," _text "${_text}")
    string(REGEX MATCHALL "(!> [^\n]*\n *)?type, *(public, )?bind\\(c\\)[^\n]*" _types "${_text}")
    if(_types STREQUAL "")
        continue()
    endif()
    execute_process(
        COMMAND ${FORTRAN} ${FORTRAN_FLAGS} -fc-prototypes -fsyntax-only -J ${OUTPUT} ${_source}
        OUTPUT_VARIABLE _printed ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY
    )
    string(REPLACE ";" "@" _printed "${_printed}") # in lists
    foreach(_type ${_types})
        string(REGEX MATCH "struct ([a-z_0-9]+).*:: ([a-z_0-9]+)" _named "${_type}")
        set(_structure "struct ${CMAKE_MATCH_1}")
        set(_name "${CMAKE_MATCH_2}")
        set(_header "")
        foreach(_file ${_headers})
            file(STRINGS ${_file} _defines REGEX "^(typedef )?${_structure} {")
            if(_named AND _defines)
                set(_header ${_file})
            endif()
        endforeach()
        if(_header STREQUAL "")
            message(FATAL_ERROR "${_source}: the comment above '${_type}' names no structure of a header: write '!> struct NAME'")
        endif()
        set(_definitions "")
        set(_needed ${_name})
        while(_needed)
            list(POP_FRONT _needed _next)
            string(REGEX MATCH "typedef struct ${_next} {[^}]*} ${_next}@" _definition "${_printed}")
            string(REGEX MATCHALL "[a-z_0-9]+_t " _types_of_members "${_definition}")
            list(TRANSFORM _types_of_members STRIP)
            list(REMOVE_ITEM _types_of_members ${_next})
            list(APPEND _needed ${_types_of_members})
            set(_definitions "${_definition}\n${_definitions}")
        endwhile()
        string(REGEX MATCH "typedef struct ${_name} {([^}]*)}" _definition "${_definitions}")
        string(REGEX REPLACE "/[*][^*]*[*]/" "" _definition "${CMAKE_MATCH_1}")
        string(REGEX MATCHALL "[a-z_0-9]+ *(\\[[0-9]+\\])?@" _members "${_definition}")
        string(REGEX REPLACE "([a-z_0-9]+)[^;]*" "SAME(\\1)" _members "${_members}")
        string(REPLACE ";" "\n" _members "${_members}")
        string(REPLACE "@" ";" _definitions "${_definitions}")
        file(WRITE ${OUTPUT}/${_name}.c
             "#include <stddef.h>\n#include \"${_header}\"\n${_definitions}"
             "#define SAME(member) _Static_assert(offsetof(${_structure}, member) == offsetof(${_name}, member) && "
             "sizeof(((${_structure} *)0)->member) == sizeof(((${_name} *)0)->member), #member);\n"
             "${_members}\n_Static_assert(sizeof(${_structure}) == sizeof(${_name}), \"size\");\n"
        )
        execute_process(COMMAND ${C} ${C_FLAGS} -fsyntax-only ${OUTPUT}/${_name}.c RESULT_VARIABLE _code ERROR_VARIABLE _error)
        if(NOT _code EQUAL 0)
            message(FATAL_ERROR "${_source}: ${_name} is not like ${_structure} of ${_header}:\n${_error}")
        endif()
        math(EXPR _checked "${_checked} + 1")
    endforeach()
endforeach()
if(_checked EQUAL 0)
    message(FATAL_ERROR "no type with bind(c) in ${FOLDERS}")
endif()
message(STATUS "${_checked} types")
