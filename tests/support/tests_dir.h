#pragma once

// The folder tests/ of the sources, found from where the test program lies: a build directory is inside the sources. No
// path is compiled in, so that the compiler cache serves every clone.

#include <filesystem>
#include <string>

namespace tornasole {

inline std::string tests_dir() {
  namespace fs = std::filesystem;
  const fs::path program = fs::read_symlink("/proc/self/exe");
  for (fs::path folder = program.parent_path(); folder != folder.root_path(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "tests" / "golden")) return folder / "tests";
  }
  return "tests";
}

}  // namespace tornasole
