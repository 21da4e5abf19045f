# The package files behind find_package(run_model).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/run_model)
install(EXPORT run_model_targets NAMESPACE run_model:: DESTINATION ${package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/run_model-config.cmake.in
  ${PROJECT_BINARY_DIR}/run_model-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/run_model-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_LIST_DIR}/RunModelCodecs.cmake
  ${PROJECT_BINARY_DIR}/run_model-config.cmake
  ${PROJECT_BINARY_DIR}/run_model-config-version.cmake
  DESTINATION ${package_dir})
