#include "rules/loss_roles.h"

#include <algorithm>
#include <array>

#include "rules/scalar_values.h"

namespace tornasole::rules {
namespace {

enum class Role { kTraining, kValidation, kUnknown };

constexpr std::array<std::string_view, 4> kValidationNames = {"validation", "valid", "eval", "test"};

Role role_of_word(std::string_view word) {
  if (word.starts_with("train")) return Role::kTraining;
  const bool is_validation =
      std::ranges::any_of(kValidationNames, [&](std::string_view start) { return word.starts_with(start); });
  return is_validation ? Role::kValidation : Role::kUnknown;
}

Role role_of(const Trial& trial, const StepTensor& loss) {
  const auto found = trial.models().find(loss.worker);
  if (found != trial.models().end()) {
    // The longest data set that begins the name: "validation_10" is not "validation_1".
    const std::string* role = nullptr;
    std::size_t length = 0;
    for (const auto& [set, own_role] : found->second.model.data) {
      const bool is_of_set =
          loss.name.size() > set.size() && loss.name.starts_with(set) && loss.name[set.size()] == '-';
      if (!is_of_set || (role != nullptr && set.size() < length)) continue;
      role = &own_role;
      length = set.size();
    }
    if (role != nullptr) return role_of_word(*role) == Role::kTraining ? Role::kTraining : Role::kValidation;
  }
  return role_of_word(loss.name);
}

struct Mean {
  double sum = 0;
  std::int64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  std::optional<double> value() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
};

}  // namespace

bool LossRoles::has_two_modes(const Trial& trial) {
  const std::vector<Mode> modes = trial.modes();
  return std::ranges::count(modes, Mode::kTrain) > 0 && std::ranges::count(modes, Mode::kEval) > 0;
}

std::map<std::string, StepLosses, std::less<>> LossRoles::split(const StepView& step, Findings& findings) {
  struct Means {
    Mean training, validation, unnamed;
  };
  const bool by_mode = has_two_modes(step.trial());
  std::map<std::string, Means, std::less<>> means;
  for (const StepTensor* loss : step.tensors()) {
    const auto value = scalar_value(*loss, findings);
    if (!value) continue;
    findings.count_datapoint();
    Means& own = means[std::string(loss->worker)];
    switch (by_mode ? Role::kUnknown : role_of(step.trial(), *loss)) {
      case Role::kTraining: own.training.add(*value); break;
      case Role::kValidation: own.validation.add(*value); break;
      case Role::kUnknown: own.unnamed.add(*value); break;
    }
  }
  std::map<std::string, StepLosses, std::less<>> losses;
  for (const auto& [worker, own] : means) {
    StepLosses& split = losses[worker];
    split = {own.training.value(), own.validation.value()};
    if (split.training || split.validation) continue;
    const bool is_training =
        by_mode ? step.mode() == Mode::kTrain : step.mode() == Mode::kTrain || step.mode() == Mode::kGlobal;
    if (is_training) split.training = own.unnamed.value();
    if (step.mode() == Mode::kEval) split.validation = own.unnamed.value();
  }
  return losses;
}

std::optional<EvaluationMeans::Pair> EvaluationMeans::add(const StepView& step, const StepLosses& losses) {
  if (losses.training && losses.validation) return Pair{*losses.training, *losses.validation, true};
  if (losses.training) {
    new_training_.sum += *losses.training;
    ++new_training_.count;
    eval_global_step_.reset();
    return std::nullopt;
  }
  if (!losses.validation) return std::nullopt;
  // Steps of other modes lie between two evaluation steps if the global number grew by more than their own.
  const bool continues =
      eval_global_step_ && step.global_step().number - *eval_global_step_ == step.step().number - *eval_step_;
  if (!continues) {
    validation_ = {};
    if (new_training_.count > 0) training_ = new_training_.mean();
    new_training_ = {};
  }
  validation_.sum += *losses.validation;
  ++validation_.count;
  eval_global_step_ = step.global_step().number;
  eval_step_ = step.step().number;
  if (!training_) return std::nullopt;
  return Pair{*training_, validation_.mean(), !continues};
}

}  // namespace tornasole::rules
