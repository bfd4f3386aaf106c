// ReplicaDivergence: copies of a weight that should be equal are not. DuplicateShards: workers are fed the same batch.
// WorkerOutlier: the loss of one worker is unlike that of all others.
//
// Compared are numbers of the same tensor at the same step: copies that agree have them to the bit, whatever the
// number.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rules/check/batch_likeness.h"
#include "rules/check/detector.h"
#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kPatience = 3;

// The rows that several workers have of one tensor, by point.
using Rows = std::map<std::uint32_t, std::vector<std::pair<const History*, std::size_t>>>;
std::map<std::string, Rows> rows_by_name(const RunRecord& run, std::initializer_list<Role> roles) {
  std::map<std::string, Rows> names;
  for (const History& history : run.histories) {
    if (std::ranges::find(roles, history.role.role) == roles.end()) continue;
    for (std::size_t i = 0; i < history.size(); ++i) names[history.name][history.points[i]].emplace_back(&history, i);
  }
  return names;
}

std::size_t worker_count(const RunRecord& run) {
  std::set<std::string_view> workers;
  for (const History& history : run.histories) workers.insert(history.worker);
  return workers.size();
}

void look_at_replicas(const RunRecord& run, Judgement& judgement) {
  if (worker_count(run) < 2) {
    judgement.cannot("needs several workers");
    return;
  }
  bool has_any = false;
  std::map<std::string, std::size_t> apart;  // worker -> comparisons that failed
  std::vector<std::string> names;
  std::set<std::uint32_t> points;
  for (const auto& [name, rows] : rows_by_name(run, {Role::kWeight, Role::kBias})) {
    bool is_apart = false;
    for (const auto& [point, copies] : rows) {
      if (run.steps[point].step.mode != run.training_mode()) continue;
      for (std::size_t k = 1; k < copies.size(); ++k) {
        const auto& [first, first_row] = copies.front();
        const auto& [other, other_row] = copies[k];
        // Shards differ on purpose.
        if (first->role.is_shard || (first->shape && other->shape && !(*first->shape == *other->shape))) continue;
        has_any = true;
        if (compare_numbers(*first, first_row, *other, other_row) != Likeness::kDifferent) continue;
        is_apart = true;
        points.insert(point);
        ++apart[other->worker];
      }
    }
    if (is_apart) names.push_back(name);
  }
  if (!has_any) {
    judgement.cannot("needs parameters of several workers at the same steps");
    return;
  }
  if (points.size() < kPatience) return;
  const auto worst = std::ranges::max_element(apart, {}, &std::pair<const std::string, std::size_t>::second);
  judgement.add({.severity = Severity::kError,
                 .first_step = run.steps[*points.begin()].global_step,
                 .last_step = run.steps[*points.rbegin()].global_step,
                 .mode = run.training_mode(),
                 .tensors = names,
                 .value = static_cast<double>(names.size()),
                 .threshold = 0,
                 .message = fmt::format("Workers hold different copies of {} since step {}; most often apart: {}.",
                                        names_text(names, 2), run.steps[*points.begin()].global_step, worst->first),
                 .causes = {"gradients are not averaged between workers (the model is not wrapped, or unwrapped parts "
                            "are trained)",
                            "workers started from different weights", "a worker computed something wrong"},
                 .advice = {"wrap the model for data parallel training and step only after all gradients came",
                            "start all workers from the same weights"}});
}

void look_at_shards(const RunRecord& run, Judgement& judgement) {
  if (worker_count(run) < 2) {
    judgement.cannot("needs several workers");
    return;
  }
  bool has_any = false;
  std::set<std::uint32_t> same;
  std::set<std::uint32_t> different;
  std::set<std::string> names;
  for (const auto& [name, rows] : rows_by_name(run, {Role::kModelInput})) {
    for (const auto& [point, batches] : rows) {
      if (run.steps[point].step.mode != run.training_mode()) continue;
      for (std::size_t k = 1; k < batches.size(); ++k) {
        has_any = true;
        const Likeness likeness =
            compare_numbers(*batches[0].first, batches[0].second, *batches[k].first, batches[k].second);
        if (likeness == Likeness::kDifferent) different.insert(point);
        if (likeness != Likeness::kEqual) continue;
        same.insert(point);
        names.insert(name);
      }
    }
  }
  if (!has_any) {
    judgement.cannot("needs the model's inputs of several workers at the same steps");
    return;
  }
  if (same.size() < kPatience || different.size() >= same.size()) return;
  judgement.add({.severity = Severity::kError,
                 .first_step = run.steps[*same.begin()].global_step,
                 .last_step = run.steps[*same.rbegin()].global_step,
                 .mode = run.training_mode(),
                 .tensors = {names.begin(), names.end()},
                 .value = static_cast<double>(same.size()),
                 .threshold = 0,
                 .message = fmt::format("Workers are fed the same batch at {} of {} steps that can be compared.",
                                        same.size(), same.size() + different.size()),
                 .causes = {"every worker reads the whole data set in the same order: no sampler divides it"},
                 .advice = {"use a distributed sampler, or a shard of the data for each worker"}});
}

void look_for_outlier(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastWorkers = 4;
  constexpr double kDeviations = 8;
  if (worker_count(run) < kLeastWorkers) {
    judgement.cannot(fmt::format("needs {} workers or more", kLeastWorkers));
    return;
  }
  std::size_t compared = 0;
  std::map<std::string, std::vector<std::uint32_t>> apart;
  for (const auto& [name, rows] : rows_by_name(run, {Role::kLoss})) {
    for (const auto& [point, losses] : rows) {
      if (run.steps[point].step.mode != run.training_mode() || losses.size() < kLeastWorkers) continue;
      std::vector<double> values;
      for (const auto& [history, row] : losses) values.push_back(history->at(Column::kMean, row));
      const double usual = median(values);
      const double spread = std::max(robust_deviation(values), 1e-3 * std::fabs(usual));
      ++compared;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::fabs(values[i] - usual) > kDeviations * spread) apart[losses[i].first->worker].push_back(point);
      }
    }
  }
  if (compared < kPatience) {
    judgement.cannot("needs the losses of all workers at the same steps");
    return;
  }
  for (const auto& [worker, points] : apart) {
    // Now and then every worker has an odd batch.
    if (points.size() < std::max(kPatience, compared / 2 + 1)) continue;
    judgement.add({.severity = Severity::kWarning,
                   .first_step = run.steps[points.front()].global_step,
                   .last_step = run.steps[points.back()].global_step,
                   .mode = run.training_mode(),
                   .tensors = {run.of_role(Role::kLoss).front()->name},
                   .value = static_cast<double>(points.size()),
                   .threshold = static_cast<double>(compared) / 2,
                   .message = fmt::format("The loss of {} is unlike that of all other workers at {} of {} steps.",
                                          worker, points.size(), compared),
                   .causes = {"its part of the data is unlike the others, or damaged",
                              "the worker holds other weights, or its hardware computes wrongly"},
                   .advice = {"look at the data of that worker", "compare its weights with those of the others"}});
    return;
  }
}

}  // namespace

const Detector kCheckWorkerOutlier = {
    .name = "WorkerOutlier", .question = "Is one worker unlike the others?", .depth = 2, .look = look_for_outlier};
const Detector kCheckReplicas = {
    .name = "ReplicaDivergence", .question = "Do workers hold the same weights?", .depth = 0, .look = look_at_replicas};
const Detector kCheckShards = {
    .name = "DuplicateShards", .question = "Do workers see different data?", .depth = 0, .look = look_at_shards};

}  // namespace tornasole::rules
