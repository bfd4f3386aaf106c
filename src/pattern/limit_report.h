#pragma once

#include <string>
#include <string_view>

#include "pattern/pattern.h"

namespace tornasole::pattern {

// What is told of a match that was given up (Match::kLimit).
std::string limit_report(const Pattern& pattern, std::string_view name);

}  // namespace tornasole::pattern
