#pragma once

// Listing of a directory tree beneath a root handle (see Store::list).

#include <sys/stat.h>

#include <string>
#include <vector>

#include "store/local/beneath.h"
#include "store/store.h"

namespace tornasole::store {

struct ListOptions {
  bool recursive = false;
  std::size_t max_entries = 10'000'000;  // more is kCorrupt: no trial has them, and they would fill the memory
  SystemCalls calls = {};
};

// `root_path` is for messages only.
Result<std::vector<Entry>> list_beneath(int root, const std::string& root_path, const std::string& directory,
                                        const ListOptions& options);

FileStatus to_file_status(const struct stat& found) noexcept;

}  // namespace tornasole::store
