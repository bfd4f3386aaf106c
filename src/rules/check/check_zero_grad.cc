// MissingZeroGrad: the gradient the optimizer sees is the sum over all steps so far.
//
// Where a hook looked at what gradients there were before a backward pass, that tells it: once weights have changed,
// some pass must find nothing before they change again. Else the gradient tells, if it is not clipped: it points where
// it pointed at the last step, and is many times as large as that of one backward pass. With gradient accumulation it
// is as large as the passes of one optimizer step make it, and no larger. Where only gradients of single passes are
// known, weights tell: plain gradient descent goes no further than the rate times these.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"

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

// Whether a weight is another at a row than at the row before.
bool has_changed(const History& weight, std::size_t row) {
  if (const double update = weight.at(Column::kUpdate, row); std::isfinite(update)) return update > 0;
  return row > 0 && (weight.at(Column::kL2, row) != weight.at(Column::kL2, row - 1) ||
                     weight.at(Column::kMean, row) != weight.at(Column::kMean, row - 1));
}

// The l2 of a parameter's gradient by the pass of a step; NaN if it is not known.
double gradient_size(const RunRecord& run, const std::string& parameter, std::uint32_t point) {
  return number_at(run.find("gradient/" + parameter), point, Column::kL2);
}

// Stretches of passes from one change of a parameter to the next, and those of them that found no gradient cleared.
struct Stretches {
  std::size_t known = 0, kept = 0;
  Series found = {};  // before each pass
};
void add_stretches(const RunRecord& run, const History& before, Stretches* stretches) {
  const History* weight = run.find(before.role.parameter);
  if (weight == nullptr || (!run.optimized.empty() && !run.optimized.contains(weight->name))) return;
  std::optional<bool> is_cleared;  // in the stretch so far, if its beginning is known
  bool has_pass = false;
  bool was_zero = false;  // the gradient of the last pass
  const StepPoint* last = nullptr;
  for (std::size_t i = 0; i < weight->size(); ++i) {
    const StepPoint& point = run.steps[weight->points[i]];
    if (point.step.mode != run.training_mode()) continue;
    const bool is_next = last != nullptr && point.step.number == last->step.number + 1;
    last = &point;
    if (!is_next) is_cleared.reset();
    if (is_next && has_changed(*weight, i)) {
      stretches->known += is_cleared && has_pass ? 1U : 0U;
      stretches->kept += is_cleared && has_pass && !*is_cleared ? 1U : 0U;
      is_cleared = has_pass = false;
    }
    const auto pass = std::ranges::lower_bound(before.points, weight->points[i]);
    if (pass == before.points.end() || *pass != weight->points[i]) continue;
    const double found = before.at(Column::kMean, static_cast<std::size_t>(pass - before.points.begin()));
    has_pass = true;
    if (is_cleared && found == 0) {
      // Of a pass that left nothing, there was nothing to clear.
      if (was_zero) {
        is_cleared.reset();
      } else {
        is_cleared = true;
      }
    }
    was_zero = gradient_size(run, before.role.parameter, weight->points[i]) == 0;
    stretches->found.steps.push_back(point.global_step);
    stretches->found.values.push_back(found);
  }
}

// Nothing if it is not known. In a contest, one model's loss leaves gradients in the other.
std::optional<bool> look_before_passes(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastStretches = 2;
  const std::vector<const History*> watched = run.of_role(Role::kGradientBefore);
  Stretches stretches;
  std::vector<std::string> names;
  for (const History* before : watched) {
    add_stretches(run, *before, &stretches);
    names.push_back("gradient/" + before->role.parameter);
  }
  if (stretches.known < kLeastStretches || is_contest(run)) return std::nullopt;
  if (stretches.kept < stretches.known) return false;
  judgement.add({.severity = Severity::kError,
                 .first_step = stretches.found.steps.front(),
                 .last_step = stretches.found.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = names,
                 .value = static_cast<double>(stretches.kept),
                 .threshold = 0,
                 .message = "Each backward pass adds to the gradients of the one before, although the weights have "
                            "changed in between: gradients are added up and never cleared.",
                 .causes = {"optimizer.zero_grad() is not called between steps"},
                 .advice = {"call optimizer.zero_grad() once per optimizer step, before backward()"},
                 .evidence = evidence_of("largest gradient before a pass", stretches.found)});
  return true;
}

