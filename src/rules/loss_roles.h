#pragma once

// LossRoles: which losses of a step are of training and which of validation.
//
// 1. A trial with training and with evaluation steps: the mode of the step tells.
// 2. Else the name tells, as XGBoost makes it of a data set and a metric: "train-logloss". What the model description
//    says of the data set goes before its name.
// 3. Losses without such a name are of training, unless the step is one of evaluation.

#include <map>
#include <optional>
#include <string>

#include "tornasole/rule.h"

namespace tornasole::rules {

struct StepLosses {
  std::optional<double> training = {}, validation = {};  // means over the scalars of the step
};

class LossRoles {
 public:
  // The scalars of the step's first need, by worker. Those that are no scalars are skipped and counted.
  static std::map<std::string, StepLosses, std::less<>> split(const StepView& step, Findings& findings);
  // Of 1 above.
  static bool has_two_modes(const Trial& trial);
};

// EvaluationMeans: what one worker's validation numbers are to be compared with, as its steps come by.
class EvaluationMeans {
 public:
  struct Pair {
    double training = 0, validation = 0;
    bool begins = false;  // the first of its run of evaluation steps
  };
  // Something at a step with validation numbers, once there are training numbers. Trials with both modes: the mean of
  // the current run of evaluation steps, and that of the training steps since the run before; the last training mean
  // stays if there were none. Else the numbers of one step.
  std::optional<Pair> add(const StepView& step, const StepLosses& losses);

 private:
  struct Sum {
    double sum = 0;
    std::int64_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  Sum new_training_, validation_;
  std::optional<double> training_;
  std::optional<std::int64_t> eval_global_step_, eval_step_;  // of the last evaluation step
};

}  // namespace tornasole::rules
