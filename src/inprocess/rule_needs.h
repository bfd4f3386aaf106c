#pragma once

// What rules need, told to a hook.
//
//   in:  a rule that was made, the hook it shall run beside
//   out: the hook saves what the rule needs; or why the rule cannot run there
//   who: inprocess_rules.cc, for each rule, before the first step

#include <string_view>

#include "tornasole/hook.h"
#include "tornasole/rule.h"

namespace tornasole::inprocess {

// kUnsupported for a rule that statistics are not enough for; the hook is then as it was.
Status save_needs(std::string_view rule, const std::vector<Need>& needs, Hook* hook);

}  // namespace tornasole::inprocess
