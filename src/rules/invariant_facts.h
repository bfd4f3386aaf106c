#pragma once

// What learning and checking invariants have in common: which tensors, which numbers of them, which belong together.

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/invariants.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

inline constexpr std::array kRangeStats = {Stat::kMin, Stat::kMax, Stat::kMean, Stat::kL2};

inline Need invariant_need() {
  return {.stats = {Stat::kMin, Stat::kMax, Stat::kMean, Stat::kL2, Stat::kNan, Stat::kInf},
          .value = true,
          .derived = {"hash"}};
}

// By the elements where they were saved, else by the reductions. Nothing if neither tells.
inline std::optional<bool> is_finite(const StepTensor& tensor) {
  const auto nan = tensor.stats[Stat::kNan];
  const auto inf = tensor.stats[Stat::kInf];
  if (nan && inf) return *nan == 0 && *inf == 0;
  std::optional<bool> finite;
  for (const Stat stat : kRangeStats) {
    if (const auto number = tensor.stats[stat]) finite = finite.value_or(true) && std::isfinite(*number);
  }
  return finite;
}

// The tensors of a step by name and worker.
using StepIndex = std::map<std::pair<std::string_view, std::string_view>, const StepTensor*>;
inline StepIndex index_of(const StepView& step) {
  StepIndex index;
  for (const StepTensor* tensor : step.tensors()) index.emplace(std::pair(tensor->name, tensor->worker), tensor);
  return index;
}

// Of a gradient whose tensor was saved by the same worker: log10 of the ratio of their norms; -inf and inf where one of
// them is zero.
inline std::optional<double> gradient_ratio(const StepTensor& gradient, const StepIndex& index) {
  constexpr std::string_view kPrefix = "gradient/";
  if (!gradient.name.starts_with(kPrefix)) return std::nullopt;
  const auto found = index.find({gradient.name.substr(kPrefix.size()), gradient.worker});
  if (found == index.end()) return std::nullopt;
  const auto own = gradient.stats[Stat::kL2];
  const auto whole = found->second->stats[Stat::kL2];
  if (!own || !whole || !std::isfinite(*own) || !std::isfinite(*whole)) return std::nullopt;
  return *own == 0 && *whole == 0 ? std::nullopt : std::optional(std::log10(*own / *whole));
}

// The name as a pattern, with \d+ for each number in it. Nothing for a name too long for one.
std::optional<std::string> pattern_of_name(std::string_view name);

}  // namespace tornasole::rules
