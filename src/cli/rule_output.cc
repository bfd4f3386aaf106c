#include "cli/rule_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/number_text.h"
#include "cli/table_text.h"
#include "cli/trial_arguments.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kShownViolations = 10;
constexpr std::size_t kShownSteps = 10;
constexpr std::size_t kShownTensors = 5;

std::string steps_text(const RuleOutcome& outcome) {
  const std::size_t count = std::min(outcome.steps_met.size(), kShownSteps);
  std::string text = fmt::format(
      "{}", fmt::join(outcome.steps_met.begin(), outcome.steps_met.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  const std::int64_t more = outcome.report.triggered - static_cast<std::int64_t>(count);
  return more > 0 ? fmt::format("{} and {} more", text, more) : text;
}

// "weight (3), loss (1)": those with most findings first.
std::string tensors_text(const RuleReport& report) {
  std::vector<std::pair<std::string, std::int64_t>> tensors(report.tensors.begin(), report.tensors.end());
  std::ranges::stable_sort(tensors, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), kShownTensors); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", tensors[i].first, tensors[i].second);
  }
  if (tensors.size() > kShownTensors) text += fmt::format(" and {} more", tensors.size() - kShownTensors);
  return text;
}

std::string skipped_text(const RuleReport& report) {
  std::string text;
  for (const auto& [reason, count] : report.skipped) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, count);
  }
  return text;
}

std::string number_cell(std::optional<double> number) { return number ? number_text(*number) : "-"; }

std::string violations_text(const RuleReport& report, const Trial& trial, const Terminal& terminal) {
  const std::vector<Violation> all = report.violations();
  const std::size_t count = std::min(all.size(), kShownViolations);
  using enum TableText::Align;
  TableText table({{"step"},
                   {"worker", kLeft, false, 3},
                   {"tensor", kLeft, false, 2},
                   {"value", kRight},
                   {"threshold", kRight, false, 1},
                   {"message", kLeft, true}});
  for (std::size_t i = 0; i < count; ++i) {
    const Violation& violation = all[all.size() - 1 - i];
    table.add({{step_text(trial, violation.global_step)},
               {violation.worker.empty() ? "-" : violation.worker},
               {violation.tensor.empty() ? "-" : violation.tensor},
               {number_cell(violation.value)},
               {number_cell(violation.threshold)},
               {violation.message}});
  }
  return fmt::format("\n  newest of {}\n", counted(report.violations_count, "violation")) + table.text(terminal, "  ");
}

std::string rule_outcome_text(const RuleOutcome& outcome, const Trial& trial, const Terminal& terminal) {
  const RuleReport& report = outcome.report;
  const std::string name = printable(outcome.name);
  const std::string looked_at = counted(outcome.steps_evaluated, "step") + " looked at";
  std::string text;
  if (report.triggered > 0) {
    text = terminal.style.error(fmt::format("{}: condition met at {}", name, counted(report.triggered, "step"))) +
           ", " + looked_at + "\n";
  } else if (outcome.steps_evaluated == 0) {
    text = terminal.style.warning(name + ": nothing to look at") + ", no step has a tensor the rule needs\n";
  } else {
    text = name + ": condition not met, " + looked_at + "\n";
  }
  std::vector<std::vector<std::string>> rows;
  if (!outcome.steps_met.empty()) rows.push_back({"steps", steps_text(outcome)});
  if (!report.tensors.empty()) rows.push_back({"tensors", tensors_text(report)});
  if (outcome.steps_evaluated > 0) rows.push_back({"values", fmt::format("{}", report.datapoints)});
  if (!report.skipped.empty()) rows.push_back({"skipped", skipped_text(report)});
  if (outcome.error) rows.push_back({"error", printable(outcome.error->message)});
  text += align(rows, "  ");
  if (report.violations_count > 0) text += violations_text(report, trial, terminal);
  return text;
}

}  // namespace

std::string met_line(const Trial& trial, const RuleOutcome& rule, const Violation& newest) {
  return fmt::format("{} at step {}: {}\n", printable(rule.name), step_text(trial, newest.global_step),
                     printable(newest.message));
}

std::string outcome_text(const RuleRunner& runner, const Trial& trial, const Terminal& terminal) {
  std::string text;
  for (std::size_t i = 0; i < runner.size(); ++i) {
    text += rule_outcome_text(runner.outcome(i), trial, terminal) + "\n";
  }
  return text + "ended: " + printable(runner.ended_because()) + "\n";
}

std::string outcome_json(const RuleRunner& runner, const Trial& trial, rules::Evaluation evaluation,
                         std::int64_t undelivered) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("trial").value(trial.path()).key("ended_because").value(runner.ended_because());
  json.key("last_step").value(trial.last_complete_step()).key("undelivered_actions").value(undelivered);
  json.key("rules").begin_array();
  for (std::size_t i = 0; i < runner.size(); ++i) {
    const RuleOutcome& outcome = runner.outcome(i);
    json.begin_object().key("name").value(outcome.name);
    json.key("status").value(rules::evaluation_status(evaluation, outcome));
    json.key("steps_evaluated").value(outcome.steps_evaluated).key("steps_met").begin_array();
    for (const std::int64_t step : outcome.steps_met) json.value(step);
    json.end_array().key("error");
    outcome.error ? json.value(outcome.error->message) : json.null();
    json.key("report").raw(outcome.report.to_json()).end_object();
  }
  json.end_array().end_object();
  return text + "\n";
}

}  // namespace tornasole::cli
