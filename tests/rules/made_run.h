#pragma once

// Records of runs made by hand, and what a detector says of them.

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rules/check/detector.h"

namespace tornasole::rules {

using Columns = std::vector<std::pair<Column, double>>;

// A run with training steps 0, 1, 2 ..., one optimizer step each.
class MadeRun {
 public:
  explicit MadeRun(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      const auto number = static_cast<std::int64_t>(i);
      record.steps.push_back({number, {Mode::kTrain, number}, number});
      record.facts.push_back({.optimizer_step = number, .training = true, .grad_enabled = true});
    }
  }
  // The same numbers at every step.
  History& add(const std::string& name, TensorRole role, const Columns& columns) {
    return add(name, std::move(role), [&](std::size_t) { return columns; });
  }
  History& add(const std::string& name, TensorRole role, const std::function<Columns(std::size_t)>& columns) {
    History history{.name = name, .worker = "worker_0", .role = std::move(role)};
    for (std::size_t i = 0; i < record.steps.size(); ++i) {
      history.points.push_back(static_cast<std::uint32_t>(i));
      history.rows.emplace_back().fill(NAN);
      for (const auto& [column, value] : columns(i)) {
        history.rows.back()[static_cast<std::size_t>(column)] = static_cast<float>(value);
      }
    }
    record.histories.push_back(std::move(history));
    return record.histories.back();
  }
  void losses(const std::function<double(std::size_t)>& loss) {
    add("loss", {.role = Role::kLoss}, [&](std::size_t i) { return Columns{{Column::kMean, loss(i)}}; });
  }
  void weight(const std::string& name, const std::function<double(std::size_t)>& update, double before = 1) {
    add(name, {.role = Role::kWeight, .parameter = name, .rank = 2}, [&](std::size_t i) {
      return Columns{{Column::kUpdate, update(i)}, {Column::kBefore, before}, {Column::kGap, 1}};
    });
  }
  void gradient(const std::string& parameter, double l2, double count = 100, double zeros = 0) {
    add("gradient/" + parameter, {.role = Role::kGradient, .parameter = parameter, .rank = 2},
        {{Column::kL2, l2}, {Column::kCount, count}, {Column::kZeros, zeros}});
  }

  // A number at every step, of labels or of what goes into the loss.
  History& of_loss(Role role, const std::string& loss_class, const Columns& columns) {
    return add(role == Role::kLabels ? "labels" : "predictions", {.role = role, .loss_class = loss_class}, columns);
  }

  RunRecord record;
};

inline std::vector<Verdict> ask(const Detector& detector, const MadeRun& run, std::string* cannot = nullptr) {
  Judgement judgement(detector.name);
  detector.look(run.record, judgement);
  if (cannot != nullptr) *cannot = judgement.not_checked();
  return judgement.verdicts();
}

}  // namespace tornasole::rules
