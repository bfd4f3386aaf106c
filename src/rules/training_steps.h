#pragma once

#include <algorithm>

#include "tornasole/rule.h"

namespace tornasole::rules {

inline bool has_training_steps(const Trial& trial) { return std::ranges::count(trial.modes(), Mode::kTrain) > 0; }

// What rules about training look at: training steps, or all steps of a trial that has none.
inline bool is_training_step(const StepView& step) {
  return step.mode() == Mode::kTrain || !has_training_steps(step.trial());
}

}  // namespace tornasole::rules
