#pragma once

// Rule: a condition that is looked for, step by step, in what a training run saved.
//
//   auto trial = tornasole::Trial::open({.path = "runs/mnist"});
//   if (!trial) return fail(trial.error());
//   auto rule = tornasole::make_rule("VanishingGradient", {{"threshold", "1e-6"}}, {.base = &*trial});
//   if (!rule) return fail(rule.error());
//   tornasole::RuleRunner runner(&*trial);
//   runner.add(std::move(*rule));
//   if (auto done = runner.run(); !done) return fail(done.error());
//   for (const auto& violation : runner.outcome(0).report.violations()) std::puts(violation.message.c_str());
//
// A rule of one's own is a class with `needs` and `look_at`. It says before the run which tensors it looks at and what
// of them; one pass over the trial then reads each value once and computes each number once for all rules. A rule that
// needs only reductions never causes a value to be read where they were saved.
//
// Threads: a runner and its rules belong to one thread.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/stats.h"
#include "tornasole/tensor.h"
#include "tornasole/trial.h"

namespace tornasole {

namespace rules {
class Pass;
}

// Which tensors a rule looks at, and what of each.
struct Need {
  // Which: those with any of these properties. All three empty: every tensor but derived statistics.
  std::vector<std::string> collections = {};
  std::vector<std::string> regex = {};  // any is found anywhere in the name (Python's re.search)
  std::vector<std::string> names = {};
  // Where no tensor of the trial has any of them: every tensor but derived statistics.
  bool or_everything = false;
  // Never those with any of these in their name.
  std::vector<std::string> exclude_regex = {};
  // And only those for which this is true; asked again when names come. Null: all.
  std::function<bool(std::string_view name)> choose = {};

  // What: the stored reduction, else computed from the value.
  StatSet stats = {};
  bool value = false;
  // Every stored reduction of tensors whose value was not saved.
  bool reductions_without_value = false;
  // Statistics stored as derived/<statistic>/<tensor>: "counts", "unit_activity" and so on. Those that one value alone
  // defines are computed from it where they were not stored.
  std::vector<std::string> derived = {};
};

// One tensor of one worker at one step: as much of it as the rules of the run need together, so a rule may find more
// than it asked for.
struct StepTensor {
  std::string_view name = {};
  std::string_view worker = {};
  std::size_t order = 0;  // among the tensors of the step: by worker, then as they were saved
  // Null if it was not saved or no rule needs it. May be kept beyond the step.
  std::shared_ptr<const Tensor> value = {};  // shared: rules keep values of earlier steps
  Stats stats = {};
  std::vector<std::pair<Reduction, double>> reductions = {};  // stored ones that were read
  std::vector<std::pair<std::string_view, std::shared_ptr<const Tensor>>> derived = {};
  std::optional<Shape> shape = {};  // of the value, where it was read
  std::optional<DType> dtype = {};  // likewise
  std::optional<Error> error = {};  // why the value or a reduction could not be read

  // Null if it is not known.
  const Tensor* derived_statistic(std::string_view statistic) const noexcept;
  // The number of a tensor with exactly one element, where the rules need Stat::kMean; else nothing.
  std::optional<double> scalar() const noexcept;
};

// One step, as a rule sees it; borrowed for the call.
class TORNASOLE_EXPORT StepView {
 public:
  GlobalStep global_step() const noexcept { return global_step_; }
  // Of its mode; kGlobal if it was saved without one.
  ModeStep step() const noexcept { return step_; }
  Mode mode() const noexcept { return step_.mode; }
  const Trial& trial() const noexcept { return *trial_; }
  // The tensors that were saved at the step and match need number `need` of the rule, in the order of worker and of
  // saving.
  std::span<const StepTensor* const> tensors(std::size_t need = 0) const noexcept { return matches_[need]; }

 private:
  friend class rules::Pass;
  const Trial* trial_ = nullptr;
  GlobalStep global_step_ = {};
  ModeStep step_ = {};
  std::span<const std::vector<const StepTensor*>> matches_ = {};  // by need
};

// One thing a rule found.
struct Violation {
  GlobalStep global_step = {};
  ModeStep step = {};
  std::string worker = {};
  std::string tensor = {};
  std::optional<double> value = {}, threshold = {};
  std::string message = {};
};

// What a rule has found in a run so far: the report of the rule.
class TORNASOLE_EXPORT RuleReport {
 public:
  static constexpr std::size_t kKept = 50;  // of the first and of the last violations

