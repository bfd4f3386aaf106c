#pragma once

// The letters of pictures: printable ASCII, five by eight dots.

#include <cstdint>

namespace tornasole::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 8;   // the last row is below the line
inline constexpr int kGlyphAdvance = 6;  // from one letter to the next

// Whether the dot is set; false for anything that is no printable ASCII.
bool glyph_dot(char c, int x, int y) noexcept;

}  // namespace tornasole::cli
