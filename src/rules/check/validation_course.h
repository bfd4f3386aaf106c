#pragma once

// ValidationCourse: how the losses of evaluations went beside those of the training. Pure; detectors share it.

#include <optional>

#include "rules/check/run_record.h"

namespace tornasole::rules {

struct ValidationCourse {
  Series validation = {};  // the mean of each evaluation
  Series training = {};
  std::size_t best_at = 0;  // the best evaluation
  double best = 0;
  double last = 0;   // median of the last three
  double noise = 0;  // deviation of an evaluation; 0 for boosting, which evaluates the same data each time
  double training_first = 0, training_then = 0, training_now = 0;  // at the first and the best evaluation, at the end

  double rise() const noexcept { return last - best; }
};

inline constexpr std::size_t kLeastEvaluations = 5;

// Nothing where fewer evaluations, or no losses of the training, are known.
std::optional<ValidationCourse> validation_course(const RunRecord& run);
std::size_t evaluation_count(const RunRecord& run);

// Much of the training set was learned, and nothing that holds for other data, from the first evaluation to the last.
bool has_validation_won_nothing(const ValidationCourse& course);
// Validation rose from its best, by more than its noise and by what matters, and training went on falling.
bool is_overfit(const ValidationCourse& course);

}  // namespace tornasole::rules
