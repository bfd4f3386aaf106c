#pragma once

// Action: one thing that is done when the condition of a rule is met. One file for each kind of effect; rule_actions.cc
// has the table of their names.

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tornasole/result.h"
#include "tornasole/rule_actions.h"

namespace tornasole::rules {

struct ActionEvent {
  std::string_view rule;
  const Violation& violation;
  double time_s;          // since 1970
  std::string_view json;  // all of it, as rule_actions.h says
};

class Action {
 public:
  virtual ~Action() = default;
  Action(const Action&) = delete;
  Action& operator=(const Action&) = delete;
  // Tries once, for at most the time-out of the options.
  virtual Status run(const ActionEvent& event) = 0;

 protected:
  Action() = default;
};

// Each takes the value of its key; kInvalid says what is allowed. The options outlive the action.
using MadeAction = Result<std::unique_ptr<Action>>;
MadeAction make_stop_action(const Json& prefix, const RuleActionOptions& options);
MadeAction make_email_action(const Json& endpoint, const RuleActionOptions& options);
MadeAction make_sms_action(const Json& endpoint, const RuleActionOptions& options);
MadeAction make_exec_action(const Json& command, const RuleActionOptions& options);
MadeAction make_file_action(const Json& path, const RuleActionOptions& options);
MadeAction make_webhook_action(const Json& url, const RuleActionOptions& options);

}  // namespace tornasole::rules