  std::int64_t triggered = 0;  // steps at which the condition was met
  std::int64_t violations_count = 0;
  std::int64_t datapoints = 0;                                  // (step, tensor, worker) looked at
  std::optional<std::int64_t> first_step = {}, last_step = {};  // global, of violations
  std::map<std::string, std::int64_t> tensors = {};             // name -> violations
  std::map<std::string, std::int64_t> skipped = {};             // reason -> how often
  std::string parameters = {};                                  // lines name:value
  std::map<std::string, std::string> details = {};              // further members of Details: name -> JSON

  void add(Violation violation);
  // The first kKept and the last kKept, in order.
  std::vector<Violation> violations() const;
  // The report file: RuleTriggered, Violations, Datapoints, RuleParameters, Details. Numbers that are not finite are
  // texts.
  std::string to_json() const;

 private:
  std::vector<Violation> first_ = {};
  std::vector<Violation> last_ = {};  // a ring
  std::size_t next_ = 0;
};

// Where a rule says what it found at a step. The condition is met at a step at which it reported anything.
class TORNASOLE_EXPORT Findings {
 public:
  Findings(RuleReport* report, GlobalStep global_step, ModeStep step)
      : report_(*report), global_step_(global_step), step_(step) {}

  // The tensor is null for a finding about several or none.
  void add(const StepTensor* tensor, std::optional<double> value, std::optional<double> threshold, std::string message);
  // One item was looked at.
  void count_datapoint() { ++report_.datapoints; }
  // One item could not be looked at: "no value", "empty", "text".
  void skip(std::string_view reason);
  // The data is not what the rule must have: it is not asked again, and its outcome carries the error.
  void fail(Error error) { failure_ = std::move(error); }
  const std::optional<Error>& failure() const noexcept { return failure_; }
  bool is_met() const noexcept { return is_met_; }

 private:
  RuleReport& report_;
  GlobalStep global_step_;
  ModeStep step_;
  bool is_met_ = false;
  std::optional<Error> failure_ = {};
};

// Between steps: what a rule about time may look at.
struct Pause {
  double now_s = 0;             // of a clock that only goes forward
  bool has_new_steps = false;   // the last refresh brought index files
  bool has_ended = false;       // the end marker is there
  std::int64_t last_step = -1;  // the newest known
};

// What a rule about time asks of the runner that follows a run.
struct Pace {
  double poll_s = 1e9;    // at most so long between two looks
  double patience_s = 0;  // without new steps it goes on at least so long, unless the end marker is there
};

class TORNASOLE_EXPORT Rule {
 public:
  virtual ~Rule() = default;
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  // Asked once, before the first step.
  virtual std::vector<Need> needs() const = 0;
  // Called for each complete step at which something it needs was saved, in ascending order. May look at this step and
  // at what it kept of earlier ones.
  virtual void look_at(const StepView& step, Findings& findings) = 0;
  // Called after every refresh of a run that is followed, and once at the end.
  virtual void look_at_pause(const Pause& /*pause*/, Findings& /*findings*/) {}
  virtual Pace pace() const { return {}; }
  // Actions that belong to it besides those a user asked for, as the JSON of one action; empty: none.
  virtual std::string action() const { return {}; }
  // Further members of the report's Details: name -> JSON; asked at the end.
  virtual std::map<std::string, std::string> details() const { return {}; }
  // Files of its own besides the report, by name; asked at the end.
  virtual std::map<std::string, std::string> files() const { return {}; }
  // Forgets what it keeps between steps.
  virtual void reset() = 0;

 protected:
  Rule() = default;
};

enum class ParameterType : std::uint8_t { kText, kList, kNumber, kNumbers, kInteger, kFlag };

struct Parameter {
  std::string_view name;
  ParameterType type = ParameterType::kText;
  std::string_view default_text = {};  // empty: none
  std::string_view help = {};
};

// The parameters of a rule, complete and of the right types.
class TORNASOLE_EXPORT RuleArguments {
 public:
  // `given` are texts, as on a command line. kInvalid for one the rule does not have, and for a text that is not of its
  // type; the message names rule, parameter, text and what is allowed. An empty text is as if it was not given.
  static Result<RuleArguments> make(std::string_view rule, std::span<const Parameter> parameters,
                                    const std::map<std::string, std::string>& given);

