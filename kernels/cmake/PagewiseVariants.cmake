# The variants of a build, and how a micro-kernel is built in each of them.
#
# A variant is named <prefetch>-<stores>, with -loop-compiler at the end if the timed loops are plain Fortran instead of
# explicit vector code. kernel.yaml lists the dimensions that the kernel is sensitive to; a build that has no effect on it is
# the same as hardware-regular.
#
# A kernel's folder holds its driver, driver.f90, and the timed code: kernel.c or kernel.f90, of every variant, whose macros
# describe it (PW_PREFETCH_SOFTWARE, PW_STORES_NONTEMPORAL, PW_LOOP_COMPILER and so on), and loop.f90, of loop=compiler.
# prefetch=compiler has the compiler insert the prefetches.
set(PAGEWISE_PREFETCH hardware CACHE STRING "hardware, compiler, software, block")
set(PAGEWISE_STORES regular CACHE STRING "regular, nontemporal (x86-64, aarch64), zfill (aarch64)")
set(PAGEWISE_LOOP explicit CACHE STRING "How timed loops are written: explicit (vector intrinsics), compiler (plain Fortran)")
set(PAGEWISE_PREFETCH_LATENCY 200 CACHE STRING "prefetch=compiler: memory latency in instructions, sets the distance")

# RISC-V has prefetch instructions in the extension Zicbop only, and GCC before 14 does not use them; compilers then ignore
# requests for prefetches without a message.
set(pagewise_has_prefetch ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^riscv")
    pagewise_has_macro(__riscv_zicbop pagewise_has_prefetch)
endif()

# The options that make the Fortran compiler insert prefetches, and those that keep it from inserting them by default.
pagewise_options(pagewise_compiler_prefetch prefetch inserted)
pagewise_options(pagewise_no_compiler_prefetch prefetch without_flags)
string(JSON _not_for ERROR_VARIABLE _all GET "${pagewise_facts_Fortran}" prefetch not_for)
if(NOT pagewise_has_prefetch OR _not_for MATCHES "\"${PAGEWISE_TARGET}\"")
    set(pagewise_compiler_prefetch "")
endif()
if(PAGEWISE_PREFETCH STREQUAL "compiler" AND NOT pagewise_compiler_prefetch)
    message(FATAL_ERROR "prefetch=compiler: ${PAGEWISE_COMPILER} has no option to insert prefetches for "
                        "${PAGEWISE_TARGET}; use GCC (except for A64FX), Fujitsu's compiler, or prefetch=software"
    )
endif()

set(pagewise_all_prefetch hardware block)
if(pagewise_has_prefetch)
    list(APPEND pagewise_all_prefetch software)
endif()
if(pagewise_compiler_prefetch)
    list(APPEND pagewise_all_prefetch compiler)
endif()
# The stores that the processor has an instruction for, or a hint of the compiler's.
set(pagewise_all_stores regular)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(APPEND pagewise_all_stores nontemporal)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(APPEND pagewise_all_stores nontemporal zfill)
endif()
set(pagewise_all_loop explicit compiler)
foreach(_dimension HUGEPAGES PREFETCH STORES LOOP)
    string(TOLOWER ${_dimension} _lower)
    if(NOT PAGEWISE_${_dimension} IN_LIST pagewise_all_${_lower})
        message(FATAL_ERROR "PAGEWISE_${_dimension}=${PAGEWISE_${_dimension}} is not available for ${CMAKE_SYSTEM_PROCESSOR}: "
                            "choose one of ${pagewise_all_${_lower}}"
        )
    endif()
endforeach()

# Set `result` to the name of a variant.
function(pagewise_variant prefetch stores loop result)
    set(_name ${prefetch}-${stores})
    if(loop STREQUAL "compiler")
        string(APPEND _name -loop-compiler)
    endif()
    set(${result} ${_name} PARENT_SCOPE)
endfunction()

# Set `prefetch`, `stores` and `loop` to the parts of a variant's name.
macro(pagewise_split variant)
    string(REGEX MATCH "^([a-z]+)-([a-z]+)(-loop-compiler)?$" _ ${variant})
    set(prefetch ${CMAKE_MATCH_1})
    set(stores ${CMAKE_MATCH_2})
    set(loop explicit)
    if(CMAKE_MATCH_3)
        set(loop compiler)
    endif()
endmacro()

# Every variant of the micro-kernels for this processor and compiler, or only the plain one. Prefetches by the programmer,
# and stores other than regular ones, are explicit code; compilers insert prefetches into loops that they vectorise.
set(pagewise_all_variants "")
foreach(_stores ${pagewise_all_stores})
    foreach(_prefetch ${pagewise_all_prefetch})
        if(NOT _prefetch STREQUAL "compiler")
            list(APPEND pagewise_all_variants ${_prefetch}-${_stores})
        endif()
        if(_prefetch MATCHES "^(hardware|compiler)$" AND _stores STREQUAL "regular")
            list(APPEND pagewise_all_variants ${_prefetch}-regular-loop-compiler)
        endif()
    endforeach()
endforeach()
if(NOT PAGEWISE_ALL_VARIANTS)
    set(pagewise_all_variants hardware-regular)
endif()
pagewise_variant(${PAGEWISE_PREFETCH} ${PAGEWISE_STORES} ${PAGEWISE_LOOP} pagewise_built_variant)
# Mini-apps, and programs that call a library, are written in one way only.
if(PAGEWISE_MICRO AND NOT PAGEWISE_NEEDS AND NOT pagewise_built_variant IN_LIST pagewise_all_variants)
    message(FATAL_ERROR "prefetch=${PAGEWISE_PREFETCH} stores=${PAGEWISE_STORES} loop=${PAGEWISE_LOOP} do not go together: "
                        "prefetch=compiler needs loop=compiler; loop=compiler needs stores=regular and prefetch=hardware or "
                        "compiler; without PAGEWISE_ALL_VARIANTS there is only hardware-regular"
    )
endif()

foreach(_option OPENMP PAPI)
    if(PAGEWISE_${_option})
        set(PAGEWISE_${_option}_LITERAL .true.)
    else()
        set(PAGEWISE_${_option}_LITERAL .false.)
    endif()
endforeach()

message(STATUS "pagewise ${PROJECT_VERSION}: ${PAGEWISE_COMPILER}, hugepages=${PAGEWISE_HUGEPAGES} "
               "prefetch=${PAGEWISE_PREFETCH} stores=${PAGEWISE_STORES} loop=${PAGEWISE_LOOP} simd=${PAGEWISE_SIMD} "
               "openmp=${PAGEWISE_OPENMP} runtime=${PAGEWISE_RUNTIME} papi=${PAGEWISE_PAPI}"
)

# CMake 3.25 tracks neither the modules that object libraries use nor those of an installed library. An object that uses the
# library's modules is recompiled with the library, because it would otherwise hold outdated types.
if(PAGEWISE_LIBRARY)
    set(pagewise_archive ${PROJECT_BINARY_DIR}/${CMAKE_STATIC_LIBRARY_PREFIX}pagewise${CMAKE_STATIC_LIBRARY_SUFFIX})
else()
    get_target_property(pagewise_archive pagewise::pagewise LOCATION)
endif()

# Set `result` to the value that a kernel uses of a dimension: the default if it is not sensitive to it. zfill avoids
# reading a line before it is stored: code that reads its output anyway would lose the line's contents.
function(pagewise_effective dimension value plain result)
    pagewise_json(kernel.yaml _json)
    pagewise_members("${_json}" _sensitive_to sensitive_to)
    if(NOT dimension IN_LIST _sensitive_to)
        set(value ${plain})
    elseif(value STREQUAL "zfill")
        pagewise_member("${_json}" _allocated traffic write_allocate)
        if(_allocated STREQUAL "0")
            set(value ${plain})
        endif()
    endif()
    set(${result} ${value} PARENT_SCOPE)
endfunction()

# Set `result` to the variant that the kernel in the current folder uses in a build of this variant.
function(pagewise_effective_variant variant result)
    pagewise_split(${variant})
    pagewise_effective(prefetch ${prefetch} hardware prefetch)
    pagewise_effective(stores ${stores} regular stores)
    pagewise_effective(loop ${loop} explicit loop)
    pagewise_variant(${prefetch} ${stores} ${loop} _name)
    set(${result} ${_name} PARENT_SCOPE)
endfunction()

# Set `result` to the sources of the timed code of the kernel in `folder` for a variant: kernel.c, kernel.f90 and, for
# loop=compiler, loop.f90.
function(pagewise_kernel_sources folder variant result)
    pagewise_split(${variant})
    set(_names kernel.c kernel.f90)
    if(loop STREQUAL "compiler")
        list(APPEND _names loop.f90)
    endif()
    set(_sources "")
    foreach(_name ${_names})
        pagewise_source(${_name} _source ${folder})
        if(EXISTS ${_source})
            list(APPEND _sources ${_source})
        endif()
    endforeach()
    set(${result} ${_sources} PARENT_SCOPE)
endfunction()

# The object library `result` that holds what an executable was built as; `needs`: the kind of library that it needs, if any.
function(pagewise_build_facts variant needs result)
    pagewise_split(${variant})
    set(_target pagewise-build-${variant}${needs})
    if(NOT TARGET ${_target})
        set(_folder ${PROJECT_BINARY_DIR}/${_target})
        set(_file "")
        if(needs)
            pagewise_needed(${needs} PAGEWISE_CALLED_LIBRARY _files)
            list(GET _files 0 _file)
            file(REAL_PATH ${_file} _file)
            # Functions of a static library are in the program itself.
            string(REGEX REPLACE ".*\\.a$" "" _file ${_file})
        endif()
        string(REGEX REPLACE "(................................................................)" "\\1'// &\n        '"
               PAGEWISE_LIBRARY_FILE "${_file}"
        )
        configure_file(${PROJECT_SOURCE_DIR}/harness/pw_build.f90.in ${_folder}/pw_build.f90)
        add_library(${_target} OBJECT ${_folder}/pw_build.f90)
        pagewise_compile(${_target})
        target_link_libraries(${_target} PRIVATE pagewise::pagewise)
        set_source_files_properties(${_folder}/pw_build.f90 PROPERTIES OBJECT_DEPENDS ${pagewise_archive})
    endif()
    set(${result} ${_target} PARENT_SCOPE)
endfunction()

# Static memory in the program `target` if the kernel.yaml in `folder` demands it.
function(pagewise_static_arrays target folder)
    pagewise_json(${folder}/kernel.yaml _json)
    pagewise_member("${_json}" _static static_arrays)
    if(_static)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:pagewise::static-memory>)
    endif()
