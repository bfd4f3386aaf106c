#pragma once

// A question of the check as a rule: asked again and again while a run goes on.
//
//   in:  the steps of a run that is not over, through RuleRunner
//   out: a finding when the answer has lasted
//   who: rules inside a training (src/inprocess)
//
// A run that has just begun looks sick in many ways. What happens at a step (NaN) is told at once; an error that is a
// state when it still holds with half as many steps again, a warning with three times as many, and never before a
// hundred steps.

#include <memory>
#include <string_view>
#include <vector>

#include "tornasole/result.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

// What several questions about one run know of it.
class LiveRecord;
std::shared_ptr<LiveRecord> make_live_record(const Trial& trial);

// The name as rules spell it, where the check asks this of a run by its own; empty where it does not.
std::string_view question_name(std::string_view rule);
// What a hook has to save for it.
std::vector<Need> question_needs(std::string_view name);
// `name` is one that question_name gave.
NamedRule make_question(std::string_view name, std::shared_ptr<LiveRecord> record);

}  // namespace tornasole::rules
