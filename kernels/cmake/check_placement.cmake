# The program's record has MIGRATED migrated threads, and its first thread ends on the CPU where it began if SAME is ON.
#
# Arguments: PROGRAM, ARGUMENTS (a list), RECORD (a file to write), MIGRATED, SAME. Skipped, exit code 77 of the program: it
# needs two CPUs.
file(REMOVE ${RECORD})
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} --record ${RECORD} RESULT_VARIABLE _status OUTPUT_QUIET)
if(_status EQUAL 77)
    message("SKIPPED: one CPU")
    return()
elseif(NOT _status EQUAL 0)
    message(FATAL_ERROR "exit code ${_status}")
endif()
file(READ ${RECORD} _record)
string(JSON _migrated GET "${_record}" placement migrated)
string(JSON _start GET "${_record}" placement cpus 0)
string(JSON _end GET "${_record}" placement cpus_at_end 0)
string(JSON _nodes LENGTH "${_record}" placement numa_nodes_at_end)
if(NOT _migrated EQUAL MIGRATED OR NOT _nodes EQUAL 1)
    message(FATAL_ERROR "${_migrated} threads migrated, not ${MIGRATED}")
endif()
if((SAME AND NOT _start EQUAL _end) OR (NOT SAME AND _start EQUAL _end))
    message(FATAL_ERROR "from CPU ${_start} to ${_end}")
endif()
