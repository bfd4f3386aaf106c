#include "cli/rule_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/errors.h"
#include "cli/trial_arguments.h"
#include "cli/trial_paths.h"
#include "cli/trial_waiting.h"

namespace tornasole::cli {
namespace {

double now_s() { return static_cast<double>(system_clock().monotonic_ns()) * 1e-9; }

}  // namespace

Status RuleJob::prepare() {
  // What can be refused without a trial is refused before one is waited for.
  for (const RuleConfiguration& rule : options_.rules) {
    TORNASOLE_TRY(const RuleType* type, find_rule(rule.rule));
    TORNASOLE_CHECK(RuleArguments::make(type->name, type->parameters, rule.parameters));
    TORNASOLE_CHECK(add_actions(rule.name, rule.actions));
  }
  if (!options_.report.empty()) {
    TORNASOLE_TRY(reports_, rules::ReportFiles::open(options_.report, options_.rules.size()));
  }
  TORNASOLE_CHECK(open_trials());
  runner_.emplace(&*trial_, run_options());
  for (const RuleConfiguration& rule : options_.rules) {
    TORNASOLE_TRY(NamedRule made, make(rule));
    runner_->add(std::move(made));
  }
  return {};
}

Status RuleJob::add_actions(const std::string& rule, const std::string& text) {
  auto actions = RuleActions::parse(text, {.trial_path = options_.dir,
                                           .notifier = options_.notifier,
                                           .log = [this](const std::string& line) { options_.warn(line); }});
  if (!actions) return invalid_error("rule {}: {}", rule, actions.error().message);
  actions_[rule].push_back(std::move(*actions));
  return {};
}

Result<Trial> RuleJob::open(const std::string& dir) const {
  TORNASOLE_CHECK(check_trial_directory(dir));
  return Trial::open({.path = dir, .first_step = options_.first_step, .end_step = options_.end_step, .timeout_s = 0});
}

Status RuleJob::open_trials() {
  // A run that has begun and written nothing yet is running.
  if (options_.follow.value_or(has_run_begun(options_.dir))) {
    TORNASOLE_TRY(trial_, wait_for_trial({.dir = options_.dir,
                                          .timeout_s = options_.timeout_s,
                                          .poll_s = options_.poll_s,
                                          .first_step = options_.first_step,
                                          .end_step = options_.end_step}));
  } else {
    TORNASOLE_TRY(trial_, open(options_.dir));
  }
  for (const std::string& worker : options_.workers) TORNASOLE_CHECK(check_worker(*trial_, worker));
  is_followed_ = options_.follow.value_or(trial_->run_status().state == RunState::kRunning);
  return {};
}

Result<const Trial*> RuleJob::other_trial(const std::string& path) {
  if (const auto known = others_.find(path); known != others_.end()) return &known->second;
  TORNASOLE_TRY(Trial trial, open(path));
  return &others_.emplace(path, std::move(trial)).first->second;
}

Result<NamedRule> RuleJob::make(const RuleConfiguration& rule) {
  RuleContext context{.base = &*trial_};
  for (const std::string& path : rule.other_trials) {
    TORNASOLE_TRY(const Trial* other, other_trial(path));
    context.others.push_back(other);
  }
  auto made = make_rule(rule.rule, rule.parameters, context);
  if (!made) {
    Error error = made.error();
    error.message.insert(0, rule.place);
    return error;
  }
  made->name = rule.name;
  TORNASOLE_CHECK(add_actions(rule.name, made->rule->action()));
  if (!reports_ && !made->rule->files().empty()) {
    return invalid_error("rule {} writes files: say where to, by --report DIR", rule.name);
  }
  return made;
}

RuleRunOptions RuleJob::run_options() {
  return {.first_step = options_.first_step,
          .end_step = options_.end_step,
          .workers = options_.workers,
          .first_worker_only = options_.first_worker_only,
          .stop_when_met = options_.stop_when_met,
          .follow = is_followed_,
          .poll_s = options_.poll_s,
          .timeout_s = options_.timeout_s,
          .on_met =
              [this](const RuleOutcome& rule, const Violation& newest) {
                if (is_followed_ && options_.on_met) options_.on_met(*trial_, rule, newest);
                for (RuleActions& actions : actions_.at(rule.name)) actions.invoke(rule.name, newest);
              },
          .on_step =
              [this](GlobalStep step) {
                show_progress(step);
                return go_on();
              },
          .on_pause = [this] { return go_on(); }};
}

void RuleJob::show_progress(GlobalStep step) {
  if (!options_.shows_progress || is_followed_) return;
  const std::int64_t first = options_.first_step.value_or(0);
  if (!bar_) bar_.emplace("looking at steps", static_cast<std::uint64_t>(trial_->last_complete_step() - first + 1));
  bar_->update(static_cast<std::uint64_t>(step.number - first + 1));
}

// Between two steps: is it time for the reports, and does the user want more?
bool RuleJob::go_on() {
  if (reports_ && now_s() - last_report_s_ >= kReportEveryS) {
    last_report_s_ = now_s();
    const Status written = reports_->write(*runner_, rules::Evaluation::kInProgress);
    if (!written && !has_report_failed_) options_.warn(fmt::format("no report now: {}", written.error().message));
    has_report_failed_ = !written.ok();
  }
  return !options_.is_interrupted || !options_.is_interrupted();
}

Status RuleJob::run() {
  if (reports_) TORNASOLE_CHECK(reports_->write(*runner_, rules::Evaluation::kInProgress));
  last_report_s_ = now_s();
  const Status done = runner_->run();
  bar_.reset();  // before anything is printed
  if (!done) {
    evaluation_ = rules::Evaluation::kFailed;
  } else {
    evaluation_ = runner_->ended_because() == "stopped" ? rules::Evaluation::kStopped : rules::Evaluation::kEnded;
  }
  if (reports_) {
    const Status written = reports_->write(*runner_, evaluation_, done ? "" : std::string_view(done.error().message));
    if (!written && done) return written;
  }
  return done;
}

std::int64_t RuleJob::undelivered() const noexcept {
  std::int64_t count = 0;
  for (const auto& [name, lists] : actions_) {
    for (const RuleActions& actions : lists) count += actions.undelivered();
  }
  return count;
}

bool RuleJob::was_cut_short() const {
  for (std::size_t i = 0; i < runner_->size(); ++i) {
    if (runner_->outcome(i).error) return true;
  }
  return evaluation_ != rules::Evaluation::kEnded || runner_->ended_because().starts_with("no sign of life");
}

}  // namespace tornasole::cli
