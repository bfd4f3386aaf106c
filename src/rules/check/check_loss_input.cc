// LossActivationMismatch: what goes into the loss is not what it takes.
//
// Told by range and shape alone: probabilities lie between 0 and 1 and sum to 1, their logarithms are never positive
// and cannot all lie below that of an even chance, scores that a rectifier cut are never negative.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"

namespace tornasole::rules {
namespace {

struct Range {
  double low = 0, high = 0, mean = 0;
  double lowest_high = 0;  // the smallest largest element of a step
  double highest_low = 0;  // the largest smallest element of a step
  double units = 0, samples = 0;
  bool is_weighed = false;  // a layer with weights gives just these numbers: no activation made them what they are
};
// Over all steps that train; nothing if fewer than three are known.
std::optional<Range> range_of(const RunRecord& run, const History& history) {
  std::vector<double> means;
  Range range{.low = INFINITY, .high = -INFINITY, .lowest_high = INFINITY, .highest_low = -INFINITY};
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (run.steps[history.points[i]].step.mode != run.training_mode()) continue;
    if (!std::isfinite(history.at(Column::kMin, i)) || !std::isfinite(history.at(Column::kMax, i))) continue;
    range.low = std::min(range.low, history.at(Column::kMin, i));
    range.high = std::max(range.high, history.at(Column::kMax, i));
    range.lowest_high = std::min(range.lowest_high, history.at(Column::kMax, i));
    range.highest_low = std::max(range.highest_low, history.at(Column::kMin, i));
    range.units = history.at(Column::kUnits, i);
    range.samples = history.at(Column::kSamples, i);
    means.push_back(history.at(Column::kMean, i));
  }
  if (means.size() < 3) return std::nullopt;
  range.mean = median(std::move(means));
  return range;
}

// Losses of PyTorch that stretch what they are given until shapes agree.
bool stretches(std::string_view loss_class) {
  constexpr std::string_view kLosses[] = {"mseloss",      "mse_loss",       "l1loss",    "l1_loss",
                                          "smoothl1loss", "smooth_l1_loss", "huberloss", "huber_loss"};
  return std::ranges::find(kLosses, loss_class) != std::end(kLosses);
}

bool is_column(const History& history, std::size_t row) {
  return history.at(Column::kUnits, row) == 1 && history.at(Column::kCount, row) > 1;
}
bool is_row(const History& history, std::size_t row) {
  return history.at(Column::kUnits, row) == history.at(Column::kCount, row) && history.at(Column::kCount, row) > 1;
}

// Predictions in a column beside labels in a row, or the other way round: each prediction is compared with the labels
// of all samples, and the best answer is the same for all.
bool look_for_stretched(const RunRecord& run, const History& predictions, Judgement& judgement) {
  constexpr std::size_t kLeastSteps = 3;
  const std::string& loss = predictions.role.loss_class;
  if (!stretches(loss)) return false;
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (labels->role.loss_class != loss) continue;
    std::size_t crossed = 0;
    double samples = 0;
    bool are_labels_flat = true;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const auto at = std::ranges::lower_bound(labels->points, predictions.points[i]);
      if (at == labels->points.end() || *at != predictions.points[i]) continue;
      const auto row = static_cast<std::size_t>(at - labels->points.begin());
      if (predictions.at(Column::kCount, i) != labels->at(Column::kCount, row)) continue;
      are_labels_flat = is_row(*labels, row);
      if (!(is_column(predictions, i) && are_labels_flat) && !(is_row(predictions, i) && is_column(*labels, row))) {
        continue;
      }
      ++crossed;
      samples = labels->at(Column::kCount, row);
    }
    if (crossed < kLeastSteps) continue;
    const std::string column = fmt::format("({:.0f}, 1)", samples);
    const std::string flat = fmt::format("({:.0f})", samples);
    judgement.add({.severity = Severity::kError,
                   .first_step = run.steps[predictions.points.front()].global_step,
                   .last_step = run.steps[predictions.points.back()].global_step,
                   .mode = run.training_mode(),
                   .tensors = {predictions.name, labels->name},
                   .value = samples,
                   .threshold = 1,
                   .message = fmt::format("The loss ({}) is given predictions of shape {} and labels of shape {}: it "
                                          "compares every prediction with the labels of all samples.",
                                          loss, are_labels_flat ? column : flat, are_labels_flat ? flat : column),
                   .causes = {"one of the two lacks the last dimension of the other"},
                   .advice = {"give both the same shape: labels.unsqueeze(1), or predictions.squeeze(1)"}});
    return true;
  }
  return false;
}

