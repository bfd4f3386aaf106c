#include "capture/tensor_roles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tornasole::capture {
namespace {

constexpr std::array<std::string_view, 3> kGradientPrefixes = {"gradient/", "gradients/", "optimizer_gradient/"};

}  // namespace

TensorRoles::TensorRoles() { add_pair("labels", "predictions"); }

void TensorRoles::describe(const ModelDescription& model) {
  *this = TensorRoles();
  for (const auto& [tensor, bounds] : model.bounds) bounds_[tensor] = {bounds.low, bounds.high};
  for (const auto& parameter : model.parameters) {
    parameters_.insert(parameter.name);
    parameters_.insert(parameter.tied.begin(), parameter.tied.end());
  }
  for (const auto& loss : model.losses) {
    const std::size_t pairs = std::min(loss.labels.size(), loss.predictions.size());
    for (std::size_t i = 0; i < pairs; ++i) add_pair(loss.labels[i], loss.predictions[i]);
    // Labels without predictions are counted on their own.
    labels_.insert(loss.labels.begin(), loss.labels.end());
  }
}

void TensorRoles::add_pair(std::string labels, std::string predictions) {
  labels_.insert(labels);
  predictions_.insert(predictions);
  pairs_.push_back({std::move(labels), std::move(predictions)});
}

std::optional<reduce::ValueRange> TensorRoles::bounds_of(std::string_view tensor) const {
  const auto found = bounds_.find(tensor);
  if (found == bounds_.end()) return std::nullopt;
  return found->second;
}

bool TensorRoles::is_parameter_or_gradient(std::string_view tensor) const {
  if (parameters_.contains(tensor)) return true;
  return std::ranges::any_of(kGradientPrefixes, [&](std::string_view prefix) {
    return tensor.starts_with(prefix) && parameters_.contains(tensor.substr(prefix.size()));
  });
}

}  // namespace tornasole::capture