endfunction()

# The program `target` from the driver of `kernel` and the object library `timed`; it reports the given variant, whether it
# is sensitive to it or not.
function(pagewise_program target kernel timed variant)
    pagewise_needs(${kernel} _needs)
    pagewise_build_facts(${variant} "${_needs}" _facts)
    add_executable(${target})
    foreach(_objects pagewise::pw-${kernel}-driver ${timed} ${_facts})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${_objects}>)
    endforeach()
    pagewise_static_arrays(${target} ${PROJECT_SOURCE_DIR}/micro/${kernel})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE Fortran)
    target_link_libraries(${target} PRIVATE pagewise::pagewise)
    if(_needs)
        pagewise_needed(${_needs} _name _files)
        target_link_libraries(${target} PRIVATE ${_files})
    endif()
    if(PAGEWISE_OPENMP)
        target_link_libraries(${target} PRIVATE OpenMP::OpenMP_Fortran)
    endif()
    pagewise_link_pages(${target})
endfunction()

# The object library `target` of timed code from the sources that follow, for a variant that the kernel is sensitive to.
function(pagewise_timed_code target variant)
    add_library(${target} OBJECT ${ARGN})
    pagewise_compile(${target})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/harness ${CMAKE_CURRENT_SOURCE_DIR})
    pagewise_split(${variant})
    string(TOUPPER "PW_PREFETCH_${prefetch};PW_STORES_${stores};PW_LOOP_${loop}" _macros)
    target_compile_definitions(${target} PRIVATE ${_macros})
    pagewise_simd(${target} ${PAGEWISE_SIMD})
    if(prefetch STREQUAL "compiler")
        target_compile_options(${target} PRIVATE ${pagewise_compiler_prefetch})
    else()
        target_compile_options(${target} PRIVATE ${pagewise_no_compiler_prefetch})
    endif()
