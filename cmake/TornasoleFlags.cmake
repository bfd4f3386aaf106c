# Flags of every target: the standard, warnings as errors, hardening, hidden symbols.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")

find_program(TORNASOLE_CCACHE ccache)
if(TORNASOLE_CCACHE)
  # Paths below the source tree are hashed relative to it, so that every clone shares the cache.
  set(TORNASOLE_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${TORNASOLE_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TORNASOLE_LAUNCHER}")
  set(CMAKE_C_COMPILER_LAUNCHER "${TORNASOLE_LAUNCHER}")
endif()

set(TORNASOLE_SANITIZE "" CACHE STRING "Sanitizers: empty, address, or thread")
if(TORNASOLE_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # compiles faster, and reports point where the code says
endif()

add_library(tornasole_flags INTERFACE)
target_compile_options(tornasole_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnull-dereference -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi>
  -fstack-protector-strong -fno-omit-frame-pointer)
target_link_options(tornasole_flags INTERFACE -fuse-ld=mold -Wl,-z,relro,-z,now,-z,noexecstack)
if(TORNASOLE_SANITIZE STREQUAL "address")
  target_compile_options(tornasole_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(tornasole_flags INTERFACE -fsanitize=address,undefined)
  if(TORNASOLE_FUZZ)
    target_compile_options(tornasole_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
elseif(TORNASOLE_SANITIZE STREQUAL "thread")
  target_compile_options(tornasole_flags INTERFACE -fsanitize=thread)
  target_link_options(tornasole_flags INTERFACE -fsanitize=thread)
else()
  target_compile_options(tornasole_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  target_compile_definitions(tornasole_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 takes values inside std::variant and std::optional for null or unset when it inlines them.
  target_compile_options(tornasole_flags INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 deprecates a function that its own std::ranges::stable_sort calls.
  target_compile_options(tornasole_flags INTERFACE -Wno-deprecated-declarations)
endif()
