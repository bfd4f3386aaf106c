#pragma once

#include "tornasole/rule.h"

namespace tornasole::rules {

extern const RuleType kInvariantCheck;

}  // namespace tornasole::rules
