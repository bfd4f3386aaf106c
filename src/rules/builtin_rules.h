#pragma once

// The rules that can be made by name: each is one file that defines its type here.

#include "tornasole/rule.h"

namespace tornasole::rules {

extern const RuleType kVanishingGradient;
extern const RuleType kExplodingTensor;

}  // namespace tornasole::rules