// Whether a layer with weights gives just these numbers, wherever both were saved.
bool is_as_weighed(const RunRecord& run, const History& predictions) {
  constexpr std::size_t kLeastSteps = 3;
  return std::ranges::any_of(run.of_role(Role::kLayerOutput), [&](const History* output) {
    const std::string& type = output->role.layer_class;
    const bool is_convolution = type.starts_with("conv") && type.size() > 1 && type.ends_with('d') &&
                                std::isdigit(static_cast<unsigned char>(type[type.size() - 2])) != 0;
    if (type != "linear" && type != "dense" && !is_convolution) return false;
    std::size_t same = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const double low = number_at(output, predictions.points[i], Column::kMin);
      const double high = number_at(output, predictions.points[i], Column::kMax);
      if (std::isnan(low) || std::isnan(high)) continue;
      if (low != predictions.at(Column::kMin, i) || high != predictions.at(Column::kMax, i)) return false;
      ++same;
    }
    return same >= kLeastSteps;
  });
}

// What is wrong with what a loss is given; empty if nothing is.
std::string complaint_of(const RunRecord& run, std::string_view loss, const Range& range) {
  constexpr double kRounding = 1e-3;
  const bool is_share = !range.is_weighed && range.low >= 0 && range.high <= 1.0001;
  const bool is_over_classes = is_about_classes(loss) || loss.starts_with("bce") || loss.starts_with("binary");
  if (is_over_classes && is_share && range.units == 1 && range.low > 1 - kRounding) {
    return "is given 1 for every sample: a softmax over a single score, which is 1 whatever the score";
  }
  const bool sums_to_one = range.units > 1 && std::fabs(range.mean * range.units - 1) < kRounding;
  // Others than that of PyTorch take scores.
  const bool is_ctc = run.framework == "pytorch" && loss.starts_with("ctc");
  const bool is_log_likelihood = loss.starts_with("nll") || is_ctc;
  if (is_log_likelihood && is_share) return "takes logarithms of probabilities and is given probabilities";
  if (is_log_likelihood && range.high > kRounding) {
    return "takes logarithms of probabilities, which are never positive, and is given scores: a log-softmax is missing";
  }
  // Of the probabilities of one sample, one is at least an even chance. Frames of a sequence come before the samples.
  if (is_log_likelihood && !is_ctc && range.units > 1 && range.lowest_high < -std::log(range.units) - kRounding) {
    return "takes logarithms of probabilities that sum to 1 for each sample, and these do not: a log-softmax over "
           "samples instead of classes";
  }
  if (loss.starts_with("kl") && is_share && sums_to_one) {
    return "takes logarithms of probabilities and is given probabilities";
  }
  // Losses of Keras: they take probabilities, unless from_logits says otherwise.
  const bool is_of_keras = loss.find("categorical") != std::string_view::npos;
  const bool is_from_logits = loss.find("logits") != std::string_view::npos;
  if (is_of_keras && !is_from_logits) {
    if (range.low < -kRounding) return "takes probabilities and is given scores: from_logits=True is missing";
    return {};
  }
  const bool is_binary = is_from_logits && !is_of_keras;
  const bool takes_scores = is_binary || (is_about_classes(loss) && !is_log_likelihood);
  if (!takes_scores) return {};
  if (is_share && !is_binary && sums_to_one) {
    return "takes scores and is given probabilities: a softmax is applied twice";
  }
  if (is_share && !is_binary && run.last_layer == "sigmoid") {
    return "takes scores and is given the output of a sigmoid: there should be none";
  }
  if (is_share && !is_binary && range.samples > 1 && std::fabs(range.mean * range.samples - 1) < kRounding) {
    return "takes scores and is given shares that sum to 1 over the samples of each class: a softmax over samples, "
           "where there should be none";
  }
  // Scores lie around zero, before they have learned anything and after; a sigmoid makes that one half.
  if (is_share && is_binary && range.low < 0.5 && range.high > 0.5) {
    return "takes scores and is given the output of a sigmoid: it is applied twice";
  }
  if (!range.is_weighed && range.low == 0 && range.highest_low == 0 && range.high > 0) {
    return "takes scores of either sign and is given the output of a rectifier";
  }
  return {};
}

