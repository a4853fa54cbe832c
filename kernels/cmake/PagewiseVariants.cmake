# The variants of a build, and how a micro-kernel is built in one of them.
#
# A kernel's folder holds main.f90 and the timed code in files named after what they are for: kernel_<prefetch>_<stores>,
# kernel_<prefetch> or kernel, ending in .f90 or .c; the most particular one is taken. prefetch=compiler takes the source
# of prefetch=hardware and has the compiler insert the prefetches.
set(PAGEWISE_HUGEPAGES none CACHE STRING "Page policy unless --pages says otherwise: none, thp, hugetlbfs")
set(PAGEWISE_PREFETCH hardware CACHE STRING "hardware, compiler, software, block")
set(PAGEWISE_STORES regular CACHE STRING "regular, nontemporal")
set(PAGEWISE_PREFETCH_LATENCY 200 CACHE STRING "prefetch=compiler: memory latency in instructions, sets the distance")

set(pagewise_all_hugepages none thp hugetlbfs)
set(pagewise_all_prefetch hardware software block)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    list(APPEND pagewise_all_prefetch compiler)
elseif(PAGEWISE_PREFETCH STREQUAL "compiler")
    message(FATAL_ERROR "prefetch=compiler needs GCC: ${PAGEWISE_COMPILER} has no switch that makes it insert prefetches")
endif()
set(pagewise_all_stores regular nontemporal)
foreach(_dimension HUGEPAGES PREFETCH STORES)
    string(TOLOWER ${_dimension} _lower)
    if(NOT PAGEWISE_${_dimension} IN_LIST pagewise_all_${_lower})
        message(FATAL_ERROR "PAGEWISE_${_dimension}=${PAGEWISE_${_dimension}}: one of ${pagewise_all_${_lower}} is wanted")
    endif()
endforeach()

# GCC weighs a prefetch against the instructions around it and keeps few; these parameters make it insert them all.
set(pagewise_compiler_prefetch
    -fprefetch-loop-arrays --param=min-insn-to-prefetch-ratio=0 --param=simultaneous-prefetches=1000
    --param=prefetch-latency=${PAGEWISE_PREFETCH_LATENCY}
)

foreach(_option OPENMP PAPI)
    if(PAGEWISE_${_option})
        set(PAGEWISE_${_option}_LITERAL .true.)
    else()
        set(PAGEWISE_${_option}_LITERAL .false.)
    endif()
endforeach()

message(STATUS "pagewise ${PROJECT_VERSION}: ${PAGEWISE_COMPILER}, hugepages=${PAGEWISE_HUGEPAGES} "
               "prefetch=${PAGEWISE_PREFETCH} stores=${PAGEWISE_STORES} openmp=${PAGEWISE_OPENMP} papi=${PAGEWISE_PAPI}"
)

# Set `result` to the kernel source in the current folder for the two values.
function(pagewise_kernel_source prefetch stores result)
    if(prefetch STREQUAL "compiler")
        set(prefetch hardware)
    endif()
    file(GLOB _found CONFIGURE_DEPENDS kernel_${prefetch}_${stores}.* kernel_${prefetch}.[fc]* kernel.[fc]*)
    foreach(_name kernel_${prefetch}_${stores} kernel_${prefetch} kernel)
        foreach(_source ${_found})
            get_filename_component(_stem ${_source} NAME_WE)
            if(_stem STREQUAL _name)
                set(${result} ${_source} PARENT_SCOPE)
                return()
            endif()
        endforeach()
    endforeach()
    message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR} has no source for prefetch=${prefetch} stores=${stores}")
endfunction()

# The executable `target` of the kernel in the current folder with the given prefetch and stores, and further sources.
function(pagewise_kernel_executable target prefetch stores)
    pagewise_kernel_source(${prefetch} ${stores} _source)
    add_library(${target}-kernel OBJECT ${_source})
    pagewise_compile(${target}-kernel)
    target_include_directories(${target}-kernel PRIVATE ${PROJECT_SOURCE_DIR}/harness)
    target_link_libraries(${target}-kernel PRIVATE pagewise::pagewise)
    if(prefetch STREQUAL "compiler")
        target_compile_options(${target}-kernel PRIVATE ${pagewise_compiler_prefetch})
    endif()

    set(_build ${CMAKE_CURRENT_BINARY_DIR}/${target}.build)
    configure_file(${PROJECT_SOURCE_DIR}/harness/pw_build.f90.in ${_build}/pw_build.f90)
    add_executable(${target} main.f90 ${ARGN} ${_build}/pw_build.f90 $<TARGET_OBJECTS:${target}-kernel>)
    pagewise_compile(${target})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/harness)
    set_target_properties(${target} PROPERTIES Fortran_MODULE_DIRECTORY ${_build} LINKER_LANGUAGE Fortran)
    target_link_libraries(${target} PRIVATE pagewise_harness)
endfunction()

# Build and install the kernel in the current folder; with tests, build and run it in every variant. Arguments: sources
# that all variants share, besides main.f90.
function(pagewise_micro_kernel)
    get_filename_component(_kernel ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    pagewise_kernel_executable(pw-${_kernel} ${PAGEWISE_PREFETCH} ${PAGEWISE_STORES} ${ARGN})
    install(TARGETS pw-${_kernel} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(FILES kernel.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/pagewise/kernels RENAME ${_kernel}.yaml)
    if(BUILD_TESTING)
        include(PagewiseTests)
        pagewise_test_variants(${_kernel} ${ARGN})
    endif()
endfunction()
