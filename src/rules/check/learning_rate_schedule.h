#pragma once

// Rates that run out long before the run ends, as LearningRateSanity tells of them.

#include "rules/check/detector.h"

namespace tornasole::rules {

// A schedule that ends long before the run does, while there was still something to win. Whether there is a verdict.
bool look_at_schedule(const RunRecord& run, Judgement& judgement);

// Where no rate was saved, weights tell that it went to zero: they moved, and then none of them ever again, although
// gradients came. Whether there is a verdict.
bool look_at_standstill(const RunRecord& run, Judgement& judgement);

}  // namespace tornasole::rules