// The number of classes that the last weight makes scores of; NaN if it is not known.
double classes_of(const RunRecord& run) {
  const History* last = nullptr;
  for (const History* weight : run.of_role(Role::kWeight)) {
    if (last == nullptr || weight->role.order > last->role.order) last = weight;
  }
  const Shape shape = last == nullptr ? Shape() : last->role.shape;
  return shape.rank() < 2 ? NAN : static_cast<double>(shape[run.units_last ? shape.rank() - 1 : 0]);
}

// Where what goes into the loss was not saved, the last layer tells, if the loss is one of shares: those lie within 1
// of each other, which bounds it. A model may return shares beside the scores that it is trained on.
bool look_at_last_layer(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastLosses = 5;
  constexpr double kRounding = 1e-3;
  const std::string loss = run.loss_class();
  const bool is_binary = loss.find("logits") != std::string::npos && run.last_layer == "sigmoid";
  const bool is_classes = is_about_classes(loss) && !loss.starts_with("nll") && run.last_layer == "softmax";
  const Series losses = run.losses(run.training_mode());
  if ((!is_binary && !is_classes) || losses.size() < kLeastLosses) return false;
  const double classes = is_binary ? 2 : classes_of(run);
  // Of two classes, a score beside one that is zero.
  const double highest = std::log(std::exp(1.0) + classes - 1);
  const bool is_bounded = std::ranges::all_of(
      losses.values, [&](double value) { return value > highest - 1 - kRounding && value < highest + kRounding; });
  if (!is_bounded) return false;
  judgement.add({.severity = Severity::kWarning,
                 .first_step = losses.steps.front(),
                 .last_step = losses.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = {run.of_role(Role::kLoss).front()->name},
                 .value = *std::ranges::min_element(losses.values),
                 .threshold = highest - 1,
                 .message = fmt::format("The loss ({}) takes scores, and the model ends with a {}, which is applied "
                                        "twice then: the loss cannot fall below {:.3g}.",
                                        loss, run.last_layer, highest - 1),
                 .causes = {"the model ends with an activation that this loss does not expect"},
                 .advice = {"leave the last activation out: this loss applies it itself"},
                 .evidence = evidence_of("loss", losses)});
  return true;
}

// Labels of a binary loss are chances. Of others the loss has no lowest value: it falls for ever.
bool look_at_binary_labels(const RunRecord& run, Judgement& judgement) {
  constexpr double kRounding = 1e-3;
  for (const History* labels : run.of_role(Role::kLabels)) {
    const std::string& loss = labels->role.loss_class;
    if (!loss.starts_with("bce") && !loss.starts_with("binary")) continue;
    const std::optional<Range> range = range_of(run, *labels);
    if (!range || (range->low >= -kRounding && range->high <= 1 + kRounding)) continue;
    judgement.add(
        {.severity = Severity::kError,
         .first_step = run.steps[labels->points.front()].global_step,
         .last_step = run.steps[labels->points.back()].global_step,
         .mode = run.training_mode(),
         .tensors = {labels->name},
         .value = range->high > 1 + kRounding ? range->high : range->low,
         .threshold = range->high > 1 + kRounding ? 1.0 : 0.0,
         .message = fmt::format("The loss ({}) takes labels from 0 to 1 and is given labels from {:.3g} to {:.3g}.",
                                loss, range->low, range->high),
         .causes = {"a binary loss for several classes",
                    "labels of -1 and 1, or of 0 and 255, that were not converted"},
         .advice = {"for several classes use cross entropy, with one score for each", "map two classes to 0 and 1"},
         .evidence = evidence_of("largest of " + labels->name, run.series(*labels, Column::kMax))});
    return true;
  }
  return false;
}

// What the last activation can give, where it is bounded.
struct Reach {
  double low = -INFINITY, high = INFINITY;
};
std::optional<Reach> reach_of(std::string_view activation) {
  if (activation == "sigmoid") return Reach{.low = 0, .high = 1};
  if (activation == "tanh") return Reach{.low = -1, .high = 1};
  if (activation == "relu") return Reach{.low = 0};
  return std::nullopt;
}

// The same of a batch in the middle: single samples that lie far out say nothing.
struct Targets {
  double low = NAN, high = NAN, mean = NAN, deviation = NAN;
};
Targets targets_of(const RunRecord& run, const History& labels) {
  const auto middle = [&](Column column) { return median(run.series(labels, column, run.training_mode()).values); };
  return {.low = middle(Column::kMin),
          .high = middle(Column::kMax),
          .mean = middle(Column::kMean),
          .deviation = middle(Column::kStd)};
}

