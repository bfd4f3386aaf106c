// tornasole diff A B: where two runs part.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/table_text.h"
#include "cli/trial_arguments.h"
#include "tools/diff.h"
#include "tools/diff_html.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kListed = 20;

struct DiffArguments : TrialArguments {
  std::string other;
  std::vector<std::string> patterns;
  std::vector<std::string> tolerances;
  tools::DiffOptions options;
  StepRange range;
  std::string html;
  bool shows_all = false;
};

std::string first_text(const tools::FirstDifference& first, const Style& style) {
  std::string text = style.error("first difference") + "\n";
  std::string step = fmt::format("{}", first.global_step_a.number);
  if (first.global_step_b != first.global_step_a) step += fmt::format(" in A, {} in B", first.global_step_b.number);
  if (first.step.mode != Mode::kGlobal) step += fmt::format(" ({})", mode_step_text(first.step));
  std::vector<std::vector<std::string>> rows = {{"tensor", first.tensor}, {"step", step}};
  rows.push_back({"worker", first.worker_a == first.worker_b
                                ? first.worker_a
                                : fmt::format("{} in A, {} in B", first.worker_a, first.worker_b)});
  if (first.reduction) rows.push_back({"reduction", reduction_name(*first.reduction)});
  if (first.position >= 0) {
    if (!first.reduction) rows.push_back({"position", fmt::format("[{}]", fmt::join(first.index, ", "))});
    rows.push_back({"A", first.a});
    rows.push_back({"B", first.b});
    std::string by = fmt::format("abs {}, rel {}", number_text(first.abs), number_text(first.rel));
    if (first.ulp) by += fmt::format(", {} ulp", *first.ulp);
    rows.push_back({"differ by", by});
  }
  rows.push_back({"tolerance", tools::tolerance_text(first.tolerance)});
  rows.push_back({"", first.what});
  return text + align(rows, "  ");
}

std::string tensors_text(const tools::DiffReport& report, bool shows_all, const Terminal& terminal) {
  using Align = TableText::Align;
  TableText table({{"tensor", Align::kLeft, true},
                   {"compared", Align::kRight, false, 1},
                   {"different", Align::kRight},
                   {"elements", Align::kRight, false, 2},
                   {"first", Align::kRight},
                   {"max abs", Align::kRight},
                   {"max rel", Align::kRight},
                   {"max ulp", Align::kRight, false, 3}});
  std::size_t listed = 0;
  std::size_t left_out = 0;
  for (const tools::TensorDiff& tensor : report.tensors) {
    if (!tensor.differs() && !shows_all) continue;
    if (++listed > kListed && !shows_all) {
      ++left_out;
      continue;
    }
    const Tone tone = tensor.differs() ? Tone::kError : Tone::kPlain;
    table.add({{tensor.tensor, tone},
               {fmt::format("{}", tensor.values_compared + tensor.reductions_compared)},
               {fmt::format("{}", tensor.values_different + tensor.reductions_different), tone},
               {fmt::format("{}", tensor.elements_different)},
               {tensor.first_step ? fmt::format("{}", tensor.first_step->number) : "-"},
               {number_text(tensor.max_abs)},
               {number_text(tensor.max_rel)},
               {fmt::format("{}", tensor.max_ulp)}});
  }
  if (table.empty()) return "";
  std::string text = "\n" + table.text(terminal);
  if (left_out > 0) text += fmt::format("and {} more; --all lists them\n", left_out);
  return text;
}

// "TRAIN 2, 4, EVAL 1, ... (17)".
std::string steps_text(const tools::Mismatch& mismatch) {
  std::string text;
  std::optional<Mode> mode;
  for (const ModeStep step : mismatch.steps) {
    if (!text.empty()) text += ", ";
    if (step.mode != mode && step.mode != Mode::kGlobal) text += std::string(mode_name(step.mode)) + " ";
    text += fmt::format("{}", step.number);
    mode = step.mode;
  }
  const auto listed = static_cast<std::int64_t>(mismatch.steps.size());
  return mismatch.step_count > listed ? text + fmt::format(", ... ({})", mismatch.step_count) : text;
}