// Backward passes per optimizer step, of steps that are far apart; NaN if nobody counted.
double passes_between(const StepPoint& then, const StepPoint& now) {
  if (then.optimizer_step < 0 || now.optimizer_step <= then.optimizer_step) return NAN;
  return static_cast<double>(now.step.number - then.step.number) /
         static_cast<double>(now.optimizer_step - then.optimizer_step);
}

// How many times as far as gradients explain the steps of plain gradient descent go, from one saved step to the next.
// Gradients of batches differ a lot once most of them are learned: the largest one of all that are known counts.
Series unexplained_steps(const RunRecord& run) {
  std::map<std::uint32_t, std::vector<double>> by_point;
  for (const History* weight : trained_weights(run)) {
    const History* gradient = run.find("gradient/" + weight->name);
    if (gradient == nullptr) continue;
    const std::vector<double> sizes = run.series(*gradient, Column::kL2).values;
    const double largest = sizes.empty() ? NAN : *std::ranges::max_element(sizes);
    for (std::size_t i = 1; i < weight->size(); ++i) {
      const StepPoint& then = run.steps[weight->points[i - 1]];
      const StepPoint& now = run.steps[weight->points[i]];
      if (then.step.mode != run.training_mode() || now.step.mode != run.training_mode()) continue;
      const double explained =
          run.plain_rate / (1 - run.momentum) * weight->at(Column::kGap, i) * passes_between(then, now) * largest;
      const double times = weight->at(Column::kUpdate, i) / explained;
      if (std::isfinite(times)) by_point[weight->points[i]].push_back(times);
    }
  }
  Series series;
  for (auto& [point, times] : by_point) {
    series.steps.push_back(run.steps[point].global_step);
    series.values.push_back(median(std::move(times)));
  }
  return series;
}

// Schedules may raise the rate from what is known of it, so this names the reason only where something is wrong.
bool look_at_lengths(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastSteps = 5;
  constexpr double kFurther = 1.5;
  constexpr double kMuchDecay = 0.01;
  constexpr double kHalf = 0.5;
  if (!(run.plain_rate > 0) || !(run.momentum < 1) || run.weight_decay > kMuchDecay) return false;
  if (!has_loss_suffered(run) && !(loss_left(run).value_or(0) > kHalf)) return false;
  const Series times = unexplained_steps(run);
  const double usual = median(times.values);
  if (times.size() < kLeastSteps || !(usual > kFurther)) return false;
  judgement.add({.severity = Severity::kError,
                 .first_step = times.steps.front(),
                 .last_step = times.steps.back(),
                 .mode = run.training_mode(),
                 .value = usual,
                 .threshold = kFurther,
                 .message = fmt::format("Weights go {:.2g} times as far as the gradients of single backward passes "
                                        "explain: gradients are added up and never cleared.",
                                        usual),
                 .causes = {"optimizer.zero_grad() is not called between steps"},
                 .advice = {"call optimizer.zero_grad() once per optimizer step, before backward()"},
                 .evidence = evidence_of("change of the weights / what gradients explain", times)});
  return true;
}

void look(const RunRecord& run, Judgement& judgement) {
  if (look_before_passes(run, judgement)) return;
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
    if (look_at_lengths(run, judgement)) return;
    judgement.cannot(
        "needs the gradients as the optimizer sees them (collection optimizer_gradients) with the statistic "
        "cosine_previous, and those of single backward passes");
    return;
  }
  if (is_contest(run)) {
    judgement.cannot("several optimizers take turns: what one loss leaves in the gradients may be the other's");
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
    .name = "MissingZeroGrad", .question = "Are gradients cleared between steps?", .depth = 0, .look = look};

}  // namespace tornasole::rules
