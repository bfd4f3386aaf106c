#pragma once

// What the optimizer does besides following the loss. Pure; detectors share these.

#include <string>
#include <vector>

#include "rules/check/run_record.h"

namespace tornasole::rules {

// The number of a tensor at a place of RunRecord::steps; NaN if there is none.
double number_at(const History* history, std::uint32_t point, Column column);
// Those of rank two or more that are to be trained.
std::vector<const History*> trained_weights(const RunRecord& run);
// The rate of a training step: the largest of all groups; NaN where nobody said.
Series learning_rates(const RunRecord& run);
// What weight decay does to weights that it pulls to zero harder than the loss pulls elsewhere, as a sentence after a
// blank; else empty.
std::string decay_text(const RunRecord& run);
// What makes steps too long, the rate or a momentum that is out of measure, as a part of a sentence.
std::string high_rate_text(const RunRecord& run);
// Share of the weights that decay takes off at a step, at the highest rate; 0 if it is not known.
double decay_of_a_step(const RunRecord& run);
// Whether optimizers may work against each other, as in adversarial training. Several that share the parameters of one
// model, and all step after each loss, do not.
bool is_contest(const RunRecord& run);

}  // namespace tornasole::rules
