#include "cli/text_width.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace tornasole::cli {
namespace {

struct Range {
  std::uint32_t first, last;
};
constexpr std::array<Range, 13> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0xA4CF},
                                          {0xA960, 0xA97F},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};
constexpr std::array<Range, 5> kCombining = {
    {{0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0xFE20, 0xFE2F}}};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, std::uint32_t c) noexcept {
  return std::any_of(ranges.begin(), ranges.end(), [c](Range range) { return c >= range.first && c <= range.last; });
}

// A character and what stands on it, as bytes of the text and as columns.
struct Glyph {
  std::size_t bytes = 0, columns = 0;
};

Glyph glyph_at(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  length = std::min(length, text.size());
  std::uint32_t c = length == 1 ? first : first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) c = (c << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  return {length, contains(kCombining, c) ? 0U : contains(kWide, c) ? 2U : 1U};
}

}  // namespace

std::size_t columns_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Glyph glyph = glyph_at(text);
    columns += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return columns;
}

std::string clip_middle(std::string_view text, std::size_t columns, bool has_unicode) {
  if (text.size() <= columns || columns_of(text) <= columns) return std::string(text);
  const std::string_view mark = has_unicode ? "\u2026" : "...";
  const std::size_t mark_columns = has_unicode ? 1 : 3;
  if (columns <= mark_columns) return std::string(columns, '.');
  std::vector<Glyph> glyphs;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(glyphs.back().bytes)) {
    glyphs.push_back(glyph_at(rest));
  }
  const std::size_t room = columns - mark_columns;
  const std::size_t head_room = room / 2;
  std::size_t used = 0;
  std::size_t head = 0;
  for (std::size_t i = 0; i < glyphs.size() && used + glyphs[i].columns <= head_room; ++i) {
    used += glyphs[i].columns;
    head += glyphs[i].bytes;
  }
  std::size_t tail = 0;
  for (std::size_t i = glyphs.size(); i-- > 0 && used + glyphs[i].columns <= room;) {
    used += glyphs[i].columns;
    tail += glyphs[i].bytes;
  }
  return std::string(text.substr(0, head)) + std::string(mark) + std::string(text.substr(text.size() - tail));
}

std::string wrap(std::string_view text, std::size_t columns, std::string_view indent, std::size_t used) {
  std::string out;
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    const std::size_t width = columns_of(word);
    if (!is_first && used + 1 + width > columns) {
      out += "\n" + std::string(indent);
      used = columns_of(indent);
    } else if (!is_first) {
      out += ' ';
      ++used;
    }
    out += word;
    is_first = false;
    used += width;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

}  // namespace tornasole::cli