// Targets of a regression that the last activation of the model cannot give.
bool look_at_reach(const RunRecord& run, const History& predictions, const Range& range, Judgement& judgement) {
  constexpr double kOutside = 0.15;  // of the targets' extent
  constexpr double kRounding = 1e-3;
  const std::string& loss = predictions.role.loss_class;
  const std::optional<Reach> reach = reach_of(run.last_layer);
  if (!reach || (!is_mean_square(loss) && !is_mean_distance(loss))) return false;
  // Of a model with several answers, the last layer speaks for one of them.
  if (range.low < reach->low - kRounding || range.high > reach->high + kRounding || is_contest(run)) return false;
  if (run.of_role(Role::kPredictions).size() != 1) return false;
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (labels->role.loss_class != loss || labels->size() < 3) continue;
    const Targets targets = targets_of(run, *labels);
    const double extent = std::max(targets.high - targets.low, kRounding);
    const bool is_below = reach->low - targets.low > kOutside * extent &&  //
                          targets.mean - targets.deviation < reach->low;
    const bool is_above = targets.high - reach->high > kOutside * extent &&  //
                          targets.mean + targets.deviation > reach->high;
    if (!is_below && !is_above) continue;
    const std::string allowed = std::isfinite(reach->high) ? fmt::format("from {:g} to {:g}", reach->low, reach->high)
                                                           : fmt::format("{:g} or more", reach->low);
    judgement.add({.severity = Severity::kWarning,
                   .first_step = run.steps[predictions.points.front()].global_step,
                   .last_step = run.steps[predictions.points.back()].global_step,
                   .mode = run.training_mode(),
                   .tensors = {predictions.name, labels->name},
                   .value = is_below ? targets.low : targets.high,
                   .threshold = is_below ? reach->low : reach->high,
                   .message = fmt::format("The model ends with a {}, which gives {}, and the loss ({}) compares it "
                                          "with targets from {:.3g} to {:.3g}: many of them are out of reach.",
                                          run.last_layer, allowed, loss, targets.low, targets.high),
                   .causes = {"the model ends with an activation that does not fit the targets",
                              "targets were not scaled to what the activation gives"},
                   .advice = {"leave the last activation out for a regression", "or scale the targets to its range"},
                   .evidence = evidence_of("largest of " + predictions.name, run.series(predictions, Column::kMax))});
    return true;
  }
  return false;
}

void look_at_loss_input(const RunRecord& run, Judgement& judgement) {
  if (look_at_binary_labels(run, judgement)) return;
  bool has_any = false;
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    const std::string& loss = predictions->role.loss_class;
    std::optional<Range> range = range_of(run, *predictions);
    if (loss.empty() || !range) continue;
    range->is_weighed = is_as_weighed(run, *predictions);
    has_any = true;
    if (look_for_stretched(run, *predictions, judgement) || look_at_reach(run, *predictions, *range, judgement)) return;
    const std::string what = complaint_of(run, loss, *range);
    if (what.empty()) continue;
    judgement.add(
        {.severity = Severity::kWarning,
         .first_step = run.steps[predictions->points.front()].global_step,
         .last_step = run.steps[predictions->points.back()].global_step,
         .mode = run.training_mode(),
         .tensors = {predictions->name},
         .value = range->high,
         .threshold = 1,
         .message = fmt::format("The loss ({}) {}.", loss, what),
         .causes = {"the model ends with an activation that this loss does not expect, or without one that it "
                    "does"},
         .advice = {"cross entropy (in Keras with from_logits=True) and losses with logits take the output of the last "
                    "layer as it is; nll_loss "
                    "and kl_div take log_softmax of it over the classes"},
         .evidence = evidence_of("largest of " + predictions->name, run.series(*predictions, Column::kMax))});
    return;
  }
  if (!has_any && !look_at_last_layer(run, judgement))
    judgement.cannot("needs what goes into the loss at three steps or more (min, max, mean)");
}

}  // namespace

const Detector kCheckLossInput = {.name = "LossActivationMismatch",
                                  .question = "Does the loss get what it takes?",
                                  .depth = 0,
                                  .look = look_at_loss_input};

}  // namespace tornasole::rules
