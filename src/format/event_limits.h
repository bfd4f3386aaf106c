#pragma once

// What an event may hold at most (docs/format.md 3.4).

#include <cstddef>

namespace tornasole::format {

// No framework makes tensors of more dimensions.
inline constexpr std::size_t kMaxRank = 64;
// An empty text takes two bytes on disk and sixteen times that in memory, so their number is bounded by itself.
inline constexpr std::size_t kMaxTexts = std::size_t{1} << 22;

}  // namespace tornasole::format
