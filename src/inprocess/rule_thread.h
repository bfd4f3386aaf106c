#pragma once

// RuleThread: the thread that runs rules inside a training.
//
//   1. published   the writer thread counts a step, and starts this thread with the first
//   2. wake        at most every poll_s, and only if the count has moved
//   3. look        refresh the trial, run the rules over the steps that are new
//   4. act         a condition that is met: log, callback, detail, flight recorder
//   5. stop        one last look, at most kStopSeconds, and the hook is not touched any more

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tornasole/inprocess_rules.h"
#include "tornasole/rule.h"
#include "tornasole/trial.h"

namespace tornasole::inprocess {

// Whether it is asked as the check asks it; else it runs as documented.
bool is_question(const InProcessRule& rule, Profile profile);

class RuleThread : public std::enable_shared_from_this<RuleThread> {
 public:
  RuleThread(Hook* hook, std::vector<InProcessRule> rules, InProcessOptions options);

  // From the writer thread: quick, and nothing it does can fail the step.
  void note_published() noexcept;
  void stop() noexcept;
  std::vector<RuleOutcome> outcomes() const;
  // In a forked child there is no thread, and whoever held a lock is gone.
  bool is_of_this_process() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kStopTime{5};
  static constexpr std::size_t kMaxDetailTensors = 20;

  void run() noexcept;
  void work();
  // False once it shall stop and nothing new was published.
  bool wait_for_steps();
  Status open();
  Status look();
  void keep_outcomes();
  void act(const RuleOutcome& rule, const Violation& newest);
  // While what the finding is about is still at hand: whole tensors, the steps before.
  void look_closer(const RuleOutcome& rule, const Violation& newest);
  void save_detail(Hook& hook, const RuleOutcome& rule, const Violation& newest);
  void warn(const std::string& message) noexcept;

  // constant
  const std::vector<InProcessRule> rules_;
  const InProcessOptions options_;
  const std::string path_;
  const bool has_recorder_;
  const pid_t pid_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_started_ = false;            // guarded by mutex_
  bool is_stopping_ = false;           // guarded by mutex_
  bool is_done_ = false;               // guarded by mutex_
  std::uint64_t published_ = 0;        // guarded by mutex_
  Clock::time_point stop_at_ = {};     // guarded by mutex_
  std::vector<RuleOutcome> outcomes_;  // guarded by mutex_
  std::mutex hook_mutex_;
  Hook* hook_;  // guarded by hook_mutex_; null once it must not be touched

  // its own thread only
  std::uint64_t seen_ = 0;
  Clock::time_point last_look_ = {};
  std::optional<Trial> trial_;
  std::optional<RuleRunner> runner_;
  std::set<std::string> warned_;  // rules that were met once
};

}  // namespace tornasole::inprocess
