# Language standards, warnings, and the compiler's name as records and modules have it.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# No source of ours is preprocessed; and flang-22 -E, which Ninja would compile from, doubles backslashes in strings.
set(CMAKE_Fortran_PREPROCESS OFF)
include(GNUInstallDirs)

if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    set(pagewise_fortran_warnings -std=f2018 -Wall -Wextra -fimplicit-none)
    set(_name gcc)
elseif(CMAKE_Fortran_COMPILER_ID STREQUAL "LLVMFlang")
    set(pagewise_fortran_warnings -std=f2018)
    set(_name llvm)
else()
    set(pagewise_fortran_warnings "")
    string(TOLOWER "${CMAKE_Fortran_COMPILER_ID}" _name)
endif()
set(PAGEWISE_COMPILER "${_name}-${CMAKE_Fortran_COMPILER_VERSION}")
set(pagewise_c_warnings -Wall -Wextra -Wpedantic -Wconversion)
if(PAGEWISE_WERROR)
    list(APPEND pagewise_fortran_warnings -Werror)
    list(APPEND pagewise_c_warnings -Werror)
endif()

if(PAGEWISE_OPENMP)
    find_package(OpenMP REQUIRED COMPONENTS Fortran)
endif()

# Warnings, and threads where they are wanted, for the sources of a target of ours.
function(pagewise_compile target)
    target_compile_options(
        ${target} PRIVATE $<$<COMPILE_LANGUAGE:Fortran>:${pagewise_fortran_warnings}>
                          $<$<COMPILE_LANGUAGE:C>:${pagewise_c_warnings}>
    )
    if(PAGEWISE_OPENMP)
        target_link_libraries(${target} PRIVATE OpenMP::OpenMP_Fortran)
    endif()
endfunction()
