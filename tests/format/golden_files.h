#pragma once

// Trials written by the original debugger, under golden/smdebug.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/tests_dir.h"

namespace tornasole::format {

inline std::filesystem::path golden_root() { return std::filesystem::path(tests_dir()) / "golden" / "smdebug"; }

inline std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

// Paths below the root whose directory part contains `directory` and whose name ends in `suffix`, sorted.
inline std::vector<std::string> golden_files(std::string_view directory, std::string_view suffix) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden_root())) {
    const std::string path = std::filesystem::relative(entry.path(), golden_root()).string();
    if (entry.is_regular_file() && path.find(directory) != std::string::npos && path.ends_with(suffix)) {
      found.push_back(path);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tornasole::format
