#pragma once

// Which tensors of a run play which part: from the description of its model, and by name where there is none.

#include <algorithm>
#include <string>
#include <vector>

#include "tornasole/rule.h"

namespace tornasole::rules {

// Outputs of layers, and the names that are outputs of losses.
inline constexpr std::string_view kOutputRegex = R"(_output(_[0-9]+)?$|/outputs?(_[0-9]+)?$)";
inline constexpr std::string_view kLossRegex = R"([Ll]oss[^/]*_output)";

namespace model_roles_detail {
inline void add_once(const std::vector<std::string>& from, std::vector<std::string>* to) {
  for (const std::string& name : from) {
    if (std::ranges::find(*to, name) == to->end()) to->push_back(name);
  }
}
}  // namespace model_roles_detail

// What the losses compare with the labels, as the workers described their models; empty if nobody did.
inline std::vector<std::string> prediction_names(const Trial* trial) {
  std::vector<std::string> names;
  if (trial == nullptr) return names;
  for (const auto& [worker, stored] : trial->models()) {
    for (const auto& loss : stored.model.losses) model_roles_detail::add_once(loss.predictions, &names);
  }
  return names;
}

// The inputs of the model, likewise.
inline std::vector<std::string> input_names(const Trial* trial) {
  std::vector<std::string> names;
  if (trial == nullptr) return names;
  for (const auto& [worker, stored] : trial->models()) model_roles_detail::add_once(stored.model.inputs, &names);
  return names;
}

}  // namespace tornasole::rules
