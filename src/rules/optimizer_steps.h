#pragma once

// How many optimizer steps lie between two steps of a run: as recorded with the steps, else by their numbers.

#include <cstdint>
#include <optional>
#include <string_view>

#include "tornasole/rule.h"

namespace tornasole::rules {

struct OptimizerStep {
  std::int64_t number = 0;  // of the mode
  std::optional<std::int64_t> taken = {};
};

inline OptimizerStep optimizer_step_of(const StepView& step, std::string_view worker) {
  return {step.step().number, step.trial().step_facts(step.global_step(), worker).optimizer_step};
}

// Steps of the optimizer since `before`. A recorded zero means that several forward passes belong to one of them.
inline std::int64_t steps_between(const OptimizerStep& before, const OptimizerStep& now) {
  if (before.taken && now.taken) return *now.taken - *before.taken;
  return now.number - before.number;
}

}  // namespace tornasole::rules
