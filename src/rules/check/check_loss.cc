// The loss of the training, as a series of windows: LossNotDecreasing, LossDivergence, Plateau. Overfit: validation
// rises from its best while training goes on falling.
//
// Mini-batch losses change direction at every other step in every healthy run: means of windows are compared, and only
// what exceeds the noise of a mean counts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kLeastLosses = 20;
constexpr std::size_t kWindows = 10;
constexpr double kLeastFall = 0.02;
constexpr double kMostNoise = 0.03;
constexpr double kLeastLost = 0.03;  // of what training won, for a rise of the validation loss to count

std::string loss_name(const RunRecord& run) {
  const auto losses = run.of_role(Role::kLoss);
  return losses.empty() ? "loss" : losses.front()->name;
}

std::vector<std::string> loss_names(const RunRecord& run) {
  std::vector<std::string> names;
  for (const History* loss : run.of_role(Role::kLoss)) names.push_back(loss->name);
  return names;
}

// It fell, but to where a constant answer would be: the second half lies at the level of a guess.
void look_at_level(const WindowMeans& windows, const Series& losses, double trivial, Verdict verdict,
                   Judgement& judgement) {
  constexpr double kNear = 0.03;
  const std::size_t half = windows.means.size() / 2;
  const bool is_guessing =
      std::ranges::all_of(windows.means.begin() + static_cast<std::ptrdiff_t>(half), windows.means.end(),
                          [&](double level) { return level > (1 - kNear) * trivial; });
  if (!is_guessing || !(trivial > 0) || 4 * windows.noise > kNear * trivial) return;
  verdict.rule = "Plateau";
  verdict.severity = Severity::kWarning;
  verdict.first_step = losses.steps[half * windows.length];
  verdict.value = windows.means.back();
  verdict.threshold = trivial;
  verdict.message =
      fmt::format("The training loss stays at {:.4g}: answering the same for every sample would cost {:.4g}.",
                  windows.means.back(), trivial);
  verdict.causes = {"the model ignores its inputs: dead or saturated units, gradients that do not arrive",
                    "the learning rate is far too low or too high", "labels do not belong to their inputs"};
  verdict.advice = {"overfit a single batch first: its loss must go to nothing",
                    "change the learning rate by factors of 10"};
  judgement.add(std::move(verdict));
}

void look_at_trend(const RunRecord& run, Judgement& judgement) {
  const Mode mode = run.training_mode();
  const Series losses = run.losses(mode);
  if (losses.size() < kLeastLosses) {
    judgement.cannot(
        fmt::format("needs the training loss at {} steps or more; there are {}", kLeastLosses, losses.size()));
    return;
  }
  const WindowMeans windows = window_means(losses.values, kWindows, 4);
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
  // Several losses with optimizers of their own, as in adversarial training, need not fall, and rise in turn.
  const bool is_contest = run.optimizers > 1;
  if (rise > 6 * windows.noise && is_above_start && rise > std::max(fall, (is_contest ? 2 : 0.2) * scale)) {
    Verdict verdict = common;
    verdict.rule = "LossDivergence";
    verdict.severity = Severity::kError;
    const auto onset = static_cast<std::size_t>(lowest - windows.means.begin()) * windows.length;
    verdict.first_step = losses.steps[onset];
    verdict.value = last;
    verdict.threshold = first;
    verdict.message = fmt::format(
        "The training loss climbs: {:.4g} at its best, {:.4g} at the end (it began at {:.4g}).", *lowest, last, first);
    verdict.causes = {"the learning rate is too high", "gradients are not clipped", "bad batches"};
    verdict.advice = {"divide the learning rate by 10", "clip gradients", "look at the step where the climb begins"};
    judgement.add(std::move(verdict));
    return;
  }
  if (is_contest) return;
  const std::optional<double> trivial = trivial_loss(run);
  const double needed = std::max(4 * windows.noise, kLeastFall * scale);
  if (fall > needed) {
    if (trivial) look_at_level(windows, losses, *trivial, common, judgement);
    return;
  }
  // A run that goes on with what has been learned before has little left to win.
  if (trivial && *lowest < 0.5 * *trivial) return;
  if (4 * windows.noise > kMostNoise * scale) return;  // nobody could tell a fall from the noise
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
  judgement.add(std::move(verdict));
}

