// InputRange: inputs and targets that nobody scaled. TrainEvalMismatch: the model is in the wrong mode. DataRepeat:
// every step has the same batch.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/batch_likeness.h"
#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"

namespace tornasole::rules {
namespace {

// Whether all samples are one and the same, at every step that was saved. Means and mean squares are of single
// precision: the variance that they leave of equal samples is up to three roundings of 6e-8.
bool are_samples_alike(const RunRecord& run, const History& input) {
  constexpr double kRounding = 2e-7;
  std::size_t batches = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (run.steps[input.points[i]].step.mode != run.training_mode()) continue;
    const double samples = input.at(Column::kSamples, i);
    const bool is_one_number = input.at(Column::kMin, i) == input.at(Column::kMax, i);
    if (!(samples > 1) || !(is_one_number || input.at(Column::kSampleVariance, i) < kRounding)) return false;
    ++batches;
  }
  return batches >= 3;
}

// A second input may well be one number everywhere: a state that starts at zero.
bool look_for_blanks(const RunRecord& run, const std::vector<const History*>& inputs, Judgement& judgement) {
  if (!std::ranges::all_of(inputs, [&](const History* input) { return are_samples_alike(run, *input); })) return false;
  const Series means = run.series(*inputs.front(), Column::kMean);
  judgement.add(
      {.severity = Severity::kError,
       .first_step = means.steps.front(),
       .last_step = means.steps.back(),
       .mode = run.training_mode(),
       .tensors = {inputs.front()->name},
       .value = 0,
       .message = fmt::format("{} holds the same sample over and over: nothing tells one sample from another.",
                              inputs.front()->name),
       .causes = {"inputs are lost on their way: a buffer that is never filled, a scale of zero"},
       .advice = {"print a batch just before the model is called"},
       .evidence = evidence_of("mean of " + inputs.front()->name, means)});
  return true;
}

// Token numbers are looked up, not computed with: whole numbers, all of them.
bool may_be_tokens(const History& input) {
  const auto is_broken = [](double value) { return std::isfinite(value) && value != std::floor(value); };
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (is_broken(input.at(Column::kMin, i)) && is_broken(input.at(Column::kMax, i))) return false;
  }
  return true;
}

// Steps whose input is more than one number: a model may be asked about a single point between batches, too.
std::vector<std::size_t> rows_of_data(const History& input) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (input.at(Column::kStd, i) > 0) rows.push_back(i);
  }
  return rows;
}

double usual_of(const History& input, const std::vector<std::size_t>& rows, Column column) {
  std::vector<double> values;
  for (const std::size_t row : rows) values.push_back(input.at(column, row));
  return median(std::move(values));
}

bool look_at_scales(const RunRecord& run, const std::vector<const History*>& inputs, Judgement& judgement) {
  const bool has_tables =
      std::ranges::any_of(run.layer_classes, [](const std::string& type) { return type.starts_with("embedding"); });
  for (const History* input : inputs) {
    if (has_tables && may_be_tokens(*input)) continue;
    const std::vector<std::size_t> rows = rows_of_data(*input);
    const auto usual = [&](Column column) { return usual_of(*input, rows, column); };
    const double mean = usual(Column::kMean);
    const double deviation = usual(Column::kStd);
    const double low = usual(Column::kMin);
    const double high = usual(Column::kMax);
    if (!std::isfinite(mean) || !std::isfinite(deviation) || !(deviation > 0)) continue;
    const bool is_raw_bytes = low >= 0 && high > 100 && high <= 255.5 && mean > 5;
    const bool is_large = deviation > 50 || std::fabs(mean) > 50;
    const bool is_off = std::fabs(mean) > 20 * deviation;
    const double spread = usual(Column::kUnitSpread);
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
    return true;
  }
  return false;
}

// Numbers that a regression is to answer, over the steps that train.
struct Targets {
  const History* labels = nullptr;
  double mean = 0, deviation = 0;
  double nothing = 0;   // what an answer of zero costs
  double constant = 0;  // what the best constant answer costs, or more
};
std::optional<Targets> targets_of(const RunRecord& run) {
  const std::string loss = run.loss_class();
  if (!is_mean_square(loss) && !is_mean_distance(loss)) return std::nullopt;
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (labels->role.loss_class != loss) continue;
    Targets targets{.labels = labels,
                    .mean = median(run.series(*labels, Column::kMean, run.training_mode()).values),
                    .deviation = median(run.series(*labels, Column::kStd, run.training_mode()).values)};
    const double variance = targets.deviation * targets.deviation;
    const bool is_square = is_mean_square(loss);
    targets.constant = is_square ? variance : targets.deviation;
    targets.nothing = is_square ? variance + targets.mean * targets.mean : std::fabs(targets.mean) + targets.deviation;
    return targets;
  }
  return std::nullopt;
}

