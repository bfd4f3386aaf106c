// The loss of the training, as a series of windows: LossNotDecreasing, LossDivergence, Plateau.
//
// Mini-batch losses change direction at every other step in every healthy run: means of windows are compared, and only
// what exceeds the noise of a mean counts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"
#include "rules/check/output_facts.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kLeastLosses = 20;
constexpr std::size_t kWindows = 10;
constexpr double kLeastFall = 0.02;
constexpr std::size_t kLeastRounds = 5;  // of boosting, whose losses have no noise
constexpr double kLeastRoundsFall = 1e-3;

std::string loss_name(const RunRecord& run) {
  const auto losses = run.of_role(Role::kLoss);
  return losses.empty() ? "loss" : losses.front()->name;
}

std::vector<std::string> loss_names(const RunRecord& run) {
  std::vector<std::string> names;
  for (const History* loss : run.of_role(Role::kLoss)) names.push_back(loss->name);
  return names;
}

void blame_decay(const RunRecord& run, Verdict* verdict) {
  const std::string decay = decay_text(run);
  if (decay.empty()) return;
  verdict->message += decay;
  verdict->causes.insert(verdict->causes.begin(), "weight decay that outweighs the loss");
  verdict->advice.insert(verdict->advice.begin(), "divide weight decay by 10 until the loss falls");
}

void blame_drop_out(const RunRecord& run, Verdict* verdict) {
  constexpr double kMuch = 0.75;
  const double dropped = most_dropped(run);
  if (!(dropped > kMuch)) return;
  verdict->message += fmt::format(" Drop-out takes {:.0f} % of what it is given away.", 100 * dropped);
  verdict->causes.insert(verdict->causes.begin(), "drop-out that leaves too little");
  verdict->advice.insert(verdict->advice.begin(), "drop 0.5 or less");
}

// One of several losses over classes, with what it is given, as a run of its own. Nothing where it is not known which
// labels are its own, and of two classes: a part that is to tell where samples come from may be meant to fail.
std::optional<RunRecord> part_of(const RunRecord& run, const History& loss) {
  constexpr std::size_t kLeastClasses = 3;
  const std::string& type = loss.role.loss_class;
  RunRecord part;
  if (!is_about_classes(type)) return std::nullopt;
  part.steps = run.steps;
  part.facts = run.facts;
  std::size_t losses = 0;
  std::size_t labels = 0;
  std::size_t classes = 0;
  for (const Role role : {Role::kLoss, Role::kLabels, Role::kPredictions}) {
    for (const History* history : run.of_role(role)) {
      if (history->role.loss_class != type) continue;
      part.histories.push_back(*history);
      losses += role == Role::kLoss ? 1U : 0U;
      labels += role == Role::kLabels ? 1U : 0U;
      classes = std::max(classes, history->label_counts.size());
    }
  }
  if (losses != 1 || labels != 1 || classes < kLeastClasses) return std::nullopt;
  return part;
}

// Several losses are added up: one that stays at the level of a guess is hidden where the others fall.
void look_at_parts(const RunRecord& run, Verdict verdict, Judgement& judgement) {
  const std::vector<const History*> all = run.training_losses();
  if (all.size() < 2 || is_loss_mixed(run)) return;
  for (const History* loss : all) {
    const std::optional<RunRecord> part = part_of(run, *loss);
    if (!part) continue;
    const Series losses = part->losses(run.training_mode());
    if (losses.size() < kLeastLosses || !stays_at_guess(*part)) continue;
    const double level = mean(std::span(losses.values).last(losses.size() / 2));
    const double trivial = trivial_loss(*part).value_or(NAN);
    verdict.rule = "Plateau";
    verdict.severity = Severity::kWarning;
    verdict.first_step = losses.steps[losses.size() / 2];
    verdict.tensors = {loss->name};
    verdict.value = level;
    verdict.threshold = trivial;
    verdict.message =
        fmt::format("Of {} losses, {} stays at {:.4g}: answering the same for every sample would cost {:.4g}.",
                    all.size(), loss->name, level, trivial);
    verdict.causes = {"labels of this part do not belong to their inputs",
                      "this part gets no gradient, or its loss next "
                      "to no weight",
                      "the other losses take all that the shared layers learn"};
    verdict.advice = {"train this part alone on a single batch: its loss must go to nothing",
                      "look whether samples and labels are in the same order"};
    verdict.evidence = evidence_of(loss->name, losses);
    judgement.add(std::move(verdict));
    return;
  }
}

