#pragma once

// What rules there are, for `tornasole rule --list-rules`.

#include <string>

#include "cli/terminal.h"
#include "tornasole/rule.h"

namespace tornasole::cli {

// All of them, a table for each group; or one with its parameters.
std::string rules_text(const Terminal& terminal);
std::string rule_text(const RuleType& type, const Terminal& terminal);
// {"rules": [...]}: of all, or of one.
std::string rules_json(const RuleType* only);

}  // namespace tornasole::cli