// Means over uninterrupted runs of evaluation steps. Boosting evaluates at every step.
Series evaluation_means(const RunRecord& run, Mode mode) {
  if (!run.of_role(Role::kValidationLoss).empty()) return run.losses(run.training_mode(), Role::kValidationLoss);
  const Series losses = run.losses(mode);
  Series means;
  std::vector<double> open;
  std::size_t at = 0;
  const auto close = [&](std::int64_t step) {
    if (open.empty()) return;
    means.steps.push_back(step);
    means.values.push_back(mean(open));
    open.clear();
  };
  std::int64_t last_step = 0;
  for (const StepPoint& point : run.steps) {
    if (point.step.mode == mode) {
      if (at < losses.size() && losses.steps[at] == point.global_step) open.push_back(losses.values[at++]);
      last_step = point.global_step;
    } else {
      close(last_step);
    }
  }
  close(last_step);
  return means;
}

void look_at_validation(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastEvaluations = 5;
  const Series validation = evaluation_means(run, Mode::kEval);
  const Series training = run.losses(run.training_mode());
  if (validation.size() < kLeastEvaluations || training.size() < kLeastEvaluations) {
    judgement.cannot(fmt::format("needs losses of training and of {} evaluations or more; there are {}",
                                 kLeastEvaluations, validation.size()));
    return;
  }
  const auto best = std::ranges::min_element(validation.values);
  const auto best_at = static_cast<std::size_t>(best - validation.values.begin());
  constexpr std::size_t kLate = 3;
  if (best_at + kLate >= validation.size()) return;
  const std::vector<double> late(validation.values.end() - kLate, validation.values.end());
  const double last = median(late);
  std::vector<double> differences;
  for (std::size_t i = 1; i < validation.size(); ++i)
    differences.push_back(validation.values[i] - validation.values[i - 1]);
  const double noise = robust_deviation(differences) / std::sqrt(2.0);
  const double rise = last - *best;
  if (!(rise > 3 * noise)) return;
  // Training went on falling since.
  std::vector<double> before;
  std::vector<double> after;
  for (std::size_t i = 0; i < training.size(); ++i) {
    (training.steps[i] <= validation.steps[best_at] ? before : after).push_back(training.values[i]);
  }
  const std::size_t window = std::max<std::size_t>(1, std::min(before.size(), after.size()) / 4);
  if (before.empty() || after.size() < window) return;
  const double then = mean(std::span(before).last(std::min(window, before.size())));
  const double now = mean(std::span(after).last(window));
  if (!(now < then)) return;
  // What is left is next to nothing of what there was: a rise of it is no loss of anything.
  if (rise < kLeastLost * (training.values.front() - now)) return;
  // A small rise counts where the training set is learned and validation is hardly better than at its start.
  const bool is_by_heart = now < 0.3 * last && last > 0.3 * validation.values.front() && rise > 0.03 * std::fabs(*best);
  if (!(rise > 0.1 * std::fabs(*best)) && !is_by_heart) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = validation.steps[best_at + 1],
       .last_step = validation.steps.back(),
       .mode = Mode::kEval,
       .tensors = loss_names(run),
       .value = last,
       .threshold = *best,
       .message = fmt::format("Validation was best at step {} ({:.4g}) and has risen to {:.4g} while the training "
                              "loss went on falling.",
                              validation.steps[best_at], *best, last),
       .causes = {"the model learns the training set by heart", "too little data for the size of the model"},
       .advice = {"stop at the best validation loss", "regularise: weight decay, drop-out, augmentation",
                  "use a smaller model or more data"},
       .evidence = evidence_of("validation loss", validation)});
}

}  // namespace

const Detector kCheckLossTrend = {
    .name = "LossNotDecreasing", .question = "Does the training loss fall?", .depth = 6, .look = look_at_trend};
const Detector kCheckOverfit = {
    .name = "Overfit", .question = "Does validation follow training?", .depth = 6, .look = look_at_validation};

}  // namespace tornasole::rules
