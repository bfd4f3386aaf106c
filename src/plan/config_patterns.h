#pragma once

// The patterns of a configuration, before anything is planned with them.

#include "config/config.h"
#include "config/problems.h"

namespace tornasole::plan {

// What is wrong with them: each bad one once, with the line and the key of the file where it stands.
config::Problems pattern_problems(const config::Config& config);

}  // namespace tornasole::plan
