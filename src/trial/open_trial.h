#pragma once

// Opening a trial with other dependencies than the real ones: for tests that choose the store or the clock, and for
// other kinds of stores.

#include "tornasole/trial.h"
#include "trial/trial_state.h"

namespace tornasole::trial {

// With a store given, the path of the options is a name for messages.
Result<Trial> open_trial(const TrialOptions& options, const config::Environment& environment,
                         TrialDependencies dependencies);

struct TrialAccess {
  static Trial make(std::unique_ptr<TrialState> state);
};

}  // namespace tornasole::trial
