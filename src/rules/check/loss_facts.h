#pragma once

// What the loss of a training tells about the run as a whole. Pure; detectors share these.

#include <optional>

#include "rules/check/run_record.h"

namespace tornasole::rules {

// Whether it falls by more than its noise.
bool is_loss_falling(const RunRecord& run);
// Whether it is no better at the end than at the start, or broke.
bool has_loss_suffered(const RunRecord& run);
// What the best constant prediction would cost: the entropy of the labels, their variance. Nothing where the loss is
// another one, or the labels were not saved.
std::optional<double> trivial_loss(const RunRecord& run);

}  // namespace tornasole::rules
