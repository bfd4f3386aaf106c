#include "rules/class_values.h"

#include <algorithm>
#include <cmath>

#include "reduce/derived.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {

std::vector<double> rounded_classes(const Tensor& value) {
  std::vector<double> classes = to_doubles(value);
  for (double& number : classes) number = std::floor(number + 0.5);
  return classes;
}

std::optional<std::vector<double>> argmax_classes(const Tensor& scores) {
  const std::size_t rank = scores.shape().rank();
  if (rank == 0) return std::nullopt;
  const auto classes = reduce::predicted_classes(view_of(scores), rank - 1);
  if (!classes) return std::nullopt;
  return to_doubles(*classes);
}

bool has_scores(const Shape& shape) { return shape.rank() >= 2 && shape[shape.rank() - 1] > 1; }

const StepTensor* NamedChoice::choose(const Trial& trial, const std::vector<const StepTensor*>& tensors) const {
  if (!trial.has_tensor(name)) return tensors.empty() ? nullptr : tensors.front();
  const auto found = std::ranges::find(tensors, std::string_view(name), &StepTensor::name);
  return found == tensors.end() ? nullptr : *found;
}

std::map<std::string_view, std::vector<const StepTensor*>> by_worker(std::span<const StepTensor* const> tensors) {
  std::map<std::string_view, std::vector<const StepTensor*>> groups;
  for (const StepTensor* tensor : tensors) groups[tensor->worker].push_back(tensor);
  for (auto& [worker, group] : groups) std::ranges::sort(group, {}, &StepTensor::name);
  return groups;
}

}  // namespace tornasole::rules