// Large targets are no harm by themselves: only where the loss breaks, or is far from what a constant answer costs.
void look_at_targets(const RunRecord& run, Judgement& judgement) {
  constexpr double kLarge = 100;
  constexpr double kFar = 2;
  constexpr double kSummed = 3;  // times what nothing costs: a sum over samples, or a model that begins far away
  const Series losses = run.losses(run.training_mode());
  const std::optional<Targets> targets = targets_of(run);
  if (!targets || losses.empty() || collects_its_data(run) || is_contest(run)) return;
  const bool is_large = std::max(std::fabs(targets->mean), targets->deviation) > kLarge;
  if (!is_large || !(targets->deviation > 0) || losses.values.front() > kSummed * targets->nothing) return;
  const auto last = std::span(losses.values).last(std::max<std::size_t>(1, losses.size() / 4));
  const bool is_broken = std::ranges::any_of(last, [](double value) { return !std::isfinite(value); });
  const double level = mean(last);
  if (!is_broken && !(level > kFar * targets->constant) && !stays_at_guess(run)) return;
  const std::string& name = targets->labels->name;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = losses.steps.front(),
       .last_step = losses.steps.back(),
       .mode = run.training_mode(),
       .tensors = {name},
       .value = is_broken ? NAN : level,
       .threshold = targets->constant,
       .message = fmt::format(
           "The targets ({}) lie around {:.3g}, with a deviation of {:.3g}, and the model {}: targets "
           "that were not scaled.",
           name, targets->mean, targets->deviation, is_broken ? "breaks on its way to them" : "does not get there"),
       .causes = {"targets are fed as they come from the file: gradients are as large as they are, and weights have to "
                  "grow to them"},
       .advice = {"scale targets to mean 0 and deviation 1 with numbers of the training set, and predictions back"},
       .evidence = evidence_of("loss", losses)},
      1);
}

// Where targets were not saved, the first loss stands for them: a model that has learned nothing answers about zero.
void look_at_size_of_loss(const RunRecord& run, Judgement& judgement) {
  constexpr double kLarge = 100;
  constexpr double kLeft = 0.75;  // of the first loss
  constexpr std::size_t kLeastLosses = 20;
  const std::string loss = run.loss_class();
  const bool is_square = is_mean_square(loss);
  const Series losses = run.losses(run.training_mode());
  if ((!is_square && !is_mean_distance(loss)) || losses.size() < kLeastLosses) return;
  if (!run.of_role(Role::kLabels).empty() || collects_its_data(run) || is_contest(run)) return;
  const std::size_t quarter = losses.size() / 4;
  const double first = median({losses.values.begin(), losses.values.begin() + static_cast<std::ptrdiff_t>(quarter)});
  const double last = median({losses.values.end() - static_cast<std::ptrdiff_t>(quarter), losses.values.end()});
  const double size = is_square ? std::sqrt(first) : first;
  if (!(size > kLarge) || !(last > kLeft * first) || !(last < first / kLeft)) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = losses.steps.front(),
       .last_step = losses.steps.back(),
       .mode = run.training_mode(),
       .tensors = {run.of_role(Role::kLoss).front()->name},
       .value = last,
       .threshold = kLeft * first,
       .message =
           fmt::format("The loss ({}) begins at {:.3g}, as of targets around {:.3g}, and ends at {:.3g}: targets "
                       "that were not scaled.",
                       loss, first, size, last),
       .causes = {"targets are fed as they come from the file: weights have to grow to them", "a sum over samples"},
       .advice = {"scale targets to mean 0 and deviation 1 with numbers of the training set, and predictions back"},
       .evidence = evidence_of("loss", losses)},
      1);
}

void look_at_inputs(const RunRecord& run, Judgement& judgement) {
  const std::vector<const History*> inputs = run.of_role(Role::kModelInput);
  if (!inputs.empty() && look_for_blanks(run, inputs, judgement)) return;
  if (!run.scales_inputs && look_at_scales(run, inputs, judgement)) return;
  look_at_targets(run, judgement);
  look_at_size_of_loss(run, judgement);
  if (inputs.empty() && judgement.verdicts().empty()) {
    judgement.cannot("needs the model's inputs (collection inputs, or their statistics)");
  }
}

