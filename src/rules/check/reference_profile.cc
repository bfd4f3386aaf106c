// Profile reference of the check: the built-in rules as they are documented, with their defaults, in one pass.

#include "rules/check/reference_profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"

namespace tornasole::rules {
namespace {

Verdict verdict_of(const RuleOutcome& outcome, const RuleType& type, const Trial& trial) {
  const RuleReport& report = outcome.report;
  const std::vector<Violation> violations = report.violations();
  const Violation first = violations.empty() ? Violation{} : violations.front();
  std::vector<std::pair<std::int64_t, std::string>> counted;
  for (const auto& [name, count] : report.tensors) counted.emplace_back(count, name);
  std::ranges::stable_sort(counted, std::greater<>(), &std::pair<std::int64_t, std::string>::first);
  std::vector<std::string> names;
  for (auto& [count, name] : counted) names.push_back(std::move(name));
  const std::int64_t met = outcome.steps_met.empty() ? 0 : outcome.steps_met.front();
  const auto step = trial.mode_step(GlobalStep{report.first_step.value_or(met)});
  return {.rule = outcome.name,
          .severity = Severity::kWarning,
          .first_step = report.first_step.value_or(met),
          .last_step = report.last_step.value_or(met),
          .mode = step ? step->mode : Mode::kGlobal,
          .tensors = std::move(names),
          .value = first.value,
          .threshold = first.threshold,
          .message = fmt::format("{} Met at {} of {} steps; first: {}", type.summary, report.triggered,
                                 outcome.steps_evaluated, first.message)};
}

}  // namespace

Result<CheckReport> check_by_reference(Trial& trial, const CheckOptions& options) {
  CheckReport report;
  std::vector<const RuleType*> types;
  RuleRunner runner(&trial,
                    {.first_step = options.first_step, .end_step = options.end_step, .on_step = options.on_step});
  const auto add = [&](const RuleType& type) {
    auto rule = make_rule(type.name, {}, {.base = &trial});
    if (!rule.ok()) {
      report.not_checked.push_back({std::string(type.name), rule.error().message});
      return;
    }
    types.push_back(&type);
    runner.add(std::move(*rule));
  };
  for (const std::string& name : options.rules) {
    TORNASOLE_TRY(const RuleType* type, find_rule(name));
    add(*type);
  }
  if (options.rules.empty()) {
    for (const RuleType& type : builtin_rules()) add(type);
  }
  TORNASOLE_CHECK(runner.run());
  for (std::size_t i = 0; i < runner.size(); ++i) {
    const RuleOutcome& outcome = runner.outcome(i);
    report.steps = std::max(report.steps, outcome.steps_evaluated);
    if (outcome.error) {
      report.not_checked.push_back({outcome.name, outcome.error->message});
    } else if (outcome.report.datapoints == 0 && outcome.report.triggered == 0) {
      report.not_checked.push_back({outcome.name, "nothing it looks at was saved"});
    } else {
      report.checked.push_back(outcome.name);
      if (outcome.report.triggered > 0) report.verdicts.push_back(verdict_of(outcome, *types[i], trial));
    }
  }
  return report;
}

}  // namespace tornasole::rules