endfunction()

# Set `result` to the variants that the kernel in the current folder is sensitive to.
function(pagewise_kernel_variants result)
    set(_all "")
    foreach(_variant ${pagewise_all_variants})
        pagewise_effective_variant(${_variant} _effective)
        list(APPEND _all ${_effective})
    endforeach()
    list(REMOVE_DUPLICATES _all)
    set(${result} ${_all} PARENT_SCOPE)
endfunction()

# Part of the library, so that each is compiled once per compiler instead of once per configuration: the kernel's driver,
# main.f90 and the sources given, and its timed code in every variant.
function(_pagewise_kernel_objects kernel)
    pagewise_source(main.f90 _main)
    add_library(pw-${kernel}-driver OBJECT ${_main} ${ARGN})
    set_source_files_properties(${_main} ${ARGN} PROPERTIES OBJECT_DEPENDS ${pagewise_archive})
    pagewise_compile_with_nan(pw-${kernel}-driver)
    set_target_properties(pw-${kernel}-driver PROPERTIES Fortran_MODULE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/modules)
    target_include_directories(pw-${kernel}-driver PRIVATE ${PROJECT_SOURCE_DIR}/harness ${PROJECT_SOURCE_DIR}/pages)
    target_link_libraries(pw-${kernel}-driver PRIVATE pagewise)
    set(_objects pw-${kernel}-driver)
    pagewise_kernel_variants(_variants)
    foreach(_variant ${_variants})
        pagewise_kernel_sources(${CMAKE_CURRENT_SOURCE_DIR} ${_variant} _sources)
        pagewise_timed_code(pw-${kernel}-timed-${_variant} ${_variant} ${_sources})
        list(APPEND _objects pw-${kernel}-timed-${_variant})
    endforeach()
    pagewise_effective(library yes no _calls_library)
    pagewise_needs(${kernel} _needs)
    if(_calls_library AND NOT _needs)
        target_compile_options(pw-${kernel}-timed-hardware-regular PRIVATE ${pagewise_no_vectors})
        set(_mathlibs ${pagewise_mathlibs})
        list(REMOVE_ITEM _mathlibs libm)
        foreach(_mathlib ${_mathlibs})
            pagewise_kernel_sources(${CMAKE_CURRENT_SOURCE_DIR} hardware-regular _sources)
            pagewise_timed_code(pw-${kernel}-timed-${_mathlib} hardware-regular ${_sources})
            target_compile_definitions(
                pw-${kernel}-timed-${_mathlib} PRIVATE PW_MATH_VECTORS ${pagewise_mathlib_${_mathlib}_DEFINE}
            )
            target_compile_options(
                pw-${kernel}-timed-${_mathlib} PRIVATE ${pagewise_mathlib_${_mathlib}}
            )
            list(APPEND _objects pw-${kernel}-timed-${_mathlib})
        endforeach()
    endif()
    pagewise_sector_objects(${kernel} _objects)
    foreach(_target ${_objects})
        add_library(pagewise::${_target} ALIAS ${_target})
    endforeach()
    install(TARGETS ${_objects} EXPORT pagewiseTargets OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/pagewise)
