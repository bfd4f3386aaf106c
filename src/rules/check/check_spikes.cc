// LossSpike: the loss jumps, and the training does not recover. GradNormSpike: the gradients jump, and the loss is the
// worse for it. OscillatingLoss: the loss goes up and down and gets nowhere.
//
// Mini-batches scatter: a jump is measured on a logarithmic scale against the scatter before it, and what the training
// gets over is merely noted. Where the learning rate rises (restarts) the loss may rise too.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kLeastBefore = 20;
constexpr std::size_t kMostBefore = 128;
constexpr std::size_t kJustBefore = 20;
constexpr double kDeviations = 6;
constexpr double kFactor = 3;        // of the level before
constexpr double kLeftFactor = 1.5;  // of the level before, at the end
constexpr double kAbsurd = 1000;     // of the level before: no sample of the data that is learned costs so much
constexpr double kAbsurdStart = 10;  // likewise, of the first loss

std::string first_loss(const RunRecord& run) {
  const auto losses = run.of_role(Role::kLoss);
  return losses.empty() ? "loss" : losses.front()->name;
}

std::vector<double> logs(std::vector<double>::const_iterator begin, std::vector<double>::const_iterator end) {
  std::vector<double> result;
  for (; begin != end; ++begin) {
    if (*begin > 0) result.push_back(std::log(*begin));
  }
  return result;
}

void look_for_spikes(const RunRecord& run, Judgement& judgement) {
  const Series losses = run.losses(run.training_mode());
  const std::vector<double>& values = losses.values;
  if (values.size() < 2 * kLeastBefore) {
    judgement.cannot(
        fmt::format("needs the training loss at {} steps or more; there are {}", 2 * kLeastBefore, values.size()));
    return;
  }
  if (std::ranges::any_of(values, [](double value) { return value <= 0; })) return;  // no scale
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t tail = std::max<std::size_t>(5, values.size() / 10);
  const double end_level = median(logs(at(values.size() - tail), values.end()));
  std::size_t spikes = 0;
  for (std::size_t i = kLeastBefore; i + tail < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const std::vector<double> before = logs(at(i - std::min(i, kMostBefore)), at(i));
    const double level = median(before);
    const double deviation = std::max(0.02, robust_deviation(before));
    const double jump = std::log(values[i]) - level;
    if (!(jump > std::max(kDeviations * deviation, std::log(kFactor)))) continue;
    ++spikes;
    // A loss that falls lies below the level of a long stretch when it jumps.
    const std::vector<double> last = logs(at(i - kJustBefore), at(i));
    const double last_level = median(last);
    const double last_deviation = std::max(0.02, robust_deviation(last));
    const bool is_left = end_level - last_level > std::max(3 * last_deviation, std::log(kLeftFactor));
    // Beside what was won so far, a loss near zero that doubles is nothing.
    const double won = values.front() - std::exp(last_level);
    const bool matters = std::exp(end_level) - std::exp(last_level) > 0.1 * std::max(won, 0.0);
    const bool is_absurd = jump > std::log(kAbsurd) && values[i] > kAbsurdStart * values.front();
    if (!is_absurd && (!is_left || !matters)) continue;
    judgement.add({.severity = Severity::kWarning,
                   .first_step = losses.steps[i],
                   .last_step = losses.steps.back(),
                   .mode = run.training_mode(),
                   .tensors = {first_loss(run)},
                   .value = values[i],
                   .threshold = std::exp(level + std::max(kDeviations * deviation, std::log(kFactor))),
                   .message = fmt::format(
                       "The loss jumped from {:.3g} to {:.3g} at step {}{}: it is {:.3g} at the end.",
                       std::exp(last_level), values[i], losses.steps[i],
                       is_left && matters ? " and has not come back" : ", as no sample like the others makes it",
                       std::exp(end_level)),
                   .causes = {"a batch of bad data", "gradients are not clipped", "the learning rate is too high"},
                   .advice = {"look at the batch of that step", "clip gradients",
                              "go on from a checkpoint before the jump and leave the batch out"},
                   .evidence = evidence_of(first_loss(run), losses)});
    return;
  }
  if (spikes == 0) return;
  judgement.add({.severity = Severity::kInfo,
                 .first_step = losses.steps.front(),
                 .last_step = losses.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = {first_loss(run)},
                 .value = static_cast<double>(spikes),
                 .threshold = 0,
                 .message = fmt::format("The loss jumped {} {} and came back.", spikes, spikes == 1 ? "time" : "times"),
                 .causes = {"a batch of unusual data"},
                 .advice = {"clip gradients if it happens often"},
                 .evidence = evidence_of(first_loss(run), losses)});
}

