#include "rules/check/output_facts.h"

#include <algorithm>

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

}  // namespace

double most_samples(const History& history) {
  double most = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (const double samples = history.at(Column::kSamples, i); samples > most) most = samples;
  }
  return most;
}

OutputVariance output_variance(const RunRecord& run) {
  constexpr std::size_t kLeastPoints = 3;
  OutputVariance found;
  for (const History* output : outputs_of(run)) {
    Series variance = run.series(*output, Column::kSampleVariance, run.training_mode());
    if (variance.size() < kLeastPoints || most_samples(*output) <= 1) continue;
    found.is_known = true;
    const auto is_constant = [](double value) { return value < kConstantOutput; };
    const std::size_t last = std::max(kLeastPoints, variance.size() / 2);
    if (!std::ranges::all_of(variance.values.end() - static_cast<std::ptrdiff_t>(last), variance.values.end(),
                             is_constant)) {
      continue;
    }
    found.constant = output;
    found.onset = variance.size() - 1;
    while (found.onset > 0 && is_constant(variance.values[found.onset - 1])) --found.onset;
    found.variance = std::move(variance);
    return found;
  }
  return found;
}

}  // namespace tornasole::rules
