#pragma once

// A verdict of `check`, for the commands that show some.

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/terminal.h"
#include "tornasole/check.h"

namespace tornasole::cli {

Tone tone_of(Severity severity) noexcept;
// "step 4", "steps 4 to 9".
std::string steps_text(const Verdict& verdict);

void write_texts(JsonWriter& json, const std::vector<std::string>& texts);
// All but its evidence and its cause, as members of an object that was begun.
void write_verdict_members(JsonWriter& json, const Verdict& verdict);

}  // namespace tornasole::cli
