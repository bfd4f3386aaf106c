#include "tornasole/inprocess_rules.h"

#include <new>
#include <utility>

#include "base/errors.h"
#include "inprocess/rule_needs.h"
#include "inprocess/rule_thread.h"
#include "rules/check/live_question.h"

namespace tornasole {

Result<InProcessRules> InProcessRules::start(Hook* hook, std::vector<InProcessRule> given, InProcessOptions options) {
  if (hook->options().dry_run) return unsupported_error("rules: a dry run writes nothing that they could look at");
  if (hook->step() >= 0) return invalid_error("rules are started before the first step; this is step {}", hook->step());
  if (!(options.poll_s > 0)) return invalid_error("poll_s is {}; allowed: more than 0", options.poll_s);
  if (options.detail_steps < 0) return invalid_error("detail_steps is {}; allowed: 0 or more", options.detail_steps);
  std::vector<std::vector<Need>> needs;
  for (InProcessRule& rule : given) {
    TORNASOLE_TRY(const NamedRule made, make_rule(rule.rule, rule.parameters, {}));
    if (rule.name.empty()) rule.name = made.name;
    if (inprocess::is_question(rule, options.profile)) {
      needs.push_back(rules::question_needs(rules::question_name(rule.rule)));
    } else {
      needs.push_back(made.rule->needs());
    }
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    TORNASOLE_CHECK(inprocess::save_needs(given[i].name, needs[i], hook));
  }
  const bool is_first = hook->options().rank == 0;
  auto thread = std::make_shared<inprocess::RuleThread>(hook, std::move(given), std::move(options));
  if (is_first) hook->on_publish([thread] { thread->note_published(); });
  return InProcessRules(std::move(thread));
}

InProcessRules::InProcessRules(std::shared_ptr<inprocess::RuleThread> thread) : thread_(std::move(thread)) {}
InProcessRules::InProcessRules(InProcessRules&&) noexcept = default;
InProcessRules& InProcessRules::operator=(InProcessRules&& other) noexcept {
  if (this != &other) {
    stop();
    thread_ = std::move(other.thread_);
  }
  return *this;
}
InProcessRules::~InProcessRules() { stop(); }

void InProcessRules::stop() noexcept {
  if (thread_ == nullptr) return;
  if (thread_->is_of_this_process()) return thread_->stop();
  // A forked child: the locks may be held by a thread that is not there, so not even their end is safe.
  static_cast<void>(new (std::nothrow) std::shared_ptr<inprocess::RuleThread>(std::move(thread_)));
}

std::vector<RuleOutcome> InProcessRules::outcomes() const {
  if (thread_ == nullptr || !thread_->is_of_this_process()) return {};
  return thread_->outcomes();
}

}  // namespace tornasole
