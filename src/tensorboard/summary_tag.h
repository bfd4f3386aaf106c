#pragma once

#include <string>
#include <string_view>

namespace tornasole::tensorboard {

// A tensor's name as TensorBoard shows it: characters other than - / . _ and Unicode letters and digits become _, then
// slashes in front are removed (docs/format.md 8). The name must be valid UTF-8.
std::string clean_tag(std::string_view name);

}  // namespace tornasole::tensorboard
