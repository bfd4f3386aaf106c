#include "inprocess/rule_thread.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "rules/check/live_question.h"

namespace tornasole::inprocess {
namespace {

// Gives way to the training. On Linux a niceness belongs to a thread.
void lower_priority() {
  constexpr int kNice = 10;
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice));
}

}  // namespace

bool is_question(const InProcessRule& rule, Profile profile) {
  return profile == Profile::kCheck && rule.parameters.empty() && !rules::question_name(rule.rule).empty();
}

RuleThread::RuleThread(Hook* hook, std::vector<InProcessRule> rules, InProcessOptions options)
    : rules_(std::move(rules)),
      options_(std::move(options)),
      path_(hook->out_dir()),
      has_recorder_(hook->options().flight_recorder_steps.value_or(0) > 0),
      pid_(getpid()),
      hook_(hook) {
  for (const InProcessRule& rule : rules_) outcomes_.push_back({.name = rule.name});
}

bool RuleThread::is_of_this_process() const noexcept { return getpid() == pid_; }

void RuleThread::note_published() noexcept {
  try {
    bool starts = false;
    {
      const std::lock_guard lock(mutex_);
      ++published_;
      starts = !is_started_ && !is_stopping_;
      if (starts) is_started_ = true;
    }
    if (starts) std::thread([self = shared_from_this()] { self->run(); }).detach();
    changed_.notify_all();
  } catch (const std::exception&) {
    // No thread is to be had: the training goes on without rules, and their outcomes say so.
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    for (RuleOutcome& outcome : outcomes_) outcome.error = runtime_error("no thread could be started for the rules");
  }
}

void RuleThread::stop() noexcept {
  std::unique_lock lock(mutex_);
  if (!is_stopping_) {
    is_stopping_ = true;
    stop_at_ = Clock::now() + kStopTime;
  }
  changed_.notify_all();
  if (is_started_) changed_.wait_until(lock, stop_at_, [this] { return is_done_; });
  lock.unlock();
  const std::lock_guard hook_lock(hook_mutex_);
  hook_ = nullptr;
}

std::vector<RuleOutcome> RuleThread::outcomes() const {
  const std::lock_guard lock(mutex_);
  return outcomes_;
}

void RuleThread::warn(const std::string& message) noexcept {
  const std::lock_guard lock(hook_mutex_);
  if (hook_ != nullptr) hook_->log(LogLevel::kWarning, message);
}

void RuleThread::run() noexcept {
  try {
    lower_priority();
    work();
  } catch (...) {
    // A callback of the user, or no memory: the training goes on without rules.
    warn("rules inside the training have ended: " + error_from_current_exception().message);
  }
  runner_.reset();
  trial_.reset();
  const std::lock_guard lock(mutex_);
  is_done_ = true;
  changed_.notify_all();
}

void RuleThread::work() {
  while (wait_for_steps()) {
    const Status looked = look();
    keep_outcomes();
    if (!looked && looked.error().code != ErrorCode::kNotYet) {
      warn(fmt::format("rules inside the training have ended: {}", looked.error().message));
      return;
    }
  }
}

bool RuleThread::wait_for_steps() {
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.poll_s));
  changed_.wait_until(lock, last_look_ + pause, [this] { return is_stopping_; });
  changed_.wait(lock, [this] { return is_stopping_ || published_ != seen_; });
  const bool has_new = published_ != seen_;
  seen_ = published_;
  last_look_ = Clock::now();
  return has_new;
}

Status RuleThread::open() {
  // What there is when the first step was published is enough: no waiting for other workers here, the next look tries
  // again.
  TORNASOLE_TRY(Trial trial, Trial::open({.path = path_, .timeout_s = 0, .end_delay_s = 0}));
  trial_.emplace(std::move(trial));
  RuleRunOptions options;
  options.on_met = [this](const RuleOutcome& rule, const Violation& newest) { act(rule, newest); };
  options.on_step = [this](GlobalStep) {
    const std::lock_guard lock(mutex_);
    return !is_stopping_ || Clock::now() < stop_at_;
  };
  runner_.emplace(&*trial_, std::move(options));
  const auto record = rules::make_live_record(*trial_);
  for (const InProcessRule& rule : rules_) {
    if (is_question(rule, options_.profile)) {
      NamedRule question = rules::make_question(rules::question_name(rule.rule), record);
      question.name = rule.name;
      runner_->add(std::move(question));
      continue;
    }
    // Made anew: some look into the description of the model, which the run has by now.
    TORNASOLE_TRY(NamedRule made, make_rule(rule.rule, rule.parameters, {.base = &*trial_}));
    made.name = rule.name;
    runner_->add(std::move(made));
  }
  return {};
}

Status RuleThread::look() {
  if (!trial_) {
    TORNASOLE_CHECK(open());
  } else {
    TORNASOLE_CHECK(trial_->refresh());
  }
  return runner_->run();
}

void RuleThread::keep_outcomes() {
  if (!runner_) return;
  std::vector<RuleOutcome> now;
  for (std::size_t i = 0; i < runner_->size(); ++i) now.push_back(runner_->outcome(i));
  const std::lock_guard lock(mutex_);
  outcomes_ = std::move(now);
}

void RuleThread::act(const RuleOutcome& rule, const Violation& newest) {
  if (warned_.insert(rule.name).second) {
    warn(fmt::format("rule {} at step {}: {}", rule.name, newest.global_step.number, newest.message));
    look_closer(rule, newest);
  }
  if (options_.on_met) options_.on_met(rule, newest);
}

void RuleThread::look_closer(const RuleOutcome& rule, const Violation& newest) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;  // the training is over
  }
  const std::lock_guard lock(hook_mutex_);
  if (hook_ == nullptr) return;
  if (options_.detail_steps > 0) save_detail(*hook_, rule, newest);
  if (options_.dump_flight_recorder && has_recorder_) hook_->dump_flight_recorder();
}

void RuleThread::save_detail(Hook& hook, const RuleOutcome& rule, const Violation& newest) {
  CollectionConfig config{.name = rule.name + "_findings"};
  for (const Violation& violation : rule.report.violations()) {
    if (violation.global_step != newest.global_step || violation.tensor.empty()) continue;
    if (config.tensor_names.size() == kMaxDetailTensors) break;
    config.tensor_names.push_back(violation.tensor);
  }
  if (config.tensor_names.empty()) return;
  config.reduction_config = ReductionConfig{.save_raw_tensor = true};
  SaveConfig& schedule = config.save_config.emplace();
  for (const Mode mode : {Mode::kTrain, Mode::kEval, Mode::kPredict, Mode::kGlobal}) {
    schedule.modes[mode] = SaveConfigMode{.end_step = 0};  // off
  }
  const std::int64_t next = hook.mode_step(newest.step.mode) + 1;
  schedule.modes[newest.step.mode] =
      SaveConfigMode{.save_interval = 1, .start_step = next, .end_step = next + options_.detail_steps};
  if (const Status set = hook.set_collection(config); !set) {
    hook.log(LogLevel::kWarning,
             fmt::format("rule {}: its tensors are not saved whole: {}", rule.name, set.error().message));
    return;
  }
  hook.include_collection(config.name);
}

}  // namespace tornasole::inprocess