// The norm of all gradients at each training step: as the program has it, else of those that were saved.
Series gradient_norms(const RunRecord& run) {
  for (const History* norm : run.of_role(Role::kGradNorm)) {
    return run.series(*norm, Column::kMean, run.training_mode());
  }
  std::map<std::uint32_t, std::pair<double, std::size_t>> squares;  // point -> sum, tensors
  std::size_t most = 0;
  for (const History* gradient : run.of_role(Role::kGradient)) {
    for (std::size_t i = 0; i < gradient->size(); ++i) {
      if (run.steps[gradient->points[i]].step.mode != run.training_mode()) continue;
      auto& [sum, count] = squares[gradient->points[i]];
      sum += gradient->at(Column::kL2, i) * gradient->at(Column::kL2, i);
      most = std::max(most, ++count);
    }
  }
  Series norms;
  for (const auto& [point, square] : squares) {
    if (square.second < most || !std::isfinite(square.first)) continue;
    norms.steps.push_back(run.steps[point].global_step);
    norms.values.push_back(std::sqrt(square.first));
  }
  return norms;
}

// Before a step, and at the end of the run.
struct Levels {
  double before = 0, end = 0;
};
// Nothing without enough losses on both sides.
std::optional<Levels> loss_levels(const Series& losses, std::int64_t step) {
  constexpr std::size_t kWindow = 10;
  std::vector<double> before;
  std::vector<double> after;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    (losses.steps[i] < step ? before : after).push_back(losses.values[i]);
  }
  if (before.size() < kWindow || after.size() < kWindow) return std::nullopt;
  const auto last = [](const std::vector<double>& values) {
    return std::vector<double>(values.end() - static_cast<std::ptrdiff_t>(kWindow), values.end());
  };
  const std::vector<double> end = last(after);
  const bool is_broken = std::ranges::any_of(end, [](double value) { return !std::isfinite(value); });
  return Levels{median(last(before)), is_broken ? INFINITY : median(end)};
}

void look_for_gradient_spikes(const RunRecord& run, Judgement& judgement) {
  constexpr double kGradientFactor = 10;
  const Series norms = gradient_norms(run);
  const std::vector<double>& values = norms.values;
  if (values.size() < 2 * kLeastBefore) {
    judgement.cannot(fmt::format("needs gradients (l2) at {} training steps or more; there are {}", 2 * kLeastBefore,
                                 values.size()));
    return;
  }
  const Series losses = run.losses(run.training_mode());
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  std::size_t spikes = 0;
  std::int64_t first_spike = 0;
  for (std::size_t i = kLeastBefore; i < values.size(); ++i) {
    const std::vector<double> before = logs(at(i - std::min(i, kMostBefore)), at(i));
    if (before.size() < kLeastBefore || !(values[i] > 0)) continue;
    const double level = median(before);
    const double limit =
        level + std::max(kDeviations * std::max(0.02, robust_deviation(before)), std::log(kGradientFactor));
    if (!(std::log(values[i]) > limit)) continue;
    if (spikes++ == 0) first_spike = norms.steps[i];
    const auto losses_then = loss_levels(losses, norms.steps[i]);
    if (!losses_then || losses_then->before <= 0) continue;
    const double won = losses.values.front() - losses_then->before;
    const double lost = losses_then->end - losses_then->before;
    if (!(lost > (kLeftFactor - 1) * losses_then->before) || !(lost > 0.1 * std::max(won, 0.0))) continue;
    judgement.add(
        {.severity = Severity::kWarning,
         .first_step = norms.steps[i],
         .last_step = run.steps.back().global_step,
         .mode = run.training_mode(),
         .tensors = {first_loss(run)},
         .value = values[i],
         .threshold = std::exp(limit),
         .message = fmt::format("The norm of the gradients jumped from {:.3g} to {:.3g} at step {}, and the loss "
                                "has not got over it: {:.3g} before, {:.3g} at the end.",
                                std::exp(level), values[i], norms.steps[i], losses_then->before, losses_then->end),
         .causes = {"gradients are not clipped", "a batch of bad data", "the learning rate is too high"},
         .advice = {"clip gradients to a few times their usual norm", "look at the batch of that step"},
         .evidence = evidence_of("norm of all gradients", norms)});
    return;
  }
  if (spikes == 0) return;
  judgement.add({.severity = Severity::kInfo,
                 .first_step = first_spike,
                 .last_step = norms.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = {first_loss(run)},
                 .value = static_cast<double>(spikes),
                 .threshold = 0,
                 .message = fmt::format("The norm of the gradients jumped {} {}, and the loss got over it.", spikes,
                                        spikes == 1 ? "time" : "times"),
                 .causes = {"a batch of unusual data"},
                 .advice = {"clip gradients if it happens often"},
                 .evidence = evidence_of("norm of all gradients", norms)});
}

