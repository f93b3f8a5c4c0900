# What `cmake --install` puts where, and the package that find_package(foretrain) finds.
include(CMakePackageConfigHelpers)

install(TARGETS foretrain EXPORT foretrain_targets)
install(TARGETS foretrain_cli)
install(DIRECTORY include/foretrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The presets: the program finds them from its own place (sim/base/data_directory.h).
install(DIRECTORY topologies scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/foretrain)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/foretrain)
install(EXPORT foretrain_targets NAMESPACE foretrain:: DESTINATION ${package_directory})
configure_package_config_file(cmake/foretrain-config.cmake.in foretrain-config.cmake
  INSTALL_DESTINATION ${package_directory} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(foretrain-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/foretrain-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/foretrain-config-version.cmake
  DESTINATION ${package_directory})
