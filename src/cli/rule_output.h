#pragma once

// What rules found, for people and as JSON.

#include <string>

#include "cli/terminal.h"
#include "rules/report_files.h"
#include "tornasole/rule.h"

namespace tornasole::cli {

// A line while the run is followed: "VanishingGradient at step 4 (TRAIN 4): ...".
std::string met_line(const Trial& trial, const RuleOutcome& rule, const Violation& newest);

// For each rule: condition met or not, steps, tensors, what was skipped, the newest violations.
std::string outcome_text(const RuleRunner& runner, const Trial& trial, const Terminal& terminal);
// {"trial", "ended_because", "last_step", "undelivered_actions", "rules": [{"name", "status", "steps_evaluated",
// "steps_met", "error", "report"}]}.
std::string outcome_json(const RuleRunner& runner, const Trial& trial, rules::Evaluation evaluation,
                         std::int64_t undelivered);

}  // namespace tornasole::cli