endfunction()

# The kernel in the current folder: its objects, its program, its tests. Arguments: sources of its driver in addition to
# driver.f90; WHOLE_NUMBERS: its results are integers or addresses, which cannot be NaN; TYPES: it has the option
# --type; HEADERS: the C headers whose declarations the driver uses, in the module <kernel>_h.
function(pagewise_micro_kernel)
    cmake_parse_arguments(PARSE_ARGV 0 _arg "WHOLE_NUMBERS;TYPES" "" HEADERS)
    get_filename_component(_kernel ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    pagewise_effective(loop compiler explicit _loop)
    pagewise_source(loop.f90 _plain)
    if((_loop STREQUAL "compiler" AND NOT EXISTS ${_plain}) OR (_loop STREQUAL "explicit" AND EXISTS ${_plain}))
        message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/kernel.yaml: sensitive_to must list loop if, and only if, the kernel has "
                            "a plain loop: loop.f90, or one from its equation"
        )
    endif()
    if(PAGEWISE_LIBRARY)
        if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/driver.f90)
            pagewise_write_main_of(driver.f90)
            list(APPEND _arg_UNPARSED_ARGUMENTS driver.f90)
        endif()
        if(_arg_HEADERS)
            pagewise_headers(${_kernel}_h _header ${_arg_HEADERS})
            list(APPEND _arg_UNPARSED_ARGUMENTS ${_header})
        endif()
        _pagewise_kernel_objects(${_kernel} ${_arg_UNPARSED_ARGUMENTS})
    endif()
    pagewise_needs(${_kernel} _needs)
    if(NOT _needs STREQUAL PAGEWISE_NEEDS)
        pagewise_needed("${_needs}" _name _files)
        if(NOT _files)
            return()
        endif()
    endif()
    if(PAGEWISE_MICRO)
        pagewise_effective_variant(${pagewise_built_variant} _variant)
        set(_timed pagewise::pw-${_kernel}-timed-${_variant})
        set(_libraries "")
        pagewise_effective(library ${PAGEWISE_MATHLIB} libm _mathlib)
        if(NOT _needs AND NOT _mathlib STREQUAL "libm")
            set(_timed pagewise::pw-${_kernel}-timed-${_mathlib})
            pagewise_mathlib_link(${_mathlib} _libraries)
        endif()
        pagewise_effective(sector ${PAGEWISE_SECTOR} none _sector)
        if(_sector STREQUAL "isolate")
            set(_timed pagewise::pw-${_kernel}-timed-sector)
            list(APPEND _libraries -Khpctag)
        endif()
        pagewise_program(pw-${_kernel} ${_kernel} ${_timed} ${pagewise_built_variant})
        target_link_libraries(pw-${_kernel} PRIVATE ${_libraries})
        install(TARGETS pw-${_kernel} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
        pagewise_write_json(kernel.yaml ${_kernel} _description)
        install(FILES ${_description} DESTINATION ${CMAKE_INSTALL_DATADIR}/pagewise/kernels)
    endif()
    if(PAGEWISE_MICRO AND PAGEWISE_LIBRARY AND BUILD_TESTING)
        include(PagewiseTests)
        pagewise_test_variants(${_kernel} ${_arg_WHOLE_NUMBERS})
        if(_arg_TYPES)
            pagewise_test_types(${_kernel})
        endif()
    endif()
endfunction()