// It fell, but to where a constant answer would be: the second half lies at the level of a guess.
void look_at_level(const RunRecord& run, const Series& losses, Verdict verdict, Judgement& judgement) {
  if (!stays_at_guess(run)) return look_at_parts(run, std::move(verdict), judgement);
  const double level = mean(std::span(losses.values).last(losses.size() / 2));
  verdict.rule = "Plateau";
  verdict.severity = Severity::kWarning;
  verdict.first_step = losses.steps[losses.size() / 2];
  verdict.value = level;
  const double trivial = trivial_loss(run).value_or(NAN);
  verdict.threshold = trivial;
  verdict.message = fmt::format(
      "The training loss stays at {:.4g}: answering the same for every sample would cost {:.4g}.", level, trivial);
  verdict.causes = {"the model ignores its inputs: dead or saturated units, gradients that do not arrive",
                    "the learning rate is far too low or too high", "labels do not belong to their inputs"};
  verdict.advice = {"overfit a single batch first: its loss must go to nothing",
                    "change the learning rate by factors of 10"};
  blame_decay(run, &verdict);
  blame_drop_out(run, &verdict);
  judgement.add(std::move(verdict));
}

// Backward passes that start from the loss with its sign turned round: it is made as large as it can be.
bool look_at_sign(const RunRecord& run, const Series& losses, Judgement& judgement) {
  constexpr double kMost = 0.9;
  constexpr int kAtTheRoot = -7;  // nothing else needs a reason then
  const auto signs = run.of_role(Role::kLossSign);
  // Who attacks a model makes its loss large, and trains none of its weights.
  if (signs.empty() || run.optimized.empty() || is_contest(run) || is_loss_falling(run)) return false;
  std::size_t turned = 0;
  for (const double sign : run.series(*signs.front(), Column::kMean, run.training_mode()).values) turned += sign < 0;
  if (static_cast<double>(turned) < kMost * static_cast<double>(losses.size())) return false;
  judgement.add({.rule = "LossDivergence",
                 .severity = Severity::kError,
                 .first_step = losses.steps.front(),
                 .last_step = losses.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = loss_names(run),
                 .value = losses.values.back(),
                 .threshold = losses.values.front(),
                 .message = fmt::format("Backward passes start from the loss with its sign turned round: the training "
                                        "makes the loss as large as it can ({:.4g} at first, {:.4g} at the end).",
                                        losses.values.front(), losses.values.back()),
                 .causes = {"a minus sign before a loss that is to be made small"},
                 .advice = {"call backward() on the loss itself"},
                 .evidence = evidence_of(loss_name(run), losses)},
                kAtTheRoot);
  return true;
}

// It breaks, and had climbed before: the training diverged, and no value was bad by itself.
bool look_at_climb_to_break(const RunRecord& run, const Series& losses, Judgement& judgement) {
  constexpr double kClimbed = 100;   // times what it was
  constexpr std::size_t kLeast = 3;  // losses that climb
  constexpr int kBeforeNonFinite = -4;
  const auto broken = std::ranges::find_if(losses.values, [](double value) { return !std::isfinite(value); });
  const auto count = static_cast<std::size_t>(broken - losses.values.begin());
  if (broken == losses.values.end() || count < kLeast) return false;
  const std::span<const double> values = std::span(losses.values).first(count);
  std::vector<double> sizes;
  for (const double value : values) sizes.push_back(std::fabs(value));
  const double level = std::max(sizes.front(), median(std::vector<double>(sizes.begin(), sizes.end())));
  // The last of several that lie far above: a single one may be a bad batch.
  std::size_t first = count;
  while (first > 0 && sizes[first - 1] > 2 * sizes.front()) --first;
  if (count - first < kLeast - 1 || !(sizes.back() > kClimbed * std::max(sizes.front(), 1e-6))) return false;
  if (sizes.back() < *std::ranges::max_element(sizes) / kClimbed) return false;
  const double last = values.back();
  judgement.add(
      {.rule = "LossDivergence",
       .severity = Severity::kError,
       .first_step = losses.steps[first],
       .last_step = losses.steps[count],
       .mode = run.training_mode(),
       .tensors = loss_names(run),
       .value = last,
       .threshold = level,
       .message = fmt::format("The training loss climbs from {:.4g} to {:.4g} and is {} at step {}: {}.",
                              values.front(), last, losses.values[count], losses.steps[count], high_rate_text(run)),
       .causes = {high_rate_text(run), "gradients are not clipped", "weights start too large"},
       .advice = {"divide the learning rate by 10", "clip gradients"},
       .evidence = evidence_of(loss_name(run), losses)},
      kBeforeNonFinite);
  return true;
}

