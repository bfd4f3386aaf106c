#include "rules/check/output_facts.h"

#include <algorithm>
#include <cmath>

#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

// What goes into the loss, or the output of the outermost layer.
std::vector<const History*> outputs_of(const RunRecord& run) {
  std::vector<const History*> outputs = run.of_role(Role::kPredictions);
  if (!outputs.empty()) return outputs;
  for (const History* output : run.of_role(Role::kLayerOutput)) {
    if (output->role.order == 0 && output->role.layer.find('.') == std::string::npos) outputs.push_back(output);
  }
  return outputs;
}

// The share of zeros, in the steps that train.
double share_of_zeros(const RunRecord& run, const History& history) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (run.steps[history.points[i]].step.mode != run.training_mode()) continue;
    shares.push_back(history.at(Column::kZeros, i) / history.at(Column::kCount, i));
  }
  return median(std::move(shares));
}

}  // namespace

double most_dropped(const RunRecord& run) {
  const std::vector<const History*> outputs = run.of_role(Role::kLayerOutput);
  double most = 0;
  for (const History* output : outputs) {
    if (output->role.layer_class.find("dropout") == std::string::npos) continue;
    const History* before = nullptr;  // the last layer that was called before
    for (const History* other : outputs) {
      const bool is_before = other->role.order >= 0 && other->role.order < output->role.order;
      if (is_before && (before == nullptr || other->role.order > before->role.order)) before = other;
    }
    const double zeros = before == nullptr ? 0 : share_of_zeros(run, *before);
    const double dropped = 1 - (1 - share_of_zeros(run, *output)) / (1 - (std::isfinite(zeros) ? zeros : 0));
    if (dropped > most) most = dropped;
  }
  return most;
}

double most_samples(const History& history) {
  double most = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (const double samples = history.at(Column::kSamples, i); samples > most) most = samples;
  }
  return most;
}

OutputVariance output_variance(const RunRecord& run) {
  constexpr std::size_t kLeastPoints = 3;
  const auto is_constant = [](double value) { return value < kConstantOutput; };
  OutputVariance found;
  bool does_one_vary = false;
  for (const History* output : outputs_of(run)) {
    Series variance = run.series(*output, Column::kSampleVariance, run.training_mode());
    if (variance.size() < kLeastPoints || most_samples(*output) <= 1) continue;
    found.is_known = true;
    const std::size_t last = std::max(kLeastPoints, variance.size() / 2);
    if (!std::ranges::all_of(variance.values.end() - static_cast<std::ptrdiff_t>(last), variance.values.end(),
                             is_constant)) {
      does_one_vary = true;
      continue;
    }
    if (found.constant != nullptr) continue;
    found.constant = output;
    found.onset = variance.size() - 1;
    while (found.onset > 0 && is_constant(variance.values[found.onset - 1])) --found.onset;
    found.variance = std::move(variance);
  }
  // Of what a model gives besides its answer, a mask or a number of a batch may well be the same for all.
  const bool are_predictions = found.constant != nullptr && found.constant->role.role == Role::kPredictions;
  if (does_one_vary && !are_predictions) found.constant = nullptr;
  return found;
}

}  // namespace tornasole::rules
