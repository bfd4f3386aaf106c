#pragma once

// RuleActions: what is done when the condition of a rule is met, as a JSON text says it.
//
//   auto actions = tornasole::RuleActions::parse(R"({"name": "stoptraining", "training_job_prefix": ""})",
//                                                {.trial_path = "runs/mnist"});
//   if (!actions) return fail(actions.error());
//   tornasole::RuleRunner runner(&*trial, {.on_met = [&](const auto& rule, const auto& newest) {
//                                            actions->invoke(rule.name, newest);
//                                          }});
//
// The text is empty, one object, or a list of objects. Each has a "name" and the key of its row:
//
//   stoptraining  training_job_prefix  leaves stop_request.json in the trial, which the hook honours at its next saved
//                                      step; nothing happens unless the trial's name begins with the prefix
//   email, sms    endpoint             calls the notifier: PROGRAM email|sms ENDPOINT SUBJECT, the text on its input
//   exec          command              runs the program of the list, without a shell, the event as JSON on its input
//   file          path                 appends the event as one line of JSON
//   webhook       url                  posts the event as JSON to an http:// address; https:// by curl
//
// Names and keys are compared without case. Each action runs once, unless it has "repeat": true. The event is an object
// with rule, trial, time (seconds since 1970), step, mode, mode_step, worker, tensor, value, threshold and message.
//
// Threads: an object belongs to one thread, which waits while an action runs: at most timeout_s each.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/result.h"
#include "tornasole/rule.h"

namespace tornasole {

namespace rules {
class Action;
}

struct RuleActionOptions {
  std::string trial_path = {};  // the directory a run was written to
  std::string trial_name = {};  // empty: the last component of the path
  std::string notifier = {};    // the program for email and sms; empty: there is none, and messages are undelivered
  double timeout_s = 30;        // of one action: a program is killed, a server given up
  // Gets a line for each entry of the text that is left out and for each action that failed.
  std::function<void(const std::string& message)> log = {};
};

class TORNASOLE_EXPORT RuleActions {
 public:
  // kInvalid for text that is not JSON, also if its quotes are escaped by backslashes. Entries that cannot be used are
  // logged and left out; JSON that is neither an object nor a list is logged and ignored.
  static Result<RuleActions> parse(std::string_view text, RuleActionOptions options);
  RuleActions(RuleActions&&) noexcept;
  RuleActions& operator=(RuleActions&&) noexcept;
  ~RuleActions();

  // Does what is to be done about a condition that is met. What fails is logged and counted, never returned.
  void invoke(std::string_view rule, const Violation& newest);

  std::size_t size() const noexcept { return entries_.size(); }
  // How often an action failed.
  std::int64_t undelivered() const noexcept { return undelivered_; }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<rules::Action> action;
    bool is_repeated = false;
    bool is_done = false;
  };

  explicit RuleActions(RuleActionOptions options);
  void log(const std::string& message) const;

  std::unique_ptr<const RuleActionOptions> options_;  // its address is the actions' too
  std::vector<Entry> entries_;
  std::int64_t undelivered_ = 0;
};

}  // namespace tornasole
