// tornasole dump DIR: everything a trial answers, as one JSON document.

#include <memory>

#include "base/errors.h"
#include "cli/command_output.h"
#include "cli/terminal.h"
#include "cli/trial_arguments.h"
#include "cli/trial_paths.h"
#include "tools/dump.h"

namespace tornasole::cli {
namespace {

struct DumpArguments : TrialArguments {
  std::int64_t max_elements = 1000;
  bool skips_damage = false;
};

int dump_trial(const DumpArguments& arguments) {
  if (const Status status = check_directory(arguments.dir); !status) return fail(status.error(), arguments.as_json);
  tools::DumpOptions options{.max_elements = arguments.max_elements};
  options.trial.path = arguments.dir;
  if (arguments.skips_damage) options.trial.on_damage = OnDamage::kSkip;
  bool is_open = false;
  const Status status = tools::dump(
      options,
      [](std::string_view piece) -> Status {
        if (print(stdout, without_delete(piece))) return {};
        return io_error("cannot write to standard output");
      },
      &is_open);
  if (!status) return fail(status.error(), false);  // standard output is what failed
  return is_open ? kSound : kFailed;
}

}  // namespace

void add_dump_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "dump",
      "Everything a trial answers, as one JSON document: steps, modes, workers, collections, and every value with its "
      "type, shape, checksum and numbers. Made to compare readers and versions.");
  const auto arguments = std::make_shared<DumpArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_flag("--json", arguments->as_json, "The form, which is the only one");
  command->add_option("--max-elements", arguments->max_elements, "Values with more elements are summarised")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--skip-damage", arguments->skips_damage, "Leave damaged files out instead of stopping at them");
  command->footer(
      "Example:\n"
      "  tornasole dump runs/mnist --json > mnist.json\n"
      "\n"
      "Exit codes: 0; 1 the trial does not open (the document says why); 2 no such directory.");
  command->callback([arguments, exit_code] { *exit_code = dump_trial(*arguments); });
}

}  // namespace tornasole::cli
