// tornasole check DIR: what is wrong with a training.

#include "cli/check_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/invariant_verdict.h"
#include "cli/terminal_chart.h"
#include "cli/text_width.h"
#include "cli/verdict_output.h"
#include "tornasole/check.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kListedTensors = 5;

std::string list_text(std::string_view title, const std::vector<std::string>& items, const Terminal& terminal) {
  if (items.empty()) return {};
  std::string text = fmt::format("  {}\n", title);
  for (const std::string& item : items) text += "    - " + wrap(printable(item), terminal.width, "      ", 6) + "\n";
  return text;
}

std::string chart_of(const Evidence& evidence, const Terminal& terminal) {
  if (evidence.points.size() < 2) return {};
  TerminalChart chart{.points = {}, .height = 5};
  for (const auto& [step, value] : evidence.points) chart.points.push_back({static_cast<double>(step), value});
  return fmt::format("  {}\n{}", printable(evidence.what), chart_text(std::move(chart), terminal));
}

std::string verdict_text(const CheckReport& report, std::size_t place, const CheckArguments& arguments,
                         const Terminal& terminal) {
  const Verdict& verdict = report.verdicts[place];
  const std::string head = fmt::format("{}: {}", severity_name(verdict.severity), verdict.rule);
  std::string text = fmt::format("{}  {}\n", terminal.style.paint(tone_of(verdict.severity), head),
                                 terminal.style.faint(steps_text(verdict)));
  text += "  " + wrap(printable(verdict.message), terminal.width, "  ", 2) + "\n";
  if (verdict.symptom_of) {
    return text + fmt::format("  likely a symptom of {}\n", report.verdicts[*verdict.symptom_of].rule);
  }
  if (arguments.is_short) return text;
  std::vector<std::string> tensors = verdict.tensors;
  if (tensors.size() > kListedTensors) {
    const std::size_t more = tensors.size() - kListedTensors;
    tensors.resize(kListedTensors);
    tensors.push_back(fmt::format("and {} more", more));
  }
  text += list_text("tensors", tensors, terminal);
  text += chart_of(verdict.evidence, terminal);
  text += list_text("likely causes", verdict.causes, terminal);
  text += list_text("what to try", verdict.advice, terminal);
  return text;
}

std::string report_text(const CheckReport& report, const CheckArguments& arguments, const Terminal& terminal) {
  std::string text = terminal.style.heading(report.summary) + "\n";
  // They come in the order of a cause, then what follows from it.
  for (std::size_t i = 0; i < report.verdicts.size(); ++i) text += "\n" + verdict_text(report, i, arguments, terminal);
  if (!report.not_checked.empty()) {
    text += "\nnot checked\n";
    for (const NotChecked& one : report.not_checked) {
      text += "  " + wrap(printable(one.rule + ": " + one.reason), terminal.width, "    ", 2) + "\n";
    }
  }
  return text;
}

}  // namespace

int check_run(const CheckArguments& arguments) {
  auto trial = open_trial(arguments.dir);
  if (!trial) return fail(trial.error(), arguments.as_json);
  CheckOptions options{.profile = arguments.profile == "reference" ? Profile::kReference : Profile::kCheck,
                       .rules = arguments.rules,
                       .first_step = arguments.range.first_step(),
                       .end_step = arguments.range.end_step()};
  std::optional<InvariantVerdict> invariants;
  if (!arguments.invariants.empty()) {
    auto made = InvariantVerdict::make(&*trial, arguments.invariants, options);
    if (!made) return fail(made.error(), arguments.as_json);
    invariants.emplace(std::move(*made));
  }
  auto report = check(*trial, options);
  if (!report) return fail(report.error(), arguments.as_json);
  if (invariants) {
    if (const Status added = invariants->add_to(&*report); !added) return fail(added.error(), arguments.as_json);
  }
  const int code = report->has_findings() ? kFound : kSound;
  if (arguments.as_json) return answer(without_delete(report->to_json() + "\n"), code);
  return answer(report_text(*report, arguments, Terminal::of(stdout)), code);
}

void add_check_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "check",
      "What is wrong with a training: asks every question that what was saved can answer, puts causes before symptoms, "
      "and says for each what, since when, where, why and what to try.");
  const auto arguments = std::make_shared<CheckArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("--rule", arguments->rules, "Only these rules")->type_name("NAME");
  command
      ->add_option("--profile", arguments->profile,
                   "check: questions made for use without a person; reference: the rules as they are documented, which "
                   "many healthy runs meet")
      ->check(CLI::IsMember({"check", "reference"}))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--invariants", arguments->invariants, "Also what tornasole learn found in good runs")
      ->type_name("FILE");
  add_step_range(command, &arguments->range);
  command->add_flag("-s,--short", arguments->is_short, "One line a finding: no causes, no advice, no plots");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole check runs/mnist\n"
      "\n"
      "Exit codes: 0 nothing found; 10 a warning or an error; 2 wrong use; 1 anything else.");
  command->callback([arguments, exit_code] { *exit_code = check_run(*arguments); });
}

}  // namespace tornasole::cli
