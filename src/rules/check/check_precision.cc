// LossScaleCollapse: a loss scaler of half precision keeps meeting overflow, and steps are left out.
//
// A scaler starts high and halves until gradients fit, which is how it works: a scale below one says that they overflow
// however small the loss is made.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

void look(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastSteps = 10;
  constexpr double kLeastScale = 1;
  constexpr double kLeastFall = 1000;
  Series scales;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    if (!run.facts[i].grad_scale) continue;
    scales.steps.push_back(run.steps[i].global_step);
    scales.values.push_back(*run.facts[i].grad_scale);
  }
  if (scales.size() < kLeastSteps) {
    judgement.cannot("needs the scale of a loss scaler at ten steps or more");
    return;
  }
  const double highest = *std::ranges::max_element(scales.values);
  const double last = scales.values.back();
  if (!(last < kLeastScale) || !(highest > kLeastFall * last)) return;
  const auto onset = std::ranges::find_if(scales.values, [](double scale) { return scale < kLeastScale; });
  judgement.add(
      {.severity = Severity::kError,
       .first_step = scales.steps[static_cast<std::size_t>(onset - scales.values.begin())],
       .last_step = scales.steps.back(),
       .mode = run.training_mode(),
       .value = last,
       .threshold = kLeastScale,
       .message = fmt::format("The loss scale fell from {:.3g} to {:.1e}: gradients overflow at any scale, and the "
                              "optimizer leaves those steps out.",
                              highest, last),
       .causes = {"gradients hold NaN or infinity for another reason than the scale", "values beyond half precision"},
       .advice = {"look where NaN begins: tornasole first-bad", "use bfloat16 or float32 for the layer that overflows"},
       .evidence = evidence_of("loss scale", scales)});
}

}  // namespace

const Detector kCheckLossScale = {
    .name = "LossScaleCollapse", .question = "Do gradients fit into half precision?", .depth = 5, .look = look};

}  // namespace tornasole::rules
