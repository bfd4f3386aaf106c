#pragma once

// Scalars: tensors with exactly one element, which rules about losses and metrics look at.

#include <optional>
#include <string>
#include <vector>

#include "tornasole/rule.h"

namespace tornasole::rules {

// Patterns of a user also match the names of stored statistics, which are no data of the training.
inline const std::string kDerivedNames = "^derived/";

// The count makes sure that the value is read: a stored mean does not tell that there was one element.
inline Need scalar_need(std::vector<std::string> collections, std::vector<std::string> regex) {
  return {.collections = std::move(collections),
          .regex = std::move(regex),
          .exclude_regex = {kDerivedNames},
          .stats = {Stat::kMean, Stat::kCount}};
}

// The one number of a tensor of such a need; else nothing, and the finding that it was skipped and why.
inline std::optional<double> scalar_value(const StepTensor& tensor, Findings& findings) {
  const auto value = tensor.scalar();
  if (value) return value;
  if (!tensor.shape) {
    findings.skip(tensor.error ? "unreadable" : "no value");
  } else {
    findings.skip(tensor.dtype == DType::kString       ? "text"
                  : tensor.shape->element_count() == 0 ? "empty"
                  : tensor.shape->element_count() == 1 ? "complex"
                                                       : "not a scalar");
  }
  return std::nullopt;
}

}  // namespace tornasole::rules
