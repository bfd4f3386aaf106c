#include "rules/check/learning_rate_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kLeastLosses = 20;

// Whether the loss was still falling when the rate ran out at a step. One that follows the loss down (reduce on
// plateau) ends where nothing was won any more.
bool falls_until(const RunRecord& run, const Series& losses, std::int64_t step) {
  constexpr std::size_t kLeastBefore = 8;
  std::vector<double> before;
  for (std::size_t i = 0; i < losses.size() && losses.steps[i] <= step; ++i) before.push_back(losses.values[i]);
  if (before.size() < kLeastBefore) return true;
  const std::size_t half = before.size() / 2;
  const WindowMeans windows = loss_windows(run, losses, 10, 4);
  const double noise = windows.noise * std::sqrt(static_cast<double>(std::max<std::size_t>(windows.length, 1)) /
                                                 static_cast<double>(half));
  const double then = mean(std::span(before).first(half));
  const double fall = then - mean(std::span(before).last(half));
  return fall > std::max(4 * noise, 0.05 * std::fabs(then));
}

// Whether all steps together go no further than a few at the highest rate would, and much is left to learn.
bool is_spent(const Series& rates, double peak, const Series& losses) {
  constexpr double kFew = 0.05;  // of the steps
  double sum = 0;
  for (const double rate : rates.values) sum += rate / peak;
  const std::span<const double> values(losses.values);
  const double last = mean(values.last(std::max<std::size_t>(1, values.size() / 10)));
  return sum < kFew * static_cast<double>(rates.size()) && last > 0.5 * losses.values.front();
}

}  // namespace

bool look_at_schedule(const RunRecord& run, Judgement& judgement) {
  constexpr double kNothing = 1e-3;  // of the highest rate
  const Series rates = learning_rates(run);
  const Series losses = run.losses(run.training_mode());
  if (rates.size() < kLeastLosses || losses.size() < kLeastLosses) return false;
  const double peak = *std::ranges::max_element(rates.values);
  std::size_t end = rates.size();
  while (end > 0 && rates.values[end - 1] < kNothing * peak) --end;
  if (!(peak > 0) || end == 0 || 2 * end > rates.size()) return false;
  const std::int64_t step = rates.steps[end - 1];
  if (!falls_until(run, losses, step) && !is_spent(rates, peak, losses)) return false;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = step,
       .last_step = rates.steps.back(),
       .mode = run.training_mode(),
       .tensors = {run.of_role(Role::kLearningRate).front()->name},
       .value = rates.values.back(),
       .threshold = kNothing * peak,
       .message = fmt::format("The learning rate has all but gone at step {}, while there was more to learn: "
                              "the other {} of {} steps change nothing.",
                              step, rates.size() - end, rates.size()),
       .causes = {"a schedule that is stepped too often (per batch instead of per epoch), or made for a shorter "
                  "run"},
       .advice = {"let the schedule last as long as the run"},
       .evidence = evidence_of("learning rate", rates)});
  return true;
}

namespace {

// Whether a weight is at one row what it was at the row before, to the last bit of all that is known of it.
bool is_same_as_before(const History& weight, std::size_t row) {
  if (const double update = weight.at(Column::kUpdate, row); !std::isnan(update)) return update == 0;
  if (std::isnan(weight.at(Column::kL2, row))) return false;
  return std::ranges::all_of(std::array{Column::kMean, Column::kL2, Column::kStd}, [&](Column column) {
    const double now = weight.at(column, row);
    return std::isnan(now) || now == weight.at(column, row - 1);
  });
}

bool has_gradient_after(const RunRecord& run, const History& weight, std::uint32_t point) {
  const History* gradient = run.find("gradient/" + weight.name);
  for (std::size_t i = 0; gradient != nullptr && i < gradient->size(); ++i) {
    if (gradient->points[i] > point && gradient->at(Column::kL2, i) > 0) return true;
  }
  return false;
}

}  // namespace

bool look_at_standstill(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastStill = 4;
  if (!learning_rates(run).empty()) return false;
  std::uint32_t moved = 0;
  std::uint32_t end = 0;
  std::size_t still = 0;
  bool is_any_moved = false;
  bool has_gradients = false;
  std::vector<std::string> names;
  const std::vector<const History*> weights = trained_weights(run);
  for (const History* weight : weights) {
    for (std::size_t i = 1; i < weight->size(); ++i) {
      if (is_same_as_before(*weight, i)) continue;
      is_any_moved = true;
      moved = std::max(moved, weight->points[i]);
    }
  }
  for (const History* weight : weights) {
    names.push_back(weight->name);
    const auto after = std::ranges::count_if(weight->points, [&](std::uint32_t point) { return point > moved; });
    still = std::max(still, static_cast<std::size_t>(after));
    if (weight->size() > 0) end = std::max(end, weight->points.back());
    has_gradients |= has_gradient_after(run, *weight, moved);
  }
  if (!is_any_moved || !has_gradients || still < kLeastStill || 2 * moved > end) return false;
  const std::int64_t taken = run.steps[end].optimizer_step - run.steps[moved].optimizer_step;
  if (run.steps[moved].optimizer_step < 0 || taken < static_cast<std::int64_t>(kLeastStill)) return false;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = run.steps[moved].global_step,
       .last_step = run.steps[end].global_step,
       .mode = run.training_mode(),
       .tensors = std::move(names),
       .value = 0,
       .message = fmt::format("No weight has changed since step {}, in {} optimizer steps, although there are "
                              "gradients: the learning rate has gone to zero.",
                              run.steps[moved].global_step, taken),
       .causes = {"a schedule that is stepped too often (per batch instead of per epoch), or made for a "
                  "shorter run"},
       .advice = {"let the schedule last as long as the run", "save scalar/learning_rate"},
       .evidence = evidence_of("loss", run.losses(run.training_mode()))});
  return true;
}

}  // namespace tornasole::rules
