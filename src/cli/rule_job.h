#pragma once

// RuleJob: one run of rules over a trial, with what is done about their findings.
//
//   in:  which trial, which rules, which steps; where reports go
//   out: the runner with its outcomes; reports on disk, actions done
//   who: rule_command.cc

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress_bar.h"
#include "rules/report_files.h"
#include "tornasole/rule.h"
#include "tornasole/rule_actions.h"
#include "tornasole/rule_configuration.h"
#include "tornasole/trial.h"

namespace tornasole::cli {

struct RuleJobOptions {
  std::string dir = {};
  std::vector<RuleConfiguration> rules = {};
  std::optional<std::int64_t> first_step = {}, end_step = {};  // of what is loaded, of every trial
  std::vector<std::string> workers = {};                       // empty: all
  bool first_worker_only = false;
  bool stop_when_met = false;
  std::optional<bool> follow = {};  // nothing: if the run is running
  double poll_s = 1;
  double timeout_s = 300;
  std::string report = {};    // a directory or a file; empty: none
  std::string notifier = {};  // of actions
  bool shows_progress = false;
  // Called for each step at which a condition is met, while the run is followed.
  std::function<void(const Trial& trial, const RuleOutcome& rule, const Violation& newest)> on_met = {};
  std::function<void(const std::string& message)> warn = {};
  std::function<bool()> is_interrupted = {};
};

class RuleJob {
 public:
  explicit RuleJob(RuleJobOptions options) : options_(std::move(options)) {}
  RuleJob(const RuleJob&) = delete;
  RuleJob& operator=(const RuleJob&) = delete;

  // Reads the trial and makes the rules: kInvalid and kNotFound are mistakes of the caller.
  Status prepare();
  // The reports on disk tell of an error too.
  Status run();

  const Trial& trial() const { return *trial_; }
  const RuleRunner& runner() const { return *runner_; }
  rules::Evaluation evaluation() const noexcept { return evaluation_; }
  std::int64_t undelivered() const noexcept;
  // The run gave no sign of life any more, was interrupted, or a rule could not go on: there may be steps that nobody
  // looked at.
  bool was_cut_short() const;

 private:
  static constexpr double kReportEveryS = 10;

  Status open_trials();
  Result<Trial> open(const std::string& dir) const;
  Status add_actions(const std::string& rule, const std::string& text);
  Result<NamedRule> make(const RuleConfiguration& rule);
  Result<const Trial*> other_trial(const std::string& path);
  RuleRunOptions run_options();
  void show_progress(GlobalStep step);
  bool go_on();

  RuleJobOptions options_;
  std::optional<Trial> trial_;
  std::map<std::string, Trial> others_;                      // by path
  std::map<std::string, std::vector<RuleActions>> actions_;  // by the name of the rule: the user's, then its own
  std::optional<rules::ReportFiles> reports_;
  std::optional<RuleRunner> runner_;
  rules::Evaluation evaluation_ = rules::Evaluation::kInProgress;
  std::optional<ProgressBar> bar_;  // of a run that is not followed
  bool is_followed_ = false;
  double last_report_s_ = 0;
  bool has_report_failed_ = false;
};

}  // namespace tornasole::cli