std::string mismatches_text(const tools::DiffReport& report, bool shows_all, const Terminal& terminal) {
  if (report.mismatches.empty()) return "";
  TableText table({{"not alike"}, {"tensor", TableText::Align::kLeft, true}, {"steps"}, {"what"}});
  const std::size_t count = shows_all ? report.mismatches.size() : std::min(report.mismatches.size(), kListed);
  for (std::size_t i = 0; i < count; ++i) {
    const tools::Mismatch& mismatch = report.mismatches[i];
    table.add(
        {{std::string(tools::mismatch_kind_name(mismatch.kind)), mismatch.is_difference ? Tone::kError : Tone::kPlain},
         {mismatch.tensor},
         {steps_text(mismatch)},
         {mismatch.what}});
  }
  std::string text = "\n" + table.text(terminal);
  const std::int64_t left_out = report.mismatch_count - static_cast<std::int64_t>(count);
  if (left_out > 0) text += fmt::format("and {} more\n", left_out);
  return text;
}

std::string report_text(const tools::DiffReport& report, bool shows_all, const Terminal& terminal) {
  std::string text = align({{"A", report.path_a}, {"B", report.path_b}}, "");
  text += report.is_equal ? "equal" : terminal.style.error("different");
  text += fmt::format(": {}, {}", counted(report.steps_compared, "step"), counted(report.values_compared, "value"));
  if (report.reductions_compared > 0) text += ", " + counted(report.reductions_compared, "stored reduction");
  text += " compared\n";
  if (report.first) text += "\n" + first_text(*report.first, terminal.style);
  return text + tensors_text(report, shows_all, terminal) + mismatches_text(report, shows_all, terminal);
}

void write_tolerance(JsonWriter& json, const tools::Tolerance& tolerance) {
  json.key("tolerance").value(tools::tolerance_text(tolerance));
}

void write_first(JsonWriter& json, const tools::FirstDifference& first) {
  json.begin_object();
  json.key("tensor").value(first.tensor).key("what").value(first.what);
  json.key("global_step_a").value(first.global_step_a.number).key("global_step_b").value(first.global_step_b.number);
  json.key("mode").value(mode_name(first.step.mode)).key("mode_step").value(first.step.number);
  json.key("worker_a").value(first.worker_a).key("worker_b").value(first.worker_b);
  if (first.reduction) json.key("reduction").value(reduction_name(*first.reduction));
  json.key("position").value(first.position).key("index").begin_array();
  for (const std::int64_t i : first.index) json.value(i);
  json.end_array().key("a").value(first.a).key("b").value(first.b).key("abs");
  write_number(json, first.abs);
  json.key("rel");
  write_number(json, first.rel);
  if (first.ulp) json.key("ulp").raw(fmt::format("{}", *first.ulp));
  write_tolerance(json, first.tolerance);
  json.end_object();
}

void write_tensor(JsonWriter& json, const tools::TensorDiff& tensor) {
  json.begin_object();
  json.key("tensor").value(tensor.tensor).key("differs").value(tensor.differs());
  json.key("values_compared").value(tensor.values_compared).key("values_different").value(tensor.values_different);
  json.key("reductions_compared").value(tensor.reductions_compared);
  json.key("reductions_different").value(tensor.reductions_different);
  json.key("elements_different").value(tensor.elements_different).key("max_abs");
  write_number(json, tensor.max_abs);
  json.key("max_rel");
  write_number(json, tensor.max_rel);
  json.key("max_ulp").raw(fmt::format("{}", tensor.max_ulp));
  write_tolerance(json, tensor.tolerance);
  json.end_object();
}

std::string report_json(const tools::DiffReport& report) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("a").value(report.path_a).key("b").value(report.path_b);
  json.key("equal").value(report.is_equal).key("first");
  if (report.first) {
    write_first(json, *report.first);
  } else {
    json.null();
  }
  json.key("tensors").begin_array();
  for (const tools::TensorDiff& tensor : report.tensors) write_tensor(json, tensor);
  json.end_array().key("mismatches").begin_array();
  for (const tools::Mismatch& mismatch : report.mismatches) {
    json.begin_object().key("kind").value(tools::mismatch_kind_name(mismatch.kind));
    json.key("tensor").value(mismatch.tensor).key("what").value(mismatch.what);
    json.key("steps").value(mismatch.step_count).key("is_difference").value(mismatch.is_difference).end_object();
  }
  json.end_array().key("mismatch_count").value(report.mismatch_count);
  json.key("steps_compared").value(report.steps_compared).key("values_compared").value(report.values_compared);
  json.key("reductions_compared").value(report.reductions_compared);
  json.end_object();
  return text + "\n";
}

