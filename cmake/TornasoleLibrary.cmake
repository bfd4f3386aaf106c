# libtornasole: all folders in one shared library that exports what include/tornasole marks, and nothing else.
#
# Three things keep foreign symbols in: the visibility preset hides ours, --exclude-libs those of the static libraries,
# and the version script the instantiations of standard templates, which are visible whatever the preset says. The
# folders enter as objects, not as archives, since --exclude-libs would hide them too.
include(CMakePackageConfigHelpers)

set(folders base tensor config pattern plan reduce format store tensorboard capture trial rules inprocess)
set(objects)
set(libraries)
foreach(folder ${folders})
  list(APPEND objects $<TARGET_OBJECTS:tornasole_${folder}>)
  # What the folder links besides other folders: the libraries of TornasoleDependencies.cmake.
  get_target_property(linked tornasole_${folder} LINK_LIBRARIES)
  list(FILTER linked EXCLUDE REGEX "^tornasole_[a-z]+$")
  list(APPEND libraries ${linked})
endforeach()
list(REMOVE_DUPLICATES libraries)

# What one file that holds the engine is made of: this library, and the Python module.
add_library(tornasole_objects INTERFACE)
target_sources(tornasole_objects INTERFACE ${objects})
target_link_libraries(tornasole_objects INTERFACE ${libraries} Threads::Threads)

add_library(tornasole SHARED)
add_library(tornasole::tornasole ALIAS tornasole)
set(exports "${PROJECT_SOURCE_DIR}/cmake/tornasole.exports")
target_link_libraries(tornasole PRIVATE $<BUILD_INTERFACE:tornasole_flags> $<BUILD_INTERFACE:tornasole_objects>)
target_link_options(tornasole PRIVATE -Wl,--exclude-libs,ALL -Wl,--version-script=${exports})
target_include_directories(tornasole INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tornasole INTERFACE cxx_std_20)
# The binary interface may change with every minor version until 1.0.
set_target_properties(tornasole PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINKER_LANGUAGE CXX LINK_DEPENDS ${exports} INSTALL_RPATH ""
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tornasole")
configure_package_config_file(cmake/tornasoleConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/tornasoleConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/tornasoleConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
# Found relative to the file, so that an install tree may be moved.
file(RELATIVE_PATH PREFIX_OF_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/tornasole.pc.in "${CMAKE_CURRENT_BINARY_DIR}/tornasole.pc" @ONLY)

install(TARGETS tornasole EXPORT tornasole
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development)
install(DIRECTORY include/tornasole DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(EXPORT tornasole NAMESPACE tornasole:: FILE tornasoleTargets.cmake DESTINATION "${package_dir}"
  COMPONENT development)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tornasoleConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/tornasoleConfigVersion.cmake" DESTINATION "${package_dir}" COMPONENT development)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tornasole.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT development)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation FILES_MATCHING PATTERN "*.md")
install(FILES README.md LICENSE CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation)
