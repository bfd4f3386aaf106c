#include "cli/invariant_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "cli/number_text.h"

namespace tornasole::cli {
namespace {

// Those that broke most first.
std::vector<std::string> tensors_of(const RuleReport& report) {
  std::vector<std::pair<std::string, std::int64_t>> counts(report.tensors.begin(), report.tensors.end());
  std::ranges::stable_sort(counts, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (auto& [name, count] : counts) {
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

Result<InvariantVerdict> InvariantVerdict::make(Trial* trial, const std::string& file, const CheckOptions& options) {
  TORNASOLE_TRY(NamedRule rule, make_rule("InvariantCheck", {{"invariants", file}}, {.base = trial}));
  RuleRunner runner(trial, {.first_step = options.first_step, .end_step = options.end_step});
  runner.add(std::move(rule));
  return InvariantVerdict(std::move(runner));
}

Status InvariantVerdict::add_to(CheckReport* report) {
  TORNASOLE_CHECK(runner_.run());
  const RuleOutcome& outcome = runner_.outcome(0);
  report->checked.push_back(outcome.name);
  const std::vector<Violation> violations = outcome.report.violations();
  if (violations.empty()) return {};
  const Violation& first = violations.front();
  const std::int64_t more = outcome.report.violations_count - 1;
  report->verdicts.push_back(
      {.rule = outcome.name,
       .severity = Severity::kWarning,
       .first_step = outcome.report.first_step.value_or(0),
       .last_step = outcome.report.last_step.value_or(0),
       .mode = first.step.mode,
       .tensors = tensors_of(outcome.report),
       .value = first.value,
       .threshold = first.threshold,
       .message = first.message + (more > 0 ? fmt::format("; and {} more", more) : ""),
       .causes = {"something differs from the runs that were known to be good: data, code, settings or machines"},
       .advice = {"tornasole rule DIR InvariantCheck --invariants FILE lists all of it"}});
  report->summary += fmt::format("; what held in good runs is broken {}", counted(more + 1, "time"));
  return {};
}

}  // namespace tornasole::cli
