#pragma once

// Paths inside a store, taken apart. The rules a path must obey are in store.h.

#include <cstddef>
#include <string_view>

#include "tornasole/result.h"

namespace tornasole::store {

inline constexpr std::string_view kTemporarySuffix = ".tmp";
inline constexpr std::size_t kMaxPathDepth = 64;
inline constexpr std::size_t kMaxComponentBytes = 255;

struct SplitPath {
  std::string_view directory;  // "" for the root
  std::string_view name;
};
// "a/b/c" -> "a/b" and "c".
SplitPath split_path(std::string_view path) noexcept;

// The path of a file about to be written: its temporary name must be possible too.
Status check_new_path(std::string_view path);

}  // namespace tornasole::store