void look_at_trend(const RunRecord& run, Judgement& judgement) {
  const Mode mode = run.training_mode();
  const Series losses = run.losses(mode);
  const std::size_t least = run.is_boosting ? kLeastRounds : kLeastLosses;
  if (losses.size() < least) {
    judgement.cannot(fmt::format("needs the training loss at {} steps or more; there are {}", least, losses.size()));
    return;
  }
  if (collects_its_data(run)) {
    judgement.cannot(std::string(kCollectsItsData));
    return;
  }
  if (look_at_sign(run, losses, judgement) || look_at_climb_to_break(run, losses, judgement)) return;
  const WindowMeans windows = loss_windows(run, losses, kWindows, 4);
  if (windows.means.size() < 2 || !std::ranges::all_of(windows.means, [](double m) { return std::isfinite(m); }))
    return;
  const double first = windows.means.front();
  const auto lowest = std::ranges::min_element(windows.means);
  const double last = windows.means.back();
  const double scale = std::max(std::fabs(first), std::fabs(losses.values.front()));
  // What fell within the first window shows in the first value, as far as that is not noise.
  const double deviation = windows.noise * std::sqrt(static_cast<double>(windows.length));
  const double fall = std::max(first, losses.values.front() - 3 * deviation) - *lowest;
  const Verdict common{.last_step = losses.steps.back(),
                       .mode = mode,
                       .tensors = loss_names(run),
                       .evidence = evidence_of(loss_name(run), losses)};

  // Diverges: the end is far above the best, measured by how much was won, and above the start.
  const double rise = last - *lowest;
  const bool is_above_start = last > first + 3 * windows.noise;
  // In a contest losses need not fall, and rise in turn.
  const bool is_in_contest = is_contest(run);
  const bool is_mixed = is_loss_mixed(run);
  const bool may_rise = is_in_contest || is_mixed;
  // A loss that begins on both sides of zero has no level: it climbs once it leaves the values it began among.
  const auto [low, high] = std::ranges::minmax(std::span(losses.values).first(windows.length));
  const bool is_as_at_first = low < 0 && high > 0 && last <= high;
  if (!is_as_at_first && rise > 6 * windows.noise && is_above_start &&
      rise > std::max(fall, (may_rise ? 2 : 0.2) * scale)) {
    Verdict verdict = common;
    verdict.rule = "LossDivergence";
    verdict.severity = Severity::kError;
    const auto onset = static_cast<std::size_t>(lowest - windows.means.begin()) * windows.length;
    verdict.first_step = losses.steps[onset];
    verdict.value = last;
    verdict.threshold = first;
    verdict.message = fmt::format(
        "The training loss climbs: {:.4g} at its best, {:.4g} at the end (it began at {:.4g}).", *lowest, last, first);
    verdict.causes = {high_rate_text(run), "gradients are not clipped", "bad batches"};
    verdict.advice = {"divide the learning rate by 10", "clip gradients", "look at the step where the climb begins"};
    judgement.add(std::move(verdict));
    return;
  }
  if (is_in_contest || (is_mixed && is_above_start)) return;
  // A tree that splits at all lowers the loss of the data it was grown on: only what does nothing stands still.
  const double least_fall = run.is_boosting ? kLeastRoundsFall : kLeastFall;
  const double needed = std::max(4 * windows.noise, least_fall * scale);
  if (fall > needed) {
    look_at_level(run, losses, common, judgement);
    return;
  }
  // A run that goes on with what has been learned before has little left to win.
  if (is_learned(run)) return;
  if (4 * windows.noise > kMostLossNoise * scale) {  // nobody could tell a fall from the noise, at most a level
    look_at_level(run, losses, common, judgement);
    return;
  }
  // A loss that is next to nothing has nowhere to go.
  if (scale < 1e-6) return;
  Verdict verdict = common;
  verdict.rule = "LossNotDecreasing";
  verdict.severity = Severity::kWarning;
  verdict.first_step = losses.steps.front();
  verdict.value = fall;
  verdict.threshold = needed;
  verdict.message =
      fmt::format("The training loss does not fall: {:.4g} in the first steps, {:.4g} at its best, over {} steps.",
                  first, *lowest, losses.size());
  verdict.causes = {"the learning rate is far too low or too high", "gradients do not reach the weights",
                    "labels do not belong to their inputs", "the run resumed a model that has converged"};
  verdict.advice = {"overfit a single batch first: its loss must go to nothing",
                    "change the learning rate by factors of 10", "look at the gradients' sizes layer by layer"};
  if (run.is_boosting) {
    verdict.causes = {"eta is too low, or lambda, alpha, gamma or min_child_weight too large",
                      "the objective gives gradients that do not lower this metric",
                      "labels do not belong to their rows"};
    verdict.advice = {"train once with the default parameters",
                      "compare the gradient of an objective of your own with differences of the loss"};
  }
  blame_decay(run, &verdict);
  blame_drop_out(run, &verdict);
  judgement.add(std::move(verdict));
}

}  // namespace

const Detector kCheckLossTrend = {
    .name = "LossNotDecreasing", .question = "Does the training loss fall?", .depth = 7, .look = look_at_trend};

}  // namespace tornasole::rules
