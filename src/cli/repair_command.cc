// tornasole repair DIR: brings back what a dead run had written but not published, and closes the run.

#include <fmt/format.h>

#include <memory>

#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/table_text.h"
#include "cli/trial_arguments.h"
#include "cli/trial_paths.h"
#include "tools/repair.h"
#include "tools/verify.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kListed = 50;

struct RepairArguments : TrialArguments {
  bool is_dry_run = false;
};

std::string report_text(const tools::RepairReport& report, bool is_sound, const Terminal& terminal) {
  std::string text;
  if (report.changes_nothing()) {
    text = "nothing to repair\n";
  } else {
    TableText table({{report.dry_run ? "would" : "did"}, {"file", TableText::Align::kLeft, true}, {""}});
    for (std::size_t i = 0; i < std::min(report.actions.listed.size(), kListed); ++i) {
      const tools::RepairAction& action = report.actions.listed[i];
      table.add({{std::string(tools::repair_action_name(action.kind))}, {action.path}, {action.detail}});
    }
    text = table.text(terminal);
    if (report.actions.count > static_cast<std::int64_t>(kListed)) {
      text += fmt::format("and {} more\n", report.actions.count - static_cast<std::int64_t>(kListed));
    }
    text += fmt::format("\n{} {} with {}, {} removed, {} lost\n", report.dry_run ? "would publish" : "published",
                        counted(report.steps_published, "step"), counted(report.values_published, "value"),
                        counted(report.files_removed, "file"), bytes_text(report.bytes_lost));
  }
  for (const Damage& problem : report.problems.listed) {
    text += terminal.style.error(
                fmt::format("cannot be mended: {}: {}", printable(problem.path), printable(problem.what))) +
            "\n";
  }
  if (!is_sound) text += terminal.style.error("damage is left; tornasole verify lists it") + "\n";
  return text;
}

std::string report_json(const tools::RepairReport& report, bool is_sound) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("dry_run").value(report.dry_run).key("sound").value(is_sound);
  json.key("action_count").value(report.actions.count).key("actions").begin_array();
  for (const tools::RepairAction& action : report.actions.listed) {
    json.begin_object().key("action").value(tools::repair_action_name(action.kind)).key("path").value(action.path);
    json.key("detail").value(action.detail).end_object();
  }
  json.end_array().key("steps_published").value(report.steps_published);
  json.key("values_published").value(report.values_published);
  json.key("bytes_lost").value(static_cast<std::int64_t>(report.bytes_lost));
  json.key("files_removed").value(report.files_removed).key("problems").begin_array();
  for (const Damage& problem : report.problems.listed) {
    json.begin_object().key("path").value(problem.path).key("what").value(problem.what).end_object();
  }
  json.end_array().end_object();
  return text + "\n";
}

int repair_trial(const RepairArguments& arguments) {
  if (const Status status = check_directory(arguments.dir); !status) {
    fail(status.error(), arguments.as_json);
    return kBadUse;
  }
  const std::string note = begun_note(arguments.dir);
  const auto report = tools::repair({.path = arguments.dir, .dry_run = arguments.is_dry_run});
  if (!report) {
    const int code = fail(report.error(), arguments.as_json);
    // A live run is refused, which is no wrong use of the command.
    return report.error().kind == ErrorKind::kRuntime ? kFailed : code;
  }
  // What repair cannot mend is damage in published files, which verify finds.
  const auto verified = tools::verify({.path = arguments.dir});
  const bool is_sound = report->problems.empty() && verified && verified->is_sound_with_attempts();
  return answer(
      arguments.as_json ? report_json(*report, is_sound) : report_text(*report, is_sound, Terminal::of(stdout)) + note,
      is_sound ? kSound : kDamaged);
}

}  // namespace

void add_repair_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "repair",
      "Bring back what a dead run had written but not published, marked partial; remove debris; close the run. "
      "Published files are never changed, a live run is refused, and a second repair changes nothing.");
  const auto arguments = std::make_shared<RepairArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_flag("--dry-run", arguments->is_dry_run, "Say what would be done, and do nothing");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole repair runs/mnist --dry-run\n"
      "\n"
      "Exit codes: 0 sound now; 3 damage is left; 1 the run is alive, or cannot be written to; 2 no such directory.");
  command->callback([arguments, exit_code] { *exit_code = repair_trial(*arguments); });
}

}  // namespace tornasole::cli