Result<tools::DiffReport> compare(const DiffArguments& arguments) {
  tools::DiffOptions options = arguments.options;
  options.regex = arguments.patterns;
  options.mode = arguments.mode();
  options.first_step = arguments.range.first_step();
  options.end_step = arguments.range.end_step();
  for (const std::string& text : arguments.tolerances) {
    TORNASOLE_TRY(tools::ToleranceRule rule, tools::parse_tolerance_rule(text));
    options.rules.push_back(std::move(rule));
  }
  TORNASOLE_TRY(const Trial a, open_trial(arguments.dir));
  TORNASOLE_TRY(const Trial b, open_trial(arguments.other));
  if (!arguments.as_json) {
    warn_of_damage(a);
    warn_of_damage(b);
  }
  TORNASOLE_TRY(tools::DiffReport report, tools::diff(a, b, options));
  report.path_a = arguments.dir;  // as they were named
  report.path_b = arguments.other;
  return report;
}

int diff_trials(const DiffArguments& arguments) {
  const auto report = compare(arguments);
  if (!report) return fail(report.error(), arguments.as_json);
  if (!arguments.html.empty()) {
    if (const Status written = write_output_file(arguments.html, tools::diff_html(*report)); !written) {
      return fail(written.error(), arguments.as_json);
    }
  }
  const int code = report->is_equal ? kSound : kDifferent;
  return answer(
      arguments.as_json ? report_json(*report) : report_text(*report, arguments.shows_all, Terminal::of(stdout)), code);
}

}  // namespace

void add_diff_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "diff",
      "Two runs side by side, aligned by tensor, step and worker: the earliest difference over the tolerance, a line "
      "for each tensor that differs, and what only one of them has. Without a tolerance, values must be the same.");
  const auto arguments = std::make_shared<DiffArguments>();  // shared: the parser keeps the callback
  command->add_option("A", arguments->dir, "The directory of one run")->required()->type_name("");
  command->add_option("B", arguments->other, "The directory of the other")->required()->type_name("");
  command->add_option("PATTERN", arguments->patterns, "Only tensors with any of these in their name")->type_name("");
  command->add_option("--rel", arguments->options.tolerance.rel, "Equal if |a - b| <= REL * max(|a|, |b|)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("REL");
  command->add_option("--abs", arguments->options.tolerance.abs, "Equal if |a - b| <= ABS")
      ->check(CLI::NonNegativeNumber)
      ->type_name("ABS");
  command->add_option("--ulp", arguments->options.tolerance.ulp, "Equal if so many representable numbers apart")
      ->type_name("N");
  command
      ->add_option("--tolerance", arguments->tolerances,
                   "Of tensors with PATTERN in their name: PATTERN=rel:1e-5,abs:1e-8,ulp:4 or PATTERN=exact")
      ->type_name("RULE")
      ->allow_extra_args(false);
  add_mode(command, arguments.get());
  add_step_range(command, &arguments->range);
  command->add_flag("--global-steps", arguments->options.align_global_steps, "Align by global step, not mode step");
  command->add_flag("--ignore-missing", arguments->options.ignore_missing, "What only one run has is no difference");
  command->add_flag("--ignore-dtype", arguments->options.ignore_dtype, "Other element types are no difference");
  command->add_flag("--all", arguments->shows_all, "List every tensor, equal ones too");
  command->add_option("--html", arguments->html, "Write the whole report as a page, too")->type_name("FILE");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole diff runs/before runs/after --rel 1e-5 --tolerance 'loss=abs:1e-3' --html diff.html\n"
      "\n"
      "Exit codes: 0 equal; 1 different, or a trial cannot be read; 2 no such directory, or wrong use.");
  command->callback([arguments, exit_code] { *exit_code = diff_trials(*arguments); });
}

}  // namespace tornasole::cli
