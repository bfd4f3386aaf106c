// tornasole first-bad DIR: where the first NaN or infinity is.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/stat_cells.h"
#include "cli/table_text.h"
#include "cli/trial_arguments.h"
#include "tools/first_bad.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kListed = 20;

struct FirstBadArguments : TrialArguments {
  std::vector<std::string> patterns;
  StepRange range;
  bool no_reductions = false;
};

std::string place_text(const tools::BadValue& bad) {
  if (bad.reduction) return fmt::format("stored {}", reduction_name(*bad.reduction));
  return fmt::format("[{}]", fmt::join(bad.index, ", "));
}

std::string bad_counts(const tools::BadValue& bad) {
  std::vector<std::string> parts;
  if (bad.nan_count > 0) parts.push_back(fmt::format("{} NaN", bad.nan_count));
  if (bad.pos_inf_count > 0) parts.push_back(fmt::format("{} Inf", bad.pos_inf_count));
  if (bad.neg_inf_count > 0) parts.push_back(fmt::format("{} -Inf", bad.neg_inf_count));
  return fmt::format("{} of {}", fmt::join(parts, ", "), counted(bad.element_count, "element"));
}

std::string looked_at(const tools::FirstBadReport& report) {
  std::string text = fmt::format("looked at {}, {}", counted(report.steps, "step"), counted(report.values, "value"));
  if (report.reductions > 0) text += ", " + counted(report.reductions, "stored reduction");
  return text;
}

std::string last_good_text(const tools::LastGood& good, const Trial& trial) {
  std::string text = fmt::format("step {}", step_text(trial, good.global_step));
  for (const Stat stat : {Stat::kMin, Stat::kMax, Stat::kMean, Stat::kStd, Stat::kL2, Stat::kAbsMax}) {
    if (const auto value = good.stats[stat]) text += fmt::format("  {} {}", stat_name(stat), number_text(*value));
  }
  for (const auto& [reduction, value] : good.reductions) {
    text += fmt::format("  {} {}", reduction_name(reduction), number_text(value));
  }
  return text;
}

std::string report_text(const tools::FirstBadReport& report, const Trial& trial, const Terminal& terminal) {
  const Style& style = terminal.style;
  std::string unreadable;
  if (report.unreadable_count > 0) {
    unreadable = style.warning(fmt::format("{} could not be read and may hold more; tornasole verify lists them",
                                           counted(report.unreadable_count, "value"))) +
                 "\n";
  }
  if (!report.first) return fmt::format("no NaN and no Inf; {}\n", looked_at(report)) + unreadable;
  const tools::BadValue& first = *report.first;
  std::string text =
      style.error(fmt::format("{} in {}", tools::non_finite_name(first.kind), printable(first.tensor))) + "\n" +
      align({{"step", step_text(trial, first.global_step)},
             {"worker", first.worker},
             {"position", place_text(first)},
             {"value", fmt::format("{} {}: {}", dtype_name(first.dtype), first.shape.to_string(), bad_counts(first))},
             {"last good", report.last_good ? last_good_text(*report.last_good, trial) : "never"}},
            "  ");
  if (report.same_step_count > 1) {
    text += fmt::format("\nbad at that step, in the order they were saved ({})\n", report.same_step_count);
    TableText table({{"tensor", TableText::Align::kLeft, true}, {"worker"}, {"first at"}, {"bad"}});
    for (std::size_t i = 0; i < std::min(report.same_step.size(), kListed); ++i) {
      const tools::BadValue& bad = report.same_step[i];
      table.add({{bad.tensor}, {bad.worker}, {place_text(bad)}, {bad_counts(bad)}});
    }
    text += table.text(terminal, "  ");
    if (report.same_step_count > static_cast<std::int64_t>(kListed)) text += "  ...\n";
  }
  return text + "\n" + looked_at(report) + "\n" + unreadable;
}

void write_bad(JsonWriter& json, const tools::BadValue& bad) {
  json.begin_object();
  json.key("tensor").value(bad.tensor).key("global_step").value(bad.global_step.number);
  json.key("mode").value(mode_name(bad.step.mode)).key("mode_step").value(bad.step.number);
  json.key("worker").value(bad.worker).key("kind").value(tools::non_finite_name(bad.kind));
  json.key("reduction");
  if (bad.reduction) {
    json.value(reduction_name(*bad.reduction));
  } else {
    json.null();
  }
  json.key("dtype").value(dtype_name(bad.dtype)).key("shape").value(bad.shape.to_string());
  json.key("position").value(bad.position).key("index").begin_array();
  for (const std::int64_t i : bad.index) json.value(i);
  json.end_array();
  json.key("elements").value(bad.element_count).key("nan").value(bad.nan_count);
  json.key("inf").value(bad.pos_inf_count).key("negative_inf").value(bad.neg_inf_count);
  json.end_object();
}

std::string report_json(const tools::FirstBadReport& report) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("first");
  if (report.first) {
    write_bad(json, *report.first);
  } else {
    json.null();
  }
  json.key("last_good");
  if (report.last_good) {
    const tools::LastGood& good = *report.last_good;
    json.begin_object().key("global_step").value(good.global_step.number).key("worker").value(good.worker);
    json.key("stats");
    write_stats(json, good.stats);
    json.key("reductions").begin_object();
    for (const auto& [reduction, value] : good.reductions) {
      json.key(reduction_name(reduction));
      write_number(json, value);
    }
    json.end_object().end_object();
  } else {
    json.null();
  }
  json.key("same_step").begin_array();
  for (const tools::BadValue& bad : report.same_step) write_bad(json, bad);
  json.end_array().key("same_step_count").value(report.same_step_count);
  json.key("steps").value(report.steps).key("values").value(report.values);
  json.key("reductions").value(report.reductions).key("unreadable").value(report.unreadable_count);
  json.end_object();
  return text + "\n";
}

int find_first(const FirstBadArguments& arguments) {
  const auto trial = open_trial(arguments.dir);
  if (!trial) return fail(trial.error(), arguments.as_json);
  if (!arguments.as_json) warn_of_damage(*trial);
  const auto report = tools::first_bad(*trial, {.regex = arguments.patterns,
                                                .mode = arguments.mode(),
                                                .worker = arguments.worker,
                                                .first_step = arguments.range.first_step(),
                                                .end_step = arguments.range.end_step(),
                                                .reductions = !arguments.no_reductions});
  if (!report) return fail(report.error(), arguments.as_json);
  const int code = report->first ? kFound : kSound;
  return answer(arguments.as_json ? report_json(*report) : report_text(*report, *trial, Terminal::of(stdout)), code);
}

}  // namespace

void add_first_bad_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "first-bad",
      "The first NaN or Inf of a run in execution order: step, worker, tensor, position; the tensor's last good value; "
      "and what else went bad at that step.");
  const auto arguments = std::make_shared<FirstBadArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("PATTERN", arguments->patterns, "Only tensors with any of these in their name")->type_name("");
  add_mode(command, arguments.get());
  add_worker(command, arguments.get());
  add_step_range(command, &arguments->range);
  command->add_flag("--no-reductions", arguments->no_reductions, "Look at full values alone");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole first-bad runs/mnist\n"
      "\n"
      "Exit codes: 0 none found; 10 found; 1 the trial cannot be read; 2 no such directory, or wrong use.");
  command->callback([arguments, exit_code] { *exit_code = find_first(*arguments); });
}

}  // namespace tornasole::cli
