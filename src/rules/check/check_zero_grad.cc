// MissingZeroGrad: the gradient the optimizer sees is the sum over all steps so far.
//
// It then points where it pointed at the last step, and is many times as large as that of one backward pass. With
// gradient accumulation it is as large as the passes of one optimizer step make it, and no larger.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rules/check/detector.h"
#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

constexpr double kCosine = 0.9;
constexpr std::size_t kLeastPairs = 4;

// Backward passes that one optimizer step takes: training steps per optimizer step.
double passes_per_step(const RunRecord& run) {
  std::map<std::int64_t, int> passes;
  for (const StepPoint& point : run.steps) {
    if (point.step.mode == run.training_mode() && point.optimizer_step >= 0) ++passes[point.optimizer_step];
  }
  int most = 1;
  for (const auto& [step, count] : passes) most = std::max(most, count);
  return most;
}

void look(const RunRecord& run, Judgement& judgement) {
  std::vector<double> cosines;
  std::vector<double> ratios;  // optimizer's gradient over that of one pass
  std::vector<std::string> names;
  Series shown;
  for (const History* seen : run.of_role(Role::kOptimizerGradient)) {
    if (seen->role.rank >= 0 && seen->role.rank < 2) continue;
    const History* one_pass = run.find("gradient/" + seen->role.parameter);
    if (one_pass == nullptr) continue;
    std::map<std::uint32_t, double> sizes;
    for (std::size_t i = 0; i < one_pass->size(); ++i) sizes[one_pass->points[i]] = one_pass->at(Column::kL2, i);
    for (std::size_t i = 0; i < seen->size(); ++i) {
      if (const double cosine = seen->at(Column::kCosine, i); std::isfinite(cosine)) cosines.push_back(cosine);
      const auto size = sizes.find(seen->points[i]);
      if (size == sizes.end() || !(size->second > 0)) continue;
      ratios.push_back(seen->at(Column::kL2, i) / size->second);
      if (names.empty()) {
        shown.steps.push_back(run.steps[seen->points[i]].global_step);
        shown.values.push_back(ratios.back());
      }
    }
    names.push_back(seen->name);
  }
  if (cosines.size() < kLeastPairs || ratios.size() < kLeastPairs) {
    judgement.cannot(
        "needs the gradients as the optimizer sees them (collection optimizer_gradients) with the statistic "
        "cosine_previous, and those of single backward passes");
    return;
  }
  const double limit = 2 * passes_per_step(run);
  const double ratio = median(ratios);
  if (!(median(cosines) > kCosine) || !(ratio > limit)) return;
  judgement.add(
      {.severity = Severity::kError,
       .first_step = shown.steps.empty() ? 0 : shown.steps.front(),
       .last_step = shown.steps.empty() ? 0 : shown.steps.back(),
       .mode = run.training_mode(),
       .tensors = names,
       .value = ratio,
       .threshold = limit,
       .message = fmt::format("The optimizer sees gradients {:.3g} times as large as one backward pass gives, and "
                              "they hardly turn from step to step: gradients are added up and never cleared.",
                              ratio),
       .causes = {"optimizer.zero_grad() is not called between steps"},
       .advice = {"call optimizer.zero_grad() once per optimizer step, before backward()"},
       .evidence = evidence_of("optimizer's gradient / gradient of one pass", shown)});
}

}  // namespace

const Detector kCheckMissingZeroGrad = {
    .name = "MissingZeroGrad", .question = "Are gradients cleared between steps?", .depth = 1, .look = look};

}  // namespace tornasole::rules
