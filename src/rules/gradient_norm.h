#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "tornasole/rule.h"

namespace tornasole::rules {

// The norm of all gradients of a step taken together, by worker; nothing for a worker of which one is not known. The
// tensors are of a need with Stat::kL2.
inline std::map<std::string_view, std::optional<double>> gradient_norms(std::span<const StepTensor* const> gradients) {
  std::map<std::string_view, std::optional<double>> norms;
  for (const StepTensor* gradient : gradients) {
    const auto own = gradient->stats[Stat::kL2];
    std::optional<double>& norm = norms.try_emplace(gradient->worker, 0).first->second;
    // By hypot: squares of large norms would overflow.
    norm = norm && own ? std::optional(std::hypot(*norm, *own)) : std::nullopt;
  }
  return norms;
}

}  // namespace tornasole::rules
