#pragma once

#include <string>
#include <string_view>

#include "tornasole/trial.h"

namespace tornasole::cli {

// "running", "ended", "failed", "presumed dead", "unknown".
std::string_view run_state_name(RunState state) noexcept;
// "failed: <reason>".
std::string run_status_text(const RunStatus& status);

}  // namespace tornasole::cli
