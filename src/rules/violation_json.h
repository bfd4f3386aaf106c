#pragma once

#include "base/json.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

// step, mode, mode_step, worker, tensor, value, threshold, message: as in reports and in the events of actions. Numbers
// that are not finite are the texts "nan", "inf" and "-inf".
void write_violation_members(JsonWriter& json, const Violation& violation);

}  // namespace tornasole::rules
