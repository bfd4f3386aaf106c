#pragma once

#include <string>
#include <string_view>

namespace tornasole {

bool is_valid_utf8(std::string_view text) noexcept;
// Every maximal bad sequence replaced by U+FFFD.
std::string replace_bad_utf8(std::string_view text);
// Text from outside made safe for a terminal or a log: control characters, bidirectional controls and bad UTF-8 as
// \xNN or \uNNNN escapes.
std::string printable(std::string_view text);

}  // namespace tornasole
