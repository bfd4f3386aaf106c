#pragma once

// The error of a rule that lacks a parameter, or data, it must have.

#include <string_view>
#include <utility>

#include "base/errors.h"

namespace tornasole::rules {

// "rule <rule>: <what is missing>".
template <typename... Args>
Error insufficient_error(std::string_view rule, fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalid, fmt::format("rule {}: ", rule) + fmt::format(format, std::forward<Args>(args)...),
          ErrorKind::kInsufficientInformation};
}

}  // namespace tornasole::rules
