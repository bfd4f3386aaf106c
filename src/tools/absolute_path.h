#pragma once

#include <string>
#include <string_view>

#include "tornasole/result.h"

namespace tornasole::tools {

// What the stores ask for. kInvalid for an empty path or one with a NUL byte; nothing is looked at but the current
// directory.
Result<std::string> absolute_path(std::string_view path);

}  // namespace tornasole::tools