// A schedule that starts anew, or climbs for long, lets the loss rise on purpose. A short warm-up does not count.
bool does_rate_rise(const RunRecord& run) {
  constexpr std::size_t kWarmUpShare = 10;
  for (const History* rate : run.of_role(Role::kLearningRate)) {
    const Series series = run.series(*rate, Column::kMean);
    const std::size_t warm = series.size() / kWarmUpShare;
    for (std::size_t i = warm + 1; i < series.size(); ++i) {
      if (series.values[i] > 1.3 * series.values[i - 1] || series.values[i] > 1.3 * series.values[warm]) return true;
    }
  }
  return false;
}

// The deviation of a window's mean as its halves tell it: losses of one step that have something in common, and rare
// large ones, make it larger than neighbouring losses do.
double noise_by_halves(const std::vector<double>& values, std::size_t length) {
  std::vector<double> differences;
  const std::span<const double> all(values);
  for (std::size_t i = 0; i + length <= values.size(); i += length) {
    const auto window = all.subspan(i, length);
    differences.push_back(std::fabs(mean(window.first(length / 2)) - mean(window.last(length / 2))));
  }
  constexpr double kDeviationOfMedian = 1.4826;
  return kDeviationOfMedian * median(std::move(differences)) / 2;
}

void look_for_swings(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastLosses = 60;
  constexpr std::size_t kWindows = 25;
  constexpr std::size_t kLeastTurns = 4;
  const Series losses = run.losses(run.training_mode());
  const WindowMeans windows = window_means(losses.values, kWindows, 3);
  if (losses.size() < kLeastLosses || windows.means.size() < 2) {
    judgement.cannot(
        fmt::format("needs the training loss at {} steps or more; there are {}", kLeastLosses, losses.size()));
    return;
  }
  if (!std::ranges::all_of(windows.means, [](double m) { return std::isfinite(m); })) return;
  if (collects_its_data(run)) {
    judgement.cannot(std::string(kCollectsItsData));
    return;
  }
  if (is_contest(run) || does_rate_rise(run)) return;
  const double scale = std::fabs(median(windows.means));
  // Swings of few windows make the halves of each differ as well, so that those count for less.
  const double least = std::max({6 * windows.noise, 3 * noise_by_halves(losses.values, windows.length), 0.2 * scale});
  // Turning points: how often the loss went by `least` in one direction after it had gone so in the other.
  std::size_t turns = 0;
  int direction = 0;
  double low = windows.means.front();
  double high = low;
  for (const double value : windows.means) {
    if (direction >= 0) {
      high = std::max(high, value);
      if (high - value > least) {
        turns += direction > 0 ? 1U : 0U;
        direction = -1;
        low = value;
      }
    }
    if (direction <= 0) {
      low = std::min(low, value);
      if (value - low > least) {
        turns += direction < 0 ? 1U : 0U;
        direction = 1;
        high = value;
      }
    }
  }
  const std::size_t third = windows.means.size() * 2 / 3;
  const double late =
      median(std::vector<double>(windows.means.begin() + static_cast<std::ptrdiff_t>(third), windows.means.end()));
  const bool is_stuck = late > 0.7 * std::min(losses.values.front(), windows.means.front());
  if (turns < kLeastTurns || !is_stuck) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = losses.steps.front(),
       .last_step = losses.steps.back(),
       .mode = run.training_mode(),
       .tensors = {first_loss(run)},
       .value = static_cast<double>(turns),
       .threshold = static_cast<double>(kLeastTurns),
       .message = fmt::format("The loss goes up and down by {:.3g} or more ({} turns) and gets nowhere.", least, turns),
       .causes = {"the learning rate or the momentum is too high"},
       .advice = {"divide the learning rate by 10", "lower the momentum"},
       .evidence = evidence_of(first_loss(run), losses)});
}

}  // namespace

const Detector kCheckLossSpike = {.name = "LossSpike",
                                  .question = "Does the loss jump and stay up?",
                                  .depth = 5,
                                  .is_event = true,
                                  .look = look_for_spikes};
const Detector kCheckGradNormSpike = {.name = "GradNormSpike",
                                      .question = "Do gradients jump and do harm?",
                                      .depth = 4,
                                      .is_event = true,
                                      .look = look_for_gradient_spikes};
const Detector kCheckOscillation = {
    .name = "OscillatingLoss", .question = "Does the loss swing?", .depth = 6, .look = look_for_swings};

}  // namespace tornasole::rules
