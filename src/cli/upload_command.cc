// tornasole upload SPOOL [LOCATION]: sends what a training saved while its object store was away.

#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/terminal.h"
#include "cli/trial_arguments.h"
#include "config/environment.h"
#include "tools/upload_spool.h"

namespace tornasole::cli {
namespace {

struct UploadArguments {
  tools::UploadOptions options = {};
  bool as_json = false;
};

std::string report_text(const std::vector<tools::UploadedSpool>& spools, bool is_dry_run, const Style& style) {
  std::string text;
  for (const tools::UploadedSpool& spool : spools) {
    text += fmt::format("{}: {} {} ({}) to {}{}\n", printable(spool.directory), is_dry_run ? "would send" : "sent",
                        counted(spool.files, "file"), bytes_text(spool.bytes), printable(spool.location),
                        spool.is_ended ? ", which is complete now" : "");
    for (const std::string& problem : spool.problems) {
      text += style.error("  not sent: " + printable(problem)) + "\n";
    }
  }
  return text;
}

std::string report_json(const std::vector<tools::UploadedSpool>& spools) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("spools").begin_array();
  for (const tools::UploadedSpool& spool : spools) {
    json.begin_object().key("directory").value(spool.directory).key("location").value(spool.location);
    json.key("files").value(spool.files).key("bytes").value(static_cast<std::int64_t>(spool.bytes));
    json.key("ended").value(spool.is_ended).key("problems").begin_array();
    for (const std::string& problem : spool.problems) json.value(problem);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return text + "\n";
}

int upload(const UploadArguments& arguments) {
  tools::UploadOptions options = arguments.options;
  options.marks_end = !config::Environment::from_process().get("TRAINING_JOB_NAME");
  const auto spools = tools::upload_spools(options);
  if (!spools) {
    const int code = fail(spools.error(), arguments.as_json);
    // A spool in use is refused, which is no wrong use of the command.
    return spools.error().kind == ErrorKind::kRuntime ? kFailed : code;
  }
  bool is_sound = true;
  for (const tools::UploadedSpool& spool : *spools) is_sound &= spool.problems.empty();
  return answer(
      arguments.as_json ? report_json(*spools) : report_text(*spools, arguments.options.dry_run, Style::of(stdout)),
      is_sound ? kSound : kDamaged);
}

}  // namespace

void add_upload_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "upload",
      "Send what a training saved in its spool_dir while its object store was away, in the order it was saved. What "
      "arrived is removed from the disk; interrupted, it can be run again.");
  const auto arguments = std::make_shared<UploadArguments>();  // shared: the parser keeps the callback
  command->add_option("SPOOL", arguments->options.path, "The spool_dir of the training, or one spool in it")
      ->required();
  command->add_option("LOCATION", arguments->options.location,
                      "Where to send it: s3://bucket/prefix, or a directory. Default: where the training wrote");
  command->add_flag("--dry-run", arguments->options.dry_run, "Say what waits, and send nothing");
  command->add_flag("--force", arguments->options.force, "Also what a process on another host left, which is gone");
  command->add_flag("--json", arguments->as_json, "Print JSON");
  command->footer(
      "Example:\n"
      "  tornasole upload /scratch/spool\n"
      "\n"
      "Exit codes: 0 everything was sent; 3 some files are damaged or other bytes are at their names; 1 a training "
      "still uses it, or the store fails; 2 nothing waits there.");
  command->callback([arguments, exit_code] { *exit_code = upload(*arguments); });
}

}  // namespace tornasole::cli
