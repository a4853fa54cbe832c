# Sectors of the caches (A64FX): ways that are reserved for arrays.
#
# Kernels that are sensitive to `sector` have Fujitsu's optimisation control lines (!OCL SCACHE_ISOLATE_...) around their
# Fortran loops. Other compilers ignore these lines; Fujitsu's follows them with -Kocl only, and addresses get the number of
# their sector by -Khpctag (compilers/fujitsu.json).
set(PAGEWISE_SECTOR none CACHE STRING "Sectors of the caches: none, isolate (ways for reused arrays; Fujitsu's compiler for A64FX)")
if(NOT PAGEWISE_SECTOR MATCHES "^(none|isolate)$")
    message(FATAL_ERROR "PAGEWISE_SECTOR=${PAGEWISE_SECTOR}: choose none or isolate")
endif()

set(pagewise_sector "")
if(pagewise_processor STREQUAL "aarch64")
    pagewise_options(pagewise_sector sector isolate)
endif()
# As builds report it; `none` is not reported.
string(REGEX REPLACE "^none$" "" PAGEWISE_REPORTED_SECTOR ${PAGEWISE_SECTOR})
if(PAGEWISE_SECTOR STREQUAL "isolate")
    if(NOT pagewise_sector)
        message(FATAL_ERROR "PAGEWISE_SECTOR=isolate needs Fujitsu's Fortran compiler for A64FX, not ${PAGEWISE_COMPILER} for "
                            "${CMAKE_SYSTEM_PROCESSOR}: set PAGEWISE_SECTOR=none; `pagewise simulate --sector` simulates sectors"
        )
    endif()
    if(NOT PAGEWISE_LOOP STREQUAL "compiler" OR NOT PAGEWISE_PREFETCH STREQUAL "hardware")
        message(FATAL_ERROR "PAGEWISE_SECTOR=isolate needs PAGEWISE_LOOP=compiler and PAGEWISE_PREFETCH=hardware: only plain Fortran "
                            "loops have the lines for sectors"
        )
    endif()
endif()

# Add the timed code of the kernel in the current folder with sectors to `objects`, if it is sensitive to them and the compiler
# has them.
function(pagewise_sector_objects kernel objects)
    pagewise_effective(sector isolate none _sector)
    if(NOT pagewise_sector OR _sector STREQUAL "none")
        return()
    endif()
    pagewise_effective_variant(hardware-regular-loop-compiler _variant)
    pagewise_kernel_sources(${CMAKE_CURRENT_SOURCE_DIR} ${_variant} _sources)
    pagewise_timed_code(pw-${kernel}-timed-sector ${_variant} ${_sources})
    target_compile_options(pw-${kernel}-timed-sector PRIVATE ${pagewise_sector})
    set(${objects} ${${objects}} pw-${kernel}-timed-sector PARENT_SCOPE)
endfunction()
