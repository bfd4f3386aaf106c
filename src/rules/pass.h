#pragma once

// Pass: what a RuleRunner holds. Wires the rules to the trial:
//
//   1. needs      the needs of all rules -> what is read of each name (name_plans.h)
//   2. sweep      values in the order of steps, each read once
//   3. assemble   the values of one step -> tensors with their numbers (step_assembly.h)
//   4. look       each rule that needs something of the step looks at it
//   5. report     what it found; the callbacks of the caller
//
// While a run is followed this begins again at 1 after every refresh, from the first step not seen.

#include <memory>
#include <string>
#include <vector>

#include "rules/name_plans.h"
#include "rules/step_assembly.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

class Pass {
 public:
  Pass(Trial* trial, RuleRunOptions options);

  void add(NamedRule rule);
  // Before the first run: steps that an exception or a signal cut short are looked at, too.
  void include_partial() noexcept { includes_partial_ = true; }
  Status run();
  Result<bool> run_step(GlobalStep step);
  const std::string& ended_because() const noexcept { return ended_because_; }
  std::size_t size() const noexcept { return entries_.size(); }
  const RuleOutcome& outcome(std::size_t rule) const noexcept { return entries_[rule].outcome; }
  const Rule& rule(std::size_t rule) const noexcept { return *entries_[rule].rule; }

 private:
  static constexpr std::size_t kMaxStepsMet = 10'000;
  struct Entry {
    std::unique_ptr<Rule> rule;
    RuleOutcome outcome;
    std::size_t first_need = 0, need_count = 0;
  };

  bool has_stopped() const noexcept { return !ended_because_.empty(); }
  void ask_needs();
  Status look_at_known_steps(std::optional<std::int64_t> end_step);
  bool take(const SweptValue& swept);
  void finish_step();
  void look(Entry& entry, std::span<const std::vector<const StepTensor*>> matches);
  void note_met(Entry& entry, GlobalStep step);
  void pause(bool has_new_steps);
  Status follow();

  Trial* trial_;
  RuleRunOptions options_;
  bool includes_partial_ = false;
  std::vector<Entry> entries_;
  std::unique_ptr<NamePlans> plans_;        // made by the first run
  std::unique_ptr<StepAssembly> assembly_;  // likewise
  GlobalStep global_step_ = {};             // of the step that is being put together
  ModeStep step_ = {};
  std::int64_t next_step_ = 0;  // the first that was not looked at
  std::string ended_because_;
};

}  // namespace tornasole::rules
