// InputRange: inputs that nobody scaled. TrainEvalMismatch: the model is in the wrong mode.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

void look_at_inputs(const RunRecord& run, Judgement& judgement) {
  const std::vector<const History*> inputs = run.of_role(Role::kModelInput);
  if (inputs.empty()) {
    judgement.cannot("needs the model's inputs (collection inputs, or their statistics)");
    return;
  }
  for (const History* input : inputs) {
    // Token numbers are looked up, not computed with.
    if (std::ranges::any_of(run.layer_classes, [](const std::string& type) { return type == "embedding"; })) continue;
    const double mean = median(run.series(*input, Column::kMean).values);
    const double deviation = median(run.series(*input, Column::kStd).values);
    const double low = median(run.series(*input, Column::kMin).values);
    const double high = median(run.series(*input, Column::kMax).values);
    if (!std::isfinite(mean) || !std::isfinite(deviation) || !(deviation > 0)) continue;
    const bool is_raw_bytes = low >= 0 && high > 100 && high <= 255.5 && mean > 5;
    const bool is_large = deviation > 50 || std::fabs(mean) > 50;
    const bool is_off = std::fabs(mean) > 20 * deviation;
    if (!is_raw_bytes && !is_large && !is_off) continue;
    const Series means = run.series(*input, Column::kMean);
    judgement.add({.severity = Severity::kWarning,
                   .first_step = means.steps.front(),
                   .last_step = means.steps.back(),
                   .mode = run.training_mode(),
                   .tensors = {input->name},
                   .value = is_off && !is_large ? mean : high,
                   .message = fmt::format("{} runs from {:.4g} to {:.4g} (mean {:.4g}, deviation {:.3g}): {}.",
                                          input->name, low, high, mean, deviation,
                                          is_raw_bytes ? "raw bytes of images"
                                          : is_large   ? "inputs that were not scaled"
                                                       : "inputs that are not centred"),
                   .causes = {"inputs are fed as they come from the file"},
                   .advice = {"scale inputs to mean 0 and deviation 1 with numbers of the training set"},
                   .evidence = evidence_of("mean of " + input->name, means)});
    return;
  }
}

bool changes_with_mode(const std::string& type) {
  return type.find("dropout") != std::string::npos || type.find("batchnorm") != std::string::npos;
}

void look_at_modes(const RunRecord& run, Judgement& judgement) {
  const bool is_known =
      std::ranges::any_of(run.facts, [](const StepFacts& facts) { return facts.training.has_value(); });
  if (!is_known) {
    judgement.cannot("needs to know whether the model was in training mode (written by our hooks)");
    return;
  }
  const bool is_sensitive = std::ranges::any_of(run.layer_classes, changes_with_mode);
  std::vector<std::int64_t> backward;
  std::vector<std::int64_t> forward;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepFacts& facts = run.facts[i];
    if (facts.backward_in_eval.value_or(false)) backward.push_back(run.steps[i].global_step);
    if (facts.training.value_or(false) && facts.grad_enabled == false) forward.push_back(run.steps[i].global_step);
  }
  constexpr std::size_t kPatience = 3;
  if (backward.size() >= kPatience && is_sensitive) {
    judgement.add(
        {.severity = Severity::kWarning,
         .first_step = backward.front(),
         .last_step = backward.back(),
         .mode = Mode::kEval,
         .value = static_cast<double>(backward.size()),
         .threshold = 0,
         .message = fmt::format("{} steps were trained while the model was in evaluation mode: drop-out is off and "
                                "batch normalisation does not learn.",
                                backward.size()),
         .causes = {"model.train() was not called again after an evaluation"},
         .advice = {"call model.train() at the start of every epoch"}});
  }
  if (forward.size() >= kPatience && is_sensitive) {
    judgement.add(
        {.severity = Severity::kWarning,
         .first_step = forward.front(),
         .last_step = forward.back(),
         .mode = Mode::kTrain,
         .value = static_cast<double>(forward.size()),
         .threshold = 0,
         .message = fmt::format("{} passes without gradients ran in training mode: an evaluation with drop-out or "
                                "with batch statistics.",
                                forward.size()),
         .causes = {"model.eval() was not called before an evaluation"},
         .advice = {"call model.eval() before evaluating, model.train() after"}});
  }
}

}  // namespace

const Detector kCheckInputRange = {
    .name = "InputRange", .question = "Are inputs scaled and centred?", .depth = 0, .look = look_at_inputs};
const Detector kCheckTrainEval = {
    .name = "TrainEvalMismatch", .question = "Is the model in the right mode?", .depth = 0, .look = look_at_modes};

}  // namespace tornasole::rules
