# The library libpagewise: core, pages, region and harness, with its Fortran modules and C headers. The objects of
# the micro-kernels, drivers and timed code, are installed with it.
add_library(pagewise STATIC)
add_library(pagewise::pagewise ALIAS pagewise)
pagewise_compile_with_nan(pagewise)
set(_modules ${PROJECT_BINARY_DIR}/include/pagewise)
set_target_properties(pagewise PROPERTIES Fortran_MODULE_DIRECTORY ${_modules})
target_include_directories(
    pagewise PUBLIC $<BUILD_INTERFACE:${_modules}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pagewise>
)
foreach(_room core pages region harness)
    add_subdirectory(${_room})
endforeach()

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pagewiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(
    cmake/pagewiseConfig.cmake.in ${PROJECT_BINARY_DIR}/pagewiseConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pagewise
)
set(_config ${CMAKE_INSTALL_LIBDIR}/cmake/pagewise)
install(TARGETS pagewise EXPORT pagewiseTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT pagewiseTargets NAMESPACE pagewise:: DESTINATION ${_config})
install(FILES ${PROJECT_BINARY_DIR}/pagewiseConfig.cmake ${PROJECT_BINARY_DIR}/pagewiseConfigVersion.cmake
        DESTINATION ${_config}
)
install(DIRECTORY ${_modules}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pagewise FILES_MATCHING PATTERN "*.mod")
install(FILES core/system.h pages/pages.h region/region.h region/marks.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pagewise)
