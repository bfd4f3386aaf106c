#pragma once

// Classes: what labels and predictions say, one number per sample.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/rule.h"

namespace tornasole::rules {

// Rounded half up; NaN and infinities stay.
std::vector<double> rounded_classes(const Tensor& value);
// Where along the last axis the largest score lies, the first of equal ones; nothing for a tensor without such an axis
// or with more classes than can be told apart.
std::optional<std::vector<double>> argmax_classes(const Tensor& scores);
// True for per-class scores: two or more axes, the last with more than one score. A column of numbers is none.
bool has_scores(const Shape& shape);

// The tensor of a name; in a trial that has none of that name, the first of a collection in the order of names.
struct NamedChoice {
  std::string name, collection;

  Need need() const { return {.collections = {collection}, .names = {name}, .value = true}; }
  // Of those of one worker, as by_worker gives them; null if it is not among them.
  const StepTensor* choose(const Trial& trial, const std::vector<const StepTensor*>& tensors) const;
};

// The tensors of one need of a step by worker, in the order of their names.
std::map<std::string_view, std::vector<const StepTensor*>> by_worker(std::span<const StepTensor* const> tensors);

}  // namespace tornasole::rules
