// InputRange: inputs that nobody scaled. TrainEvalMismatch: the model is in the wrong mode. LossActivationMismatch:
// what goes into the loss is not what it takes. DataRepeat: every step has the same batch.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/batch_likeness.h"
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
    const auto is_table = [](const std::string& type) { return type.starts_with("embedding"); };
    if (std::ranges::any_of(run.layer_classes, is_table)) continue;
    const double mean = median(run.series(*input, Column::kMean).values);
    const double deviation = median(run.series(*input, Column::kStd).values);
    const double low = median(run.series(*input, Column::kMin).values);
    const double high = median(run.series(*input, Column::kMax).values);
    if (!std::isfinite(mean) || !std::isfinite(deviation) || !(deviation > 0)) continue;
    const bool is_raw_bytes = low >= 0 && high > 100 && high <= 255.5 && mean > 5;
    const bool is_large = deviation > 50 || std::fabs(mean) > 50;
    const bool is_off = std::fabs(mean) > 20 * deviation;
    const double spread = median(run.series(*input, Column::kUnitSpread).values);
    const bool is_uneven = spread > 100 && std::max(std::fabs(low), std::fabs(high)) > 50;
    if (!is_raw_bytes && !is_large && !is_off && !is_uneven) continue;
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
                                          : is_uneven  ? "columns that were not scaled beside others that were"
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

struct Range {
  double low = 0, high = 0, mean = 0;
  double units = 0;
};
// Over all steps that train; nothing if fewer than three are known.
std::optional<Range> range_of(const RunRecord& run, const History& history) {
  std::vector<double> means;
  Range range{.low = INFINITY, .high = -INFINITY};
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (run.steps[history.points[i]].step.mode != run.training_mode()) continue;
    if (!std::isfinite(history.at(Column::kMin, i)) || !std::isfinite(history.at(Column::kMax, i))) continue;
    range.low = std::min(range.low, history.at(Column::kMin, i));
    range.high = std::max(range.high, history.at(Column::kMax, i));
    range.units = history.at(Column::kUnits, i);
    means.push_back(history.at(Column::kMean, i));
  }
  if (means.size() < 3) return std::nullopt;
  range.mean = median(std::move(means));
  return range;
}

// Whether a layer of this class gives what goes into the loss: they have the same numbers.
bool comes_from(const RunRecord& run, const History& predictions, std::string_view layer_class) {
  for (const History* output : run.of_role(Role::kLayerOutput)) {
    if (output->role.layer_class.find(layer_class) == std::string::npos || output->size() == 0) continue;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const auto at = std::ranges::lower_bound(output->points, predictions.points[i]);
      if (at == output->points.end() || *at != predictions.points[i]) continue;
      const auto row = static_cast<std::size_t>(at - output->points.begin());
      if (output->at(Column::kL2, row) == predictions.at(Column::kL2, i)) return true;
    }
  }
  return false;
}

// Losses of PyTorch that stretch what they are given until shapes agree.
bool stretches(std::string_view loss_class) {
  constexpr std::string_view kLosses[] = {"mseloss",      "mse_loss",       "l1loss",    "l1_loss",
                                          "smoothl1loss", "smooth_l1_loss", "huberloss", "huber_loss"};
  return std::ranges::find(kLosses, loss_class) != std::end(kLosses);
}

// Predictions in a column beside labels in a row: each prediction is compared with the labels of all samples, and the
// best answer is the same for all.
bool look_for_stretched(const RunRecord& run, const History& predictions, Judgement& judgement) {
  constexpr std::size_t kLeastSteps = 3;
  const std::string& loss = predictions.role.loss_class;
  if (!stretches(loss)) return false;
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (labels->role.loss_class != loss) continue;
    std::size_t crossed = 0;
    double samples = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const auto at = std::ranges::lower_bound(labels->points, predictions.points[i]);
      if (at == labels->points.end() || *at != predictions.points[i]) continue;
      const auto row = static_cast<std::size_t>(at - labels->points.begin());
      const double count = labels->at(Column::kCount, row);
      const bool is_column = predictions.at(Column::kUnits, i) == 1;
      const bool is_row = labels->at(Column::kUnits, row) == count;
      if (!(count > 1) || predictions.at(Column::kCount, i) != count || !is_column || !is_row) continue;
      ++crossed;
      samples = count;
    }
    if (crossed < kLeastSteps) continue;
    judgement.add({.severity = Severity::kError,
                   .first_step = run.steps[predictions.points.front()].global_step,
                   .last_step = run.steps[predictions.points.back()].global_step,
                   .mode = run.training_mode(),
                   .tensors = {predictions.name, labels->name},
                   .value = samples,
                   .threshold = 1,
                   .message = fmt::format(
                       "The loss ({}) is given predictions of shape ({:.0f}, 1) and labels of shape ({:.0f}): it "
                       "compares every prediction with the labels of all samples.",
                       loss, samples, samples),
                   .causes = {"labels lack the last dimension of the predictions"},
                   .advice = {"give both the same shape: labels.unsqueeze(1), or predictions.squeeze(1)"}});
    return true;
  }
  return false;
}

