#pragma once

#include <string>
#include <string_view>

namespace tornasole {

// Text from outside as the text of HTML or SVG, attributes included: markup is shown, not obeyed; what must not reach a
// terminal is escaped as `printable` does.
std::string escape_markup(std::string_view text);

}  // namespace tornasole
