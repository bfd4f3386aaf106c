#include "rules/check/optimizer_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

double rate_at(const Series& rates, std::int64_t step, double otherwise) {
  const auto at = std::ranges::lower_bound(rates.steps, step);
  return at != rates.steps.end() && *at == step ? rates.values[static_cast<std::size_t>(at - rates.steps.begin())]
                                                : otherwise;
}

// How hard decay pulls on the weights beside the loss: the median over weights and steps; NaN if it is not known.
double decay_pull(const RunRecord& run) {
  if (!(run.weight_decay > 0)) return NAN;
  const Series rates = learning_rates(run);
  std::vector<double> pulls;
  for (const History* weight : trained_weights(run)) {
    const History* gradient = run.find("gradient/" + weight->name);
    for (std::size_t i = 0; i < weight->size(); ++i) {
      const std::uint32_t point = weight->points[i];
      if (!run.is_decay_decoupled) {
        pulls.push_back(run.weight_decay * weight->at(Column::kL2, i) / number_at(gradient, point, Column::kL2));
        continue;
      }
      // What a step takes off the weights, and what is left of the step beside it.
      const double off = rate_at(rates, run.steps[point].global_step, run.base_rate) * run.weight_decay *
                         weight->at(Column::kBefore, i);
      const double update = weight->at(Column::kUpdate, i);
      pulls.push_back(off / std::sqrt(std::max(update * update - off * off, 1e-6 * off * off)));
    }
  }
  return median(std::move(pulls));
}

}  // namespace

double number_at(const History* history, std::uint32_t point, Column column) {
  if (history == nullptr) return NAN;
  const auto at = std::ranges::lower_bound(history->points, point);
  if (at == history->points.end() || *at != point) return NAN;
  return history->at(column, static_cast<std::size_t>(at - history->points.begin()));
}

std::vector<const History*> trained_weights(const RunRecord& run) {
  std::vector<const History*> weights = run.of_role(Role::kWeight);
  std::erase_if(weights, [](const History* weight) { return !weight->role.requires_grad; });
  return weights;
}

Series learning_rates(const RunRecord& run) {
  std::map<std::uint32_t, double> largest;
  for (const History* rate : run.of_role(Role::kLearningRate)) {
    for (std::size_t i = 0; i < rate->size(); ++i) {
      const std::uint32_t point = rate->points[i];
      if (run.steps[point].step.mode != run.training_mode() || !std::isfinite(rate->at(Column::kMean, i))) continue;
      const auto [at, is_new] = largest.try_emplace(point, rate->at(Column::kMean, i));
      if (!is_new) at->second = std::max(at->second, rate->at(Column::kMean, i));
    }
  }
  Series rates;
  for (const auto& [point, rate] : largest) {
    rates.steps.push_back(run.steps[point].global_step);
    rates.optimizer_steps.push_back(run.steps[point].optimizer_step);
    rates.values.push_back(rate);
  }
  return rates;
}

double decay_of_a_step(const RunRecord& run) {
  const Series rates = learning_rates(run);
  const double rate = rates.empty() ? run.base_rate : *std::ranges::max_element(rates.values);
  return std::isfinite(rate) ? rate * run.decay_by_rate : 0;
}

bool is_contest(const RunRecord& run) {
  if (run.optimizers < 2) return false;
  if (run.optimizers_of_others > 0 || run.training_losses().size() != 1) return true;
  const auto together = static_cast<std::int64_t>(run.optimizers);
  bool have_stepped = false;
  const StepPoint* last = nullptr;
  for (const StepPoint& point : run.steps) {
    if (point.step.mode != run.training_mode()) continue;
    const bool is_next = last != nullptr && point.step.number == last->step.number + 1;
    const std::int64_t taken = is_next ? point.optimizer_step - last->optimizer_step : 0;
    if (point.optimizer_step < 0 || taken % together != 0) return true;
    have_stepped |= taken != 0;
    last = &point;
  }
  return !have_stepped;
}

std::string decay_text(const RunRecord& run) {
  constexpr double kOutweighs = 3;
  const double pull = decay_pull(run);
  if (!(pull > kOutweighs)) return {};
  return fmt::format(" Weight decay ({:g}) pulls the weights to zero {:.2g} times as hard as the loss pulls elsewhere.",
                     run.weight_decay, pull);
}

// Momentum adds the steps of the past up: about one over what it lacks of 1.
std::string high_rate_text(const RunRecord& run) {
  constexpr double kLongMomentum = 0.98;
  if (!(run.momentum > kLongMomentum) || !(run.momentum < 1)) return "the learning rate is too high";
  return fmt::format("a momentum of {:g} adds up about {:.0f} steps, and is too high for this learning rate",
                     run.momentum, 1 / (1 - run.momentum));
}

}  // namespace tornasole::rules
