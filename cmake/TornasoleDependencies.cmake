# Libraries of the engine; docs/dependencies.md says why each. Header-only and static ones end up hidden inside
# libtornasole, the others are linked by their own names.
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)

function(tornasole_pkg target module)
  pkg_check_modules(${target} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  add_library(tornasole::dep_${target} ALIAS PkgConfig::${target})
endfunction()
tornasole_pkg(isal libisal)
tornasole_pkg(simdjson simdjson)

# Static where Debian has it, so that no other copy in the process is used by mistake.
function(tornasole_static_library target archive header)
  find_library(${target}_ARCHIVE NAMES ${archive} REQUIRED)
  find_path(${target}_INCLUDE NAMES ${header} REQUIRED)
  add_library(tornasole_dep_${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(tornasole_dep_${target} PROPERTIES
    IMPORTED_LOCATION "${${target}_ARCHIVE}" INTERFACE_INCLUDE_DIRECTORIES "${${target}_INCLUDE}")
  add_library(tornasole::dep_${target} ALIAS tornasole_dep_${target})
endfunction()
tornasole_static_library(pcre2 libpcre2-8.a pcre2.h)
tornasole_static_library(xxhash libxxhash.a xxhash.h)

# fmt: compiled here, so that it is hidden and compiled once.
add_library(tornasole_dep_fmt STATIC "${PROJECT_SOURCE_DIR}/cmake/fmt_library.cc")
add_library(tornasole::dep_fmt ALIAS tornasole_dep_fmt)
target_include_directories(tornasole_dep_fmt SYSTEM PUBLIC
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(tornasole_dep_fmt PRIVATE tornasole_flags)

# libcurl: its headers only. The library is loaded when an s3:// path is first used, see docs/dependencies.md.
find_path(curl_INCLUDE NAMES curl/curl.h REQUIRED)
add_library(tornasole_dep_curl_headers INTERFACE)
add_library(tornasole::dep_curl_headers ALIAS tornasole_dep_curl_headers)
target_include_directories(tornasole_dep_curl_headers SYSTEM INTERFACE "${curl_INCLUDE}")
