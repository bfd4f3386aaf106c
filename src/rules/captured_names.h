#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tornasole::rules {

// What a choice of tensors leaves out: stored statistics, which would match most patterns for the tensor they are
// about. Whoever names them in a pattern wants them.
inline std::vector<std::string> exclude_statistics(const std::vector<std::string>& regex) {
  const auto names_them = [](const std::string& pattern) { return pattern.find("derived/") != std::string::npos; };
  return std::ranges::any_of(regex, names_them) ? std::vector<std::string>() : std::vector<std::string>{"^derived/"};
}

}  // namespace tornasole::rules
