#pragma once

// What the predictions of a training tell about the run as a whole. Pure; detectors share these.

#include "rules/check/run_record.h"

namespace tornasole::rules {

inline constexpr double kConstantOutput = 1e-6;  // variance over samples, as a share of the mean square

// How much predictions vary from sample to sample.
struct OutputVariance {
  bool is_known = false;
  const History* constant = nullptr;  // an output that is the same for every sample over the later half of the run
  Series variance = {};               // of that output, as a share of its mean square
  std::size_t onset = 0;              // place in `variance` from which on it is constant
};
OutputVariance output_variance(const RunRecord& run);

// The largest share of its input that a drop-out layer takes away; 0 if there is none, or it is not known.
double most_dropped(const RunRecord& run);

// The most samples that a step gave a tensor.
double most_samples(const History& history);

}  // namespace tornasole::rules
