// tornasole export DIR -o OUT --format NAME: values as files of other programs.

#include <fmt/format.h>

#include <memory>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/interrupts.h"
#include "cli/number_text.h"
#include "cli/progress_bar.h"
#include "cli/run_state_text.h"
#include "cli/trial_arguments.h"
#include "cli/trial_waiting.h"
#include "tools/export_trial.h"
#include "tornasole/check.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kListed = 5;

struct ExportArguments : TrialArguments {
  std::string format;
  std::vector<std::string> patterns;
  std::vector<std::string> stats;
  StepRange range;
  tools::ExportOptions options;
  bool no_reductions = false;
  bool no_values = false;
  bool with_findings = false;
  bool is_following = false;
  double poll_s = 1;
  double timeout_s = 300;
};

// The form from the end of the name, where none was given.
Result<tools::ExportFormat> format_of(const ExportArguments& arguments) {
  std::string name = arguments.format;
  if (name.empty()) name = arguments.options.path.substr(arguments.options.path.find_last_of('.') + 1);
  if (const auto format = tools::parse_export_format(name)) return *format;
  return invalid_error(
      "-o {}: the form is not clear from the name; allowed: --format csv, npy, npz, arrow, parquet or "
      "tensorboard",
      arguments.options.path);
}

// What `check` says of the run, as texts.
Result<std::vector<tools::ExportOptions::Note>> findings_of(Trial& trial, const ExportArguments& arguments) {
  std::vector<tools::ExportOptions::Note> notes;
  if (!arguments.with_findings) return notes;
  const CheckOptions options{.first_step = arguments.range.first_step(), .end_step = arguments.range.end_step()};
  TORNASOLE_TRY(const CheckReport report, check(trial, options));
  notes.push_back({.tag = "check/summary", .global_step = 0, .markdown = printable(report.summary)});
  for (const Verdict& verdict : report.verdicts) {
    std::string text =
        fmt::format("**{}: {}**\n\n{}\n", severity_name(verdict.severity), verdict.rule, printable(verdict.message));
    for (const std::string& cause : verdict.causes) text += fmt::format("\n- likely cause: {}", printable(cause));
    for (const std::string& advice : verdict.advice) text += fmt::format("\n- what to try: {}", printable(advice));
    notes.push_back({.tag = "check/" + verdict.rule, .global_step = verdict.first_step, .markdown = std::move(text)});
  }
  return notes;
}

Result<tools::ExportOptions> options_of(const ExportArguments& arguments) {
  tools::ExportOptions options = arguments.options;
  TORNASOLE_TRY(options.format, format_of(arguments));
  const bool is_board = options.format == tools::ExportFormat::kTensorboard;
  if (!is_board && (arguments.with_findings || arguments.is_following)) {
    return invalid_error("{} is for tensorboard, the form is {}", arguments.with_findings ? "--findings" : "--follow",
                         tools::export_format_name(options.format));
  }
  options.regex = arguments.patterns;
  options.mode = arguments.mode();
  options.worker = arguments.worker;
  options.first_step = arguments.range.first_step();
  options.end_step = arguments.range.end_step();
  options.values = !arguments.no_values;
  options.reductions = !arguments.no_reductions;
  for (const std::string& name : arguments.stats) options.statistics.add(*parse_stat(name));
  return options;
}

Result<tools::ExportReport> run_export(const ExportArguments& arguments) {
  TORNASOLE_TRY(tools::ExportOptions options, options_of(arguments));
  TORNASOLE_TRY(Trial trial, open_trial(arguments.dir));
  TORNASOLE_CHECK(check_worker(trial, arguments.worker));
  if (!arguments.patterns.empty()) TORNASOLE_CHECK(names_matching(trial, arguments.patterns, arguments.mode()));
  if (!arguments.as_json) warn_of_damage(trial);
  TORNASOLE_TRY(options.notes, findings_of(trial, arguments));
  ProgressBar progress("values", 0);
  options.progress = [&](std::int64_t values) {
    progress.update(static_cast<std::uint64_t>(values));
    return true;
  };
  return tools::export_trial(trial, options);
}

void add_to(const tools::ExportReport& more, tools::ExportReport* report) {
  report->files += more.files;
  report->values += more.values;
  report->reductions += more.reductions;
  report->bytes += more.bytes;
  report->skipped.count += more.skipped.count;
  for (const Damage& damage : more.skipped.listed) {
    if (report->skipped.listed.size() < kListed) report->skipped.listed.push_back(damage);
  }
}