  // True if it was given or has a default.
  bool has(std::string_view name) const noexcept { return !text(name).empty(); }
  bool is_given(std::string_view name) const noexcept;
  std::string_view text(std::string_view name) const noexcept;
  double number(std::string_view name) const noexcept;
  std::int64_t integer(std::string_view name) const noexcept;
  bool flag(std::string_view name) const noexcept;
  // Separated by commas, trimmed, empty ones dropped.
  std::vector<std::string> list(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  // Lines "name:value", in the order of declaration.
  std::string to_lines() const;

 private:
  struct Argument {
    std::string name, text;
    bool is_given = false;
  };
  std::vector<Argument> arguments_;
};

struct RuleContext {
  Trial* base = nullptr;
  std::vector<const Trial*> others = {};
};

// A kind of rule that can be made by name.
struct RuleType {
  std::string_view name;     // "VanishingGradient"
  std::string_view group;    // "deep learning", "universal", "applications", "XGBoost", "detectors"
  std::string_view summary;  // one sentence: what it means when it is met
  std::span<const Parameter> parameters;
  Result<std::unique_ptr<Rule>> (*make)(const RuleArguments& arguments, const RuleContext& context);
};

// In the order of the documentation.
TORNASOLE_EXPORT std::span<const RuleType> builtin_rules();
// Names are compared without case and underscores. kNotFound names those that come near.
TORNASOLE_EXPORT Result<const RuleType*> find_rule(std::string_view name);

// A rule with its name and parameters, ready to run.
struct NamedRule {
  std::string name;
  std::string parameters = {};  // lines, for the report
  std::unique_ptr<Rule> rule;
};
TORNASOLE_EXPORT Result<NamedRule> make_rule(std::string_view name,
                                             const std::map<std::string, std::string>& parameters,
                                             const RuleContext& context);

struct RuleOutcome {
  std::string name;
  RuleReport report = {};
  std::int64_t steps_evaluated = 0;          // steps at which something it needs was saved
  std::vector<std::int64_t> steps_met = {};  // global; at most the first 10,000
  std::optional<Error> error = {};           // why it could not go on; it was not asked about later steps
};

struct RuleRunOptions {
  std::optional<std::int64_t> first_step = {}, end_step = {};  // first_step <= global step < end_step
  std::vector<std::string> workers = {};                       // only these; empty: all
  bool first_worker_only = false;                              // at each step the first in sorted order
  bool stop_when_met = false;                                  // the run ends at the first condition that is met
  bool follow = false;                                         // wait for steps to come until the run is over
  // While following: how long between two looks, and how long without a new step a run may give no sign of life.
  double poll_s = 1;
  std::optional<double> timeout_s = 300;
  std::function<double()> now_s = {};              // null: the system's steady clock
  std::function<void(double seconds)> sleep = {};  // null: the thread sleeps
  // Called after a step at which the rule's condition was met.
  std::function<void(const RuleOutcome& rule, const Violation& newest)> on_met = {};
  // Called after every step; false ends the run.
  std::function<bool(GlobalStep step)> on_step = {};
  // Called after every look at a run that is followed; false ends the run.
  std::function<bool()> on_pause = {};
};

// Runs rules over a trial, in one pass for all of them.
class TORNASOLE_EXPORT RuleRunner {
 public:
  explicit RuleRunner(Trial* trial, RuleRunOptions options = {});
  RuleRunner(RuleRunner&&) noexcept;
  RuleRunner& operator=(RuleRunner&&) noexcept;
  ~RuleRunner();

  // Before the first run.
  void add(NamedRule rule);
  // All complete steps that the trial knows and the rules have not seen yet; with `follow` also those that come, until
  // the run is over.
  Status run();
  // Only this step, if the trial knows it and it comes after those that the rules have seen; whether it did.
  Result<bool> run_step(GlobalStep step);
  // Why it ended: "all known steps", "end_step", "condition met", "stopped", "the run ended", "the run failed" ...
  const std::string& ended_because() const noexcept;

  std::size_t size() const noexcept;
  const RuleOutcome& outcome(std::size_t rule) const noexcept;
  const Rule& rule(std::size_t rule) const noexcept;

 private:
  std::unique_ptr<rules::Pass> pass_;
};

}  // namespace tornasole
