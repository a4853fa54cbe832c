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

# The object library `result` with the module pw_build of a build with the given prefetch and stores.
function(pagewise_build_facts prefetch stores result)
    set(_target pagewise-build-${prefetch}-${stores})
    if(NOT TARGET ${_target})
        set(_folder ${PROJECT_BINARY_DIR}/${_target})
        configure_file(${PROJECT_SOURCE_DIR}/harness/pw_build.f90.in ${_folder}/pw_build.f90)
        add_library(${_target} OBJECT ${_folder}/pw_build.f90)
        pagewise_compile(${_target})
        set_target_properties(${_target} PROPERTIES Fortran_MODULE_DIRECTORY ${_folder})
        target_include_directories(${_target} PUBLIC ${_folder})
        target_link_libraries(${_target} PUBLIC pagewise::pagewise)
    endif()
    set(${result} ${_target} PARENT_SCOPE)
endfunction()

# The executable `target` of the kernel in the current folder, built as the given prefetch and stores, with the timed code
# in `source` and further sources.
function(pagewise_kernel_executable target prefetch stores source)
    add_library(${target}-kernel OBJECT ${source})
    pagewise_compile(${target}-kernel)
    target_include_directories(${target}-kernel PRIVATE ${PROJECT_SOURCE_DIR}/harness)
    if(prefetch STREQUAL "compiler")
        target_compile_options(${target}-kernel PRIVATE ${pagewise_compiler_prefetch})
    endif()

    pagewise_build_facts(${prefetch} ${stores} _facts)
    add_executable(${target} main.f90 ${ARGN})
    pagewise_compile(${target})
    set_target_properties(
        ${target} PROPERTIES Fortran_MODULE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target}.modules LINKER_LANGUAGE Fortran
    )
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/harness)
    target_link_libraries(${target} PRIVATE ${target}-kernel ${_facts} pagewise::pagewise)
endfunction()

# Build and install the kernel in the current folder; with tests, build and run it in every variant. Arguments: sources
# that all variants share, besides main.f90.
function(pagewise_micro_kernel)
    get_filename_component(_kernel ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    pagewise_kernel_source(${PAGEWISE_PREFETCH} ${PAGEWISE_STORES} _source)
    pagewise_kernel_executable(pw-${_kernel} ${PAGEWISE_PREFETCH} ${PAGEWISE_STORES} ${_source} ${ARGN})
    install(TARGETS pw-${_kernel} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(FILES kernel.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/pagewise/kernels RENAME ${_kernel}.yaml)
    if(BUILD_TESTING)
        include(PagewiseTests)
        pagewise_test_variants(${_kernel} ${ARGN})
    endif()
endfunction()
