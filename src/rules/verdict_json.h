#pragma once

#include "base/json.h"
#include "tornasole/check.h"

namespace tornasole::rules {

// All of a verdict but its evidence and its cause, as members of an object that was begun.
void write_verdict_members(JsonWriter& json, const Verdict& verdict);

}  // namespace tornasole::rules
