#include "rules/pass.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/errors.h"

namespace tornasole::rules {
namespace {

double steady_seconds() { return static_cast<double>(system_clock().monotonic_ns()) * 1e-9; }
void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

Pass::Pass(Trial* trial, RuleRunOptions options) : trial_(trial), options_(std::move(options)) {
  if (!options_.now_s) options_.now_s = steady_seconds;
  if (!options_.sleep) options_.sleep = sleep_for;
  next_step_ = options_.first_step.value_or(0);
}

void Pass::add(NamedRule rule) {
  Entry entry{.rule = std::move(rule.rule), .outcome = {.name = std::move(rule.name)}};
  entry.outcome.report.parameters = std::move(rule.parameters);
  entries_.push_back(std::move(entry));
}

void Pass::ask_needs() {
  if (plans_ != nullptr) return;
  std::vector<Need> needs;
  for (Entry& entry : entries_) {
    std::vector<Need> own = entry.rule->needs();
    entry.first_need = needs.size();
    entry.need_count = own.size();
    std::ranges::move(own, std::back_inserter(needs));
  }
  assembly_ = std::make_unique<StepAssembly>(needs.size());
  plans_ = std::make_unique<NamePlans>(std::move(needs));
}

Status Pass::run() {
  ended_because_.clear();
  ask_needs();
  TORNASOLE_CHECK(look_at_known_steps(options_.end_step));
  if (options_.follow && !has_stopped()) TORNASOLE_CHECK(follow());
  if (!has_stopped()) {
    pause(/*has_new_steps=*/false);
    ended_because_ = options_.end_step && next_step_ >= *options_.end_step ? "end_step" : "all known steps";
  }
  for (Entry& entry : entries_) entry.outcome.report.details = entry.rule->details();
  return {};
}

Result<bool> Pass::run_step(GlobalStep step) {
  if (step.number < next_step_ || trial_->has_passed_step({Mode::kGlobal, step.number}) != StepState::kAvailable) {
    return false;
  }
  ended_because_.clear();
  ask_needs();
  next_step_ = step.number;
  TORNASOLE_CHECK(look_at_known_steps(step.number + 1));
  for (Entry& entry : entries_) entry.outcome.report.details = entry.rule->details();
  return true;
}

Status Pass::look_at_known_steps(std::optional<std::int64_t> end_step) {
  TORNASOLE_CHECK(plans_->update(*trial_));
  const bool is_cut = includes_partial_ && !trial_->steps(Mode::kGlobal, StepFilter::kPartial).empty();
  SweepQuery query{
      .names = plans_->names(),
      .steps = is_cut ? StepFilter::kIncludingIncomplete : StepFilter::kComplete,
      .first_step = next_step_,
      .end_step = end_step,
      .worker = options_.workers.size() == 1 ? options_.workers[0] : std::string(),
      .select = [this](std::string_view name, StoredForms* forms) { plans_->select(name, forms); },
      .digest = [this](std::string_view name, const TensorView& value, bool* keep) -> std::shared_ptr<void> {
        const NamePlan* plan = plans_->find(name);
        if (plan == nullptr) return nullptr;
        // A stored statistic is handed on as it is.
        *keep = plan->value || !plan->owner.empty();
        return digest_value(value, *plan);
      }};
  if (!query.names.empty()) {  // no names would mean all
    TORNASOLE_CHECK(trial_->sweep(query, [this](const SweptValue& swept) { return take(swept); }));
    if (!has_stopped()) finish_step();
    assembly_->clear();
  }
  if (!has_stopped()) {
    const std::int64_t known_end = trial_->last_complete_step() + 1;
    next_step_ = std::max(next_step_, end_step ? std::min(known_end, *end_step) : known_end);
  }
  return {};
}

bool Pass::take(const SweptValue& swept) {
  if (!assembly_->empty() && swept.global_step != global_step_) {
    finish_step();
    if (has_stopped()) return false;
  }
  if (!options_.workers.empty() && std::ranges::find(options_.workers, swept.worker) == options_.workers.end()) {
    return true;
  }
  const NamePlan* plan = plans_->find(swept.name);
  if (plan == nullptr) return true;
  if (assembly_->empty()) {
    global_step_ = swept.global_step;
    step_ = swept.step;
  }
  assembly_->add(swept, *plan, options_.first_worker_only);
  return true;
}

void Pass::finish_step() {
  if (assembly_->empty()) return;
  const auto matches = assembly_->match();
  for (Entry& entry : entries_) {
    const auto own = matches.subspan(entry.first_need, entry.need_count);
    if (entry.outcome.error) continue;
    if (std::ranges::any_of(own, [](const auto& match) { return !match.empty(); })) look(entry, own);
    if (has_stopped()) break;
  }
  assembly_->clear();
  next_step_ = global_step_.number + 1;
  if (!has_stopped() && options_.on_step && !options_.on_step(global_step_)) ended_because_ = "stopped";
}

void Pass::look(Entry& entry, std::span<const std::vector<const StepTensor*>> matches) {
  StepView view;
  view.trial_ = trial_;
  view.global_step_ = global_step_;
  view.step_ = step_;
  view.matches_ = matches;
  Findings findings(&entry.outcome.report, global_step_, step_);
  entry.rule->look_at(view, findings);
  ++entry.outcome.steps_evaluated;
  if (findings.failure()) entry.outcome.error = findings.failure();
  if (findings.is_met()) note_met(entry, global_step_);
}

void Pass::note_met(Entry& entry, GlobalStep step) {
  RuleOutcome& outcome = entry.outcome;
  ++outcome.report.triggered;
  if (outcome.steps_met.size() < kMaxStepsMet) outcome.steps_met.push_back(step.number);
  if (options_.on_met) options_.on_met(outcome, outcome.report.violations().back());
  if (options_.stop_when_met) ended_because_ = "condition met";
}

void Pass::pause(bool has_new_steps) {
  const GlobalStep last{trial_->last_complete_step()};
  const Pause pause{.now_s = options_.now_s(),
                    .has_new_steps = has_new_steps,
                    .has_ended = trial_->loaded_all_steps() || trial_->run_status().state == RunState::kEnded,
                    .last_step = last.number};
  for (Entry& entry : entries_) {
    if (entry.outcome.error) continue;
    Findings findings(&entry.outcome.report, last,
                      trial_->mode_step(last).value_or(ModeStep{Mode::kGlobal, last.number}));
    entry.rule->look_at_pause(pause, findings);
    if (findings.failure()) entry.outcome.error = findings.failure();
    if (findings.is_met()) note_met(entry, last);
    if (has_stopped()) return;
  }
  if (options_.on_pause && !options_.on_pause()) ended_because_ = "stopped";
}

Status Pass::follow() {
  Pace pace{.poll_s = options_.poll_s};
  for (const Entry& entry : entries_) {
    const Pace own = entry.rule->pace();
    pace.poll_s = std::min(pace.poll_s, own.poll_s);
    pace.patience_s = std::max(pace.patience_s, own.patience_s);
  }
  double last_life_s = options_.now_s();
  double last_news_s = last_life_s;
  std::string last_token = trial_->last_index_token();
  pause(/*has_new_steps=*/true);
  while (!has_stopped()) {
    if (options_.end_step && next_step_ >= *options_.end_step) {
      ended_because_ = "end_step";
      return {};
    }
    const bool is_loaded = trial_->loaded_all_steps();
    const RunStatus status = trial_->run_status();
    if (is_loaded) {
      ended_because_ = "the run ended";
    } else if (status.state == RunState::kFailed) {
      ended_because_ = "the run failed: " + status.reason;
    } else if (options_.now_s() - last_news_s < pace.patience_s) {
      // A rule waits for just this: that nothing comes.
    } else if (status.state == RunState::kPresumedDead) {
      ended_because_ = "the run is presumed dead: " + status.reason;
    } else if (options_.timeout_s && options_.now_s() - last_life_s > *options_.timeout_s) {
      ended_because_ = fmt::format("no sign of life for {} s", *options_.timeout_s);
    }
    if (has_stopped()) return {};
    options_.sleep(pace.poll_s);
    TORNASOLE_CHECK(trial_->refresh());
    TORNASOLE_CHECK(look_at_known_steps(options_.end_step));
    if (has_stopped()) return {};
    const bool has_new = trial_->last_index_token() != last_token;
    if (has_new) last_news_s = options_.now_s();
    if (has_new || status.state == RunState::kRunning) last_life_s = options_.now_s();
    last_token = trial_->last_index_token();
    pause(has_new);
  }
  return {};
}

}  // namespace tornasole::rules
