#pragma once

// Limits that the types of parameters do not say.

#include <string_view>

#include "base/errors.h"
#include "base/utf8.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

inline Status check_range(std::string_view rule, const RuleArguments& arguments, std::string_view name, double low,
                          double high) {
  if (!arguments.has(name)) return {};
  const double number = arguments.number(name);
  if (number >= low && number <= high) return {};
  return invalid_error("rule {}: {} is \"{}\"; it must be from {} to {}", rule, name, printable(arguments.text(name)),
                       low, high);
}

inline Status check_at_least(std::string_view rule, const RuleArguments& arguments, std::string_view name,
                             double least) {
  if (!arguments.has(name) || arguments.number(name) >= least) return {};
  return invalid_error("rule {}: {} is \"{}\"; it must be at least {}", rule, name, printable(arguments.text(name)),
                       least);
}

// One of a few words, as they are written here.
inline Status check_word(std::string_view rule, const RuleArguments& arguments, std::string_view name,
                         std::span<const std::string_view> allowed) {
  if (!arguments.has(name)) return {};
  std::string words;
  for (const std::string_view word : allowed) {
    if (arguments.text(name) == word) return {};
    if (!words.empty()) words += ", ";
    words += word;
  }
  return invalid_error("rule {}: {} is \"{}\"; allowed: {}", rule, name, printable(arguments.text(name)), words);
}

}  // namespace tornasole::rules
