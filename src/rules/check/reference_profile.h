#pragma once

#include "tornasole/check.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

// A report without a summary. A rule that is met is a warning, whatever healthy trainings show; no causes, no symptoms.
Result<CheckReport> check_by_reference(Trial& trial, const CheckOptions& options);

}  // namespace tornasole::rules