// How many channels a layer has: as many as its parameters have numbers; 0 if it is not known.
double channels_of(const RunRecord& run, const std::string& layer) {
  for (const History* parameter : run.of_role(Role::kBias)) {
    const Shape& shape = parameter->role.shape;
    if (parameter->role.layer == layer && shape.rank() == 1) return static_cast<double>(shape[0]);
  }
  return 0;
}

// How many numbers batch normalisation takes mean and deviation of: the most of all its layers, in the steps that
// train; nothing if it is not known.
std::optional<double> most_normalised(const RunRecord& run) {
  double most = 0;
  for (const History* output : run.of_role(Role::kLayerOutput)) {
    if (output->role.layer_class.find("batchnorm") == std::string::npos) continue;
    const double channels = channels_of(run, output->role.layer);
    const double count = median(run.series(*output, Column::kCount, run.training_mode()).values);
    if (!(channels > 0) || !std::isfinite(count)) return std::nullopt;
    most = std::max(most, count / channels);
  }
  return most > 0 ? std::optional(most) : std::nullopt;
}

void look_at_batch_statistics(const RunRecord& run, Judgement& judgement) {
  constexpr double kFew = 2.5;
  const std::optional<double> most = most_normalised(run);
  if (!most || *most > kFew) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = run.steps.front().global_step,
       .last_step = run.steps.back().global_step,
       .mode = run.training_mode(),
       .value = *most,
       .threshold = kFew,
       .message = fmt::format("Batch normalisation takes mean and deviation of {:.0f} numbers: what is trained "
                              "sees little but which of them is larger, and is evaluated with others.",
                              *most),
       .causes = {"batches are too small for batch normalisation"},
       .advice = {"larger batches, or layer or group normalisation"}});
}

bool changes_with_mode(const std::string& type) {
  return type.find("dropout") != std::string::npos || type.find("batchnorm") != std::string::npos;
}

// Whether an optimizer may have stepped by what went back through a pass: not where it had not by the next one, as
// where samples are made for the training by their gradients; nor where others that train lie between the two that are
// known.
bool is_stepped_by(const RunRecord& run, std::size_t at) {
  if (at + 1 >= run.steps.size()) return true;
  const StepPoint& own = run.steps[at];
  const StepPoint& next = run.steps[at + 1];
  if (own.optimizer_step >= 0 && next.optimizer_step == own.optimizer_step) return false;
  return next.global_step == own.global_step + 1 || !run.facts[at + 1].training.value_or(false);
}

void look_at_modes(const RunRecord& run, Judgement& judgement) {
  look_at_batch_statistics(run, judgement);
  const bool is_known =
      std::ranges::any_of(run.facts, [](const StepFacts& facts) { return facts.training.has_value(); });
  if (!is_known) {
    if (judgement.verdicts().empty())
      judgement.cannot("needs to know whether the model was in training mode (written by our hooks)");
    return;
  }
  const bool is_sensitive = std::ranges::any_of(run.layer_classes, changes_with_mode);
  // What was learned before and is not to change keeps its statistics on purpose while other layers learn.
  const bool is_kept = run.is_fine_tuned && !run.trains_batch_norm;
  std::vector<std::int64_t> backward;
  std::vector<std::int64_t> forward;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepFacts& facts = run.facts[i];
    if (facts.backward_in_eval.value_or(false) && is_stepped_by(run, i)) {
      backward.push_back(run.steps[i].global_step);
    }
    if (facts.training.value_or(false) && facts.grad_enabled == false) forward.push_back(run.steps[i].global_step);
  }
  constexpr std::size_t kPatience = 3;
  if (backward.size() >= kPatience && is_sensitive && !is_kept) {
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

// A data set of one batch is fed so on purpose: noted, since an iterator that is made anew at every step does the same.
void look_for_repeats(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastPairs = 5;
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
  if (pairs < kLeastPairs) judgement.cannot("needs the model's inputs at six training steps or more");
}

constexpr std::string_view kExplainedByMode[] = {"Overfit", "Overtraining", "SuspiciousValidation"};

}  // namespace

const Detector kCheckDataRepeat = {
    .name = "DataRepeat", .question = "Does every step have its own batch?", .depth = 0, .look = look_for_repeats};
const Detector kCheckInputRange = {
    .name = "InputRange", .question = "Are inputs and targets scaled and centred?", .depth = 0, .look = look_at_inputs};
const Detector kCheckTrainEval = {.name = "TrainEvalMismatch",
                                  .question = "Is the model in the right mode?",
                                  .depth = 0,
                                  .explains = kExplainedByMode,
                                  .look = look_at_modes};

}  // namespace tornasole::rules
