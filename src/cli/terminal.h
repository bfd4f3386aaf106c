#pragma once

// Text for people: colours on a terminal only, columns that line up, nothing that a terminal would obey.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tornasole::cli {

enum class Tone : std::uint8_t { kPlain, kHeading, kError, kWarning, kFaint };

class Style {
 public:
  // Colours if the stream is a terminal that shows them and NO_COLOR is not set.
  static Style of(std::FILE* stream);
  static Style plain() noexcept { return Style(false); }
  static Style coloured() noexcept { return Style(true); }

  std::string heading(std::string_view text) const { return paint(Tone::kHeading, text); }
  std::string error(std::string_view text) const { return paint(Tone::kError, text); }
  std::string warning(std::string_view text) const { return paint(Tone::kWarning, text); }
  std::string faint(std::string_view text) const { return paint(Tone::kFaint, text); }
  std::string paint(Tone tone, std::string_view text) const;

 private:
  explicit Style(bool has_colours) noexcept : has_colours_(has_colours) {}
  bool has_colours_;
};

// What the stream shows.
struct Terminal {
  static constexpr std::size_t kPipedWidth = 80;

  Style style = Style::plain();
  bool is_terminal = false;
  bool has_unicode = false;         // by LC_ALL, LC_CTYPE or LANG
  std::size_t width = kPipedWidth;  // columns; of a pipe, COLUMNS or 80

  static Terminal of(std::FILE* stream);
  // Where tables end: the width of a terminal; a pipe has no edge.
  std::size_t table_width() const noexcept { return is_terminal ? width : static_cast<std::size_t>(-1); }
};

// Rows as lines; every column but the last is as wide as its widest cell, two blanks between. Cells are made printable.
std::string align(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

// Writes all of it. False if the stream did not take it.
bool print(std::FILE* stream, std::string_view text);

}  // namespace tornasole::cli
