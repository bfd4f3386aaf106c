#include "rules/pass.h"
#include "tornasole/rule.h"

namespace tornasole {

RuleRunner::RuleRunner(Trial* trial, RuleRunOptions options)
    : pass_(std::make_unique<rules::Pass>(trial, std::move(options))) {}
RuleRunner::RuleRunner(RuleRunner&&) noexcept = default;
RuleRunner& RuleRunner::operator=(RuleRunner&&) noexcept = default;
RuleRunner::~RuleRunner() = default;

void RuleRunner::add(NamedRule rule) { pass_->add(std::move(rule)); }
Status RuleRunner::run() { return pass_->run(); }
Result<bool> RuleRunner::run_step(GlobalStep step) { return pass_->run_step(step); }
const std::string& RuleRunner::ended_because() const noexcept { return pass_->ended_because(); }
std::size_t RuleRunner::size() const noexcept { return pass_->size(); }
const RuleOutcome& RuleRunner::outcome(std::size_t rule) const noexcept { return pass_->outcome(rule); }
const Rule& RuleRunner::rule(std::size_t rule) const noexcept { return pass_->rule(rule); }

}  // namespace tornasole
