# Link options of a page policy: fjmpg, fjmpg-thp and fjmpg-none use Fujitsu's large page library
# through its linker script (Feldman et al., PEARC '23, appendix A); Fujitsu's compilers link it themselves.
set(PAGEWISE_LIBMPG_ROOT /opt/FJSVxos/mmm CACHE PATH "hugepages=fjmpg: folder of libmpg and its linker script")

set(_library ${PAGEWISE_LIBMPG_ROOT}/lib64)
set(_script ${PAGEWISE_LIBMPG_ROOT}/util/bss-2mb.lds)
set(pagewise_page_options "")
if(CMAKE_Fortran_COMPILER_ID STREQUAL "Fujitsu")
    set(pagewise_page_options -Knolargepage)
    if(PAGEWISE_HUGEPAGES MATCHES "^fjmpg")
        set(pagewise_page_options -Klargepage)
    endif()
elseif(PAGEWISE_HUGEPAGES MATCHES "^fjmpg")
    file(GLOB _found ${_library}/libmpg.*)
    if(NOT _found OR NOT EXISTS ${_script})
        message(FATAL_ERROR "hugepages=${PAGEWISE_HUGEPAGES} needs Fujitsu's libmpg in ${_library} and its linker script "
                            "${_script}: set PAGEWISE_LIBMPG_ROOT to their folder"
        )
    endif()
    set(pagewise_page_options -Wl,-T${_script} -L${_library} -Wl,--push-state,--no-as-needed -lmpg -Wl,--pop-state)
endif()

function(pagewise_link_pages target)
    target_link_options(${target} PRIVATE ${pagewise_page_options})
endfunction()
