#pragma once

// RuleConfiguration: a rule with its parameters, as a JSON file says it.
//
//   {"DebugRuleConfiguration":
//      {"RuleConfigurationName": "vanishing",
//       "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "1e-6"}},
//    "CollectionConfigurations":
//      [{"CollectionName": "gradients", "CollectionParameters": {"save_interval": "500"}}]}
//
// A file holds one such object, a list of them, or an object whose members are such objects.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/result.h"

namespace tornasole {

// What the rule needs to find in the run: for the hook, a rule does not look at it.
struct NeededCollection {
  std::string name;
  std::map<std::string, std::string> parameters = {};
};

struct RuleConfiguration {
  std::string name;  // of its report: letters, digits, ".", "_" and "-"; the rule's own where none is given
  std::string rule;  // as find_rule takes it
  std::map<std::string, std::string> parameters = {};
  std::vector<std::string> other_trials = {};  // RuleParameters.other_trials, separated by commas
  std::string actions = {};                    // RuleParameters.action_json, as RuleActions::parse takes it
  std::vector<NeededCollection> collections = {};
  std::string place = {};  // "rules.json:3: [1].DebugRuleConfiguration: ", to go before what is wrong with it
};

// kInvalid, with file, line, key, value and what is allowed, for the first thing that is wrong: a key, a type, a rule
// or a parameter that does not exist, actions that are no JSON, a name used twice. Numbers, truth values and lists are
// taken as the texts they stand for. Trailing commas are tolerated.
TORNASOLE_EXPORT Result<std::vector<RuleConfiguration>> parse_rule_configurations(std::string_view text,
                                                                                  std::string_view file);
// kInvalid unless it can be the name of a report.
TORNASOLE_EXPORT Status check_report_name(std::string_view name);

}  // namespace tornasole