void look_at_loss_input(const RunRecord& run, Judgement& judgement) {
  bool has_any = false;
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    const std::string& loss = predictions->role.loss_class;
    const std::optional<Range> range = range_of(run, *predictions);
    if (loss.empty() || !range) continue;
    has_any = true;
    if (look_for_stretched(run, *predictions, judgement)) return;
    const bool is_share = range->low >= 0 && range->high <= 1.0001;
    const bool takes_scores = is_about_classes(loss) && !loss.starts_with("nll");
    std::string what;
    if (takes_scores && is_share && range->units > 1 && std::fabs(range->mean * range->units - 1) < 1e-3) {
      what = "takes scores and is given probabilities: a softmax is applied twice";
    } else if (loss.starts_with("nll") && is_share) {
      what = "takes logarithms of probabilities and is given probabilities";
    } else if (loss.find("logits") != std::string::npos && is_share && comes_from(run, *predictions, "sigmoid")) {
      what = "takes scores and is given the output of a sigmoid: it is applied twice";
    }
    if (what.empty()) continue;
    judgement.add({.severity = Severity::kWarning,
                   .first_step = run.steps[predictions->points.front()].global_step,
                   .last_step = run.steps[predictions->points.back()].global_step,
                   .mode = run.training_mode(),
                   .tensors = {predictions->name},
                   .value = range->high,
                   .threshold = 1,
                   .message = fmt::format("The loss ({}) {}.", loss, what),
                   .causes = {"the model ends with an activation that the loss holds already"},
                   .advice = {"give the loss the output of the last layer without its activation"},
                   .evidence = evidence_of("largest of " + predictions->name, run.series(*predictions, Column::kMax))});
    return;
  }
  if (!has_any) judgement.cannot("needs what goes into the loss at three steps or more (min, max, mean)");
}

// A data set of one batch is fed so on purpose: noted, since an iterator that is made anew at every step does the same.
void look_for_repeats(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastPairs = 10;
  std::size_t pairs = 0;
  for (const History* input : run.of_role(Role::kModelInput)) {
    std::optional<std::size_t> before;
    std::size_t same = 0;
    std::size_t different = 0;
    for (std::size_t i = 0; i < input->size(); ++i) {
      if (run.steps[input->points[i]].step.mode != run.training_mode()) continue;
      if (before) {
        const Likeness likeness = compare_batches(*input, *before, *input, i);
        same += likeness == Likeness::kEqual ? 1U : 0U;
        different += likeness == Likeness::kDifferent ? 1U : 0U;
      }
      before = i;
    }
    pairs = std::max(pairs, same + different);
    if (same < kLeastPairs || different > 0) continue;
    judgement.add({.severity = Severity::kInfo,
                   .first_step = run.steps[input->points.front()].global_step,
                   .last_step = run.steps[input->points.back()].global_step,
                   .mode = run.training_mode(),
                   .tensors = {input->name},
                   .value = static_cast<double>(same),
                   .threshold = 0,
                   .message = fmt::format("All {} training batches that were saved are the same.", same + 1),
                   .causes = {"the data set is one batch", "the iterator over the data is made anew at every step"},
                   .advice = {"if there is more data, make the iterator once per epoch"}});
    return;
  }
  if (pairs < kLeastPairs) judgement.cannot("needs the model's inputs at eleven training steps or more");
}

}  // namespace

const Detector kCheckDataRepeat = {
    .name = "DataRepeat", .question = "Does every step have its own batch?", .depth = 0, .look = look_for_repeats};
const Detector kCheckLossInput = {.name = "LossActivationMismatch",
                                  .question = "Does the loss get what it takes?",
                                  .depth = 0,
                                  .look = look_at_loss_input};
const Detector kCheckInputRange = {
    .name = "InputRange", .question = "Are inputs scaled and centred?", .depth = 0, .look = look_at_inputs};
const Detector kCheckTrainEval = {
    .name = "TrainEvalMismatch", .question = "Is the model in the right mode?", .depth = 0, .look = look_at_modes};

}  // namespace tornasole::rules
