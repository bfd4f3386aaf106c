#pragma once

// InProcessRules: rules that run inside the training they look at.
//
//   auto hook = tornasole::Hook::open({.out_dir = "runs/mnist", .save_config = {.save_interval = 10}});
//   if (!hook) return fail(hook.error());
//   auto rules = tornasole::InProcessRules::start(&*hook, {{.rule = "VanishingGradient"}, {.rule = "LossSpike"}});
//   if (!rules) return fail(rules.error());                   // set-up is the one place that may refuse
//   ... train ...
//   hook->close();
//   rules->stop();
//
// A thread of low priority, started with the first step that is published, reads the hook's own run as anybody would
// and runs the rules over it. So the training is neither waited for nor touched. Only rules that statistics are enough
// for may run here. The hook is told to save what they need, and no more: the collections, the reductions of those that
// were not saved anyway, and the statistics that are derived.
//
// When the condition of a rule is met first, a warning is logged, the tensors it is about are saved whole at the next
// steps, and the flight recorder, if there is one, is written.
//
// They ask what tornasole check asks: of the whole run so far, and told once the answer has lasted, so that a healthy
// training hears nothing. A rule that was given parameters, and one that the check has no question for, runs as it is
// documented; so do all in profile reference, whose limits healthy trainings meet, too.
//
// Of several workers the first runs the rules, over what all of them write. In a forked child nothing runs.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tornasole/check.h"
#include "tornasole/export.h"
#include "tornasole/hook.h"
#include "tornasole/result.h"
#include "tornasole/rule.h"

namespace tornasole {

namespace inprocess {
class RuleThread;
}

struct InProcessRule {
  std::string rule = {};  // as find_rule takes it
  std::string name = {};  // of its report; the rule's own
  std::map<std::string, std::string> parameters = {};
};

struct InProcessOptions {
  double poll_s = 0.5;            // at most so often is what was published looked at
  std::int64_t detail_steps = 3;  // of the mode: tensors of a first finding are saved whole for so many; 0: not
  bool dump_flight_recorder = true;
  Profile profile = Profile::kCheck;
  // Called on the rules' thread after each step at which a condition is met.
  std::function<void(const RuleOutcome& rule, const Violation& newest)> on_met = {};
};

class TORNASOLE_EXPORT InProcessRules {
 public:
  // Before the first step. The hook stays where it is until `stop`. kInvalid for a rule or a parameter that does not
  // exist; kUnsupported for a rule that needs whole values or a clock, and for a hook that writes nothing.
  static Result<InProcessRules> start(Hook* hook, std::vector<InProcessRule> rules, InProcessOptions options = {});
  InProcessRules(InProcessRules&&) noexcept;
  InProcessRules& operator=(InProcessRules&&) noexcept;
  ~InProcessRules();  // stops

  // Looks at what was published since, then ends. After the hook was closed, so that nothing is missed; waits at most
  // 5 s.
  void stop() noexcept;
  // What the rules have found so far, in the order given. Any thread.
  std::vector<RuleOutcome> outcomes() const;

 private:
  explicit InProcessRules(std::shared_ptr<inprocess::RuleThread> thread);
  std::shared_ptr<inprocess::RuleThread> thread_;  // shared: the thread outlives a stop that was not waited for
};

}  // namespace tornasole
