#pragma once

// What a Config is made of whatever it comes from: who writes, the environment's switches, checks of the whole.

#include "config/config.h"
#include "config/environment.h"
#include "config/problems.h"

namespace tornasole::config {

// Framework, rank, world size, worker name; strict mode, log variables, SageMaker's places. With default schedules.
Config start_config(const HookOptions& options, const Environment& environment, Problems* problems);
// The last step for both sources: pattern limits, and what the framework does not do. Moves the warnings in.
void finish_config(Config* config, Problems* problems);

}  // namespace tornasole::config