// Exports what is there, then what comes, until the run is over or somebody interrupts.
Result<tools::ExportReport> follow_export(const ExportArguments& arguments) {
  TORNASOLE_TRY(tools::ExportOptions options, options_of(arguments));
  TORNASOLE_TRY(Trial trial, wait_for_trial({.dir = arguments.dir,
                                             .timeout_s = arguments.timeout_s,
                                             .poll_s = arguments.poll_s,
                                             .first_step = {},
                                             .end_step = {},
                                             .on_wait = {}}));
  heed_interrupts();
  Patience patience(arguments.timeout_s);
  tools::ExportReport report;
  std::int64_t next = arguments.range.first_step().value_or(0);
  while (true) {
    TORNASOLE_CHECK(trial.refresh());
    const RunStatus status = trial.run_status();
    const bool is_dead = status.state == RunState::kFailed || status.state == RunState::kPresumedDead;
    const bool is_last = trial.loaded_all_steps() || is_dead || was_interrupted() || patience.is_over();
    // Steps that a worker has not written yet are waited for, unless nobody will.
    std::int64_t end = next;
    const StepFilter filter = is_last ? StepFilter::kIncludingIncomplete : StepFilter::kComplete;
    for (const ModeStep step : trial.steps(Mode::kGlobal, filter)) end = std::max(end, step.number + 1);
    if (const auto limit = arguments.range.end_step()) end = std::min(end, *limit);
    if (end > next) {
      options.first_step = next;
      options.end_step = end;
      if (is_last) {
        TORNASOLE_TRY(options.notes, findings_of(trial, arguments));
      }
      TORNASOLE_TRY(const tools::ExportReport more, tools::export_trial(trial, options));
      add_to(more, &report);
      options.append = true;
      next = end;
      patience.renew();
    }
    if (is_last) break;
    if (status.state == RunState::kRunning) patience.renew();
    sleep_seconds(arguments.poll_s);
  }
  return report;
}

int export_values(const ExportArguments& arguments) {
  const auto report = arguments.is_following ? follow_export(arguments) : run_export(arguments);
  if (!report) return fail(report.error(), arguments.as_json);
  const int code = report->skipped.empty() ? kSound : kFailed;
  if (arguments.as_json) {
    std::string text;
    JsonWriter json(&text);
    json.begin_object().key("path").value(arguments.options.path).key("files").value(report->files);
    json.key("values").value(report->values).key("reductions").value(report->reductions);
    json.key("bytes").value(static_cast<std::int64_t>(report->bytes)).key("widened").value(report->widened);
    json.key("not_exact").value(report->not_exact).key("skipped").value(report->skipped.count).end_object();
    return answer(text + "\n", code);
  }
  for (std::size_t i = 0; i < std::min(report->skipped.listed.size(), kListed); ++i) {
    warn(fmt::format("{}: {}; left out", report->skipped.listed[i].path, report->skipped.listed[i].what));
  }
  if (report->skipped.count > static_cast<std::int64_t>(kListed)) {
    warn(fmt::format("{} more left out", report->skipped.count - static_cast<std::int64_t>(kListed)));
  }
  if (report->widened > 0)
    warn(counted(report->widened, "value") + " of a type the form lacks, written as a wider one");
  if (report->not_exact > 0) warn(counted(report->not_exact, "integer") + " beyond 2^53 rounded to doubles");
  return answer(fmt::format("{}: {}, {}, {}\n", printable(arguments.options.path), counted(report->values, "value"),
                            counted(report->reductions, "stored reduction"), bytes_text(report->bytes)),
                code);
}

}  // namespace

void add_export_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "export",
      "The values of a trial as files of other programs: csv (one row for each element, or for each --stat), npy (a "
      "directory of NumPy files), npz (one zip of them), arrow, or tensorboard (a directory: curves, histograms, "
      "texts, hyperparameters). "
      "Parquet is written by the Python package.");
  const auto arguments = std::make_shared<ExportArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("PATTERN", arguments->patterns, "Only tensors with any of these in their name")->type_name("");
  command->add_option("-o,--output", arguments->options.path, "The file; for npy and tensorboard the directory")
      ->required()
      ->type_name("OUT");
  command->add_option("--format", arguments->format, "The form; else by the end of the name")
      ->check(CLI::IsMember({"csv", "npy", "npz", "arrow", "parquet", "tensorboard"}));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kStatCount; ++i) names.emplace_back(stat_name(static_cast<Stat>(i)));
  command->add_option("--stat", arguments->stats, "csv: this statistic of each value instead of its elements")
      ->check(CLI::IsMember(names))
      ->allow_extra_args(false);
  add_mode(command, arguments.get());
  add_worker(command, arguments.get());
  add_step_range(command, &arguments->range);
  command->add_flag("--no-values", arguments->no_values, "Only stored reductions");
  command->add_flag("--no-reductions", arguments->no_reductions, "Only full values");
  command->add_flag("--compress", arguments->options.compress, "npz: compressed");
  command->add_flag("--binary", arguments->options.arrow_binary, "arrow: elements as bytes instead of doubles");
  command->add_flag("--overwrite", arguments->options.overwrite, "An existing file may be replaced");
  command->add_flag("--images", arguments->options.images,
                    "tensorboard: values of two dimensions up to 256 also as pictures");
  command->add_flag("--findings", arguments->with_findings, "tensorboard: what check says of the run, as texts");
  command->add_flag("--follow", arguments->is_following, "tensorboard: go on with what comes, until the run is over");
  command->add_option("--poll", arguments->poll_s, "--follow: seconds between two looks")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--timeout", arguments->timeout_s, "--follow: give up after so long without a sign of life")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole export runs/mnist loss -o loss.csv\n"
      "  tornasole export runs/mnist -o norms.csv --stat l2 --stat mean\n"
      "  tornasole export runs/mnist -o boards/mnist --format tensorboard\n"
      "\n"
      "Exit codes: 0; 1 something was left out or could not be written; 2 no such directory, or wrong use.");
  command->callback([arguments, exit_code] { *exit_code = export_values(*arguments); });
}

}  // namespace tornasole::cli
