#pragma once

// A verdict of `check`, for the commands that show some.

#include <string>

#include "cli/terminal.h"
#include "tornasole/check.h"

namespace tornasole::cli {

Tone tone_of(Severity severity) noexcept;
// "step 4", "steps 4 to 9".
std::string steps_text(const Verdict& verdict);

}  // namespace tornasole::cli
