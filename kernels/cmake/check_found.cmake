# Disassemble objects and look for instructions: each regular expression in WANTED (a list) must be found.
#
# Arguments: OBJDUMP, OBJECTS, WANTED.
execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${OBJECTS} OUTPUT_VARIABLE _text COMMAND_ERROR_IS_FATAL ANY)
foreach(_pattern ${WANTED})
    string(REGEX MATCHALL "${_pattern}" _matches "${_text}")
    list(LENGTH _matches _count)
    message("${_pattern}: ${_count}")
    if(_count EQUAL 0)
        message(FATAL_ERROR "${OBJECTS}: no instruction matches ${_pattern}")
    endif()
endforeach()
