#pragma once

// How many columns of a terminal a text takes, and texts cut to a number of columns.

#include <cstddef>
#include <string>
#include <string_view>

namespace tornasole::cli {

// The text must be printable (base/utf8.h): no control characters. Wide characters take two columns, combining marks
// none.
std::size_t columns_of(std::string_view text) noexcept;
// At most `columns` wide; what is longer loses its middle, since both ends of a tensor's name tell it from others.
std::string clip_middle(std::string_view text, std::size_t columns, bool has_unicode);
// Lines of at most `columns`, broken at blanks; a word that is longer stays whole. Each line after the first begins
// with `indent`; the first is taken to begin in column `used`.
std::string wrap(std::string_view text, std::size_t columns, std::string_view indent, std::size_t used = 0);

}  // namespace tornasole::cli
