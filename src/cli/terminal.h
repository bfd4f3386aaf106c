#pragma once

// Text for people: colours on a terminal only, columns that line up, nothing that a terminal would obey.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tornasole::cli {

class Style {
 public:
  // Colours if the stream is a terminal that shows them and NO_COLOR is not set.
  static Style of(std::FILE* stream);
  static Style plain() noexcept { return Style(false); }

  std::string heading(std::string_view text) const { return paint("1", text); }
  std::string error(std::string_view text) const { return paint("1;31", text); }
  std::string warning(std::string_view text) const { return paint("33", text); }
  std::string faint(std::string_view text) const { return paint("2", text); }

 private:
  explicit Style(bool has_colours) noexcept : has_colours_(has_colours) {}
  std::string paint(std::string_view code, std::string_view text) const;
  bool has_colours_;
};

// Rows as lines; every column but the last is as wide as its widest cell, two blanks between. Cells are made printable.
std::string align(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

// Writes all of it. False if the stream did not take it.
bool print(std::FILE* stream, std::string_view text);

}  // namespace tornasole::cli
