// tornasole ls DIR: what is in a trial, or in each of the trials below a directory.

#include <fmt/format.h>

#include <memory>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/trial_arguments.h"
#include "cli/trial_summary.h"

namespace tornasole::cli {
namespace {

struct LsArguments : TrialArguments {
  std::string pattern;
  bool details = false;
  bool names_only = false;
};

int list_trial(const LsArguments& arguments) {
  const auto trial = open_trial(arguments.dir);
  if (!trial) return fail(trial.error(), arguments.as_json);
  if (arguments.names_only) {
    NameQuery query;
    if (!arguments.pattern.empty()) query.regex.push_back(arguments.pattern);
    const auto names = trial->tensor_names(query);
    if (!names) return fail(names.error(), arguments.as_json);
    std::string text;
    for (const std::string& name : *names) text += printable(name) + "\n";
    return answer(text);
  }
  const auto summary =
      summarise(*trial, {.path = arguments.dir, .details = arguments.details, .pattern = arguments.pattern});
  if (!summary) return fail(summary.error(), arguments.as_json);
  if (arguments.as_json) return answer(summary_json(*summary) + "\n");
  return answer(summary_text(*summary, Terminal::of(stdout)));
}

// A trial that does not open is told about and does not hide the others.
int list_below(const LsArguments& arguments) {
  bool is_cut = false;
  const std::vector<std::string> paths = trials_below(arguments.dir, &is_cut);
  if (paths.empty()) return list_trial(arguments);  // which says what is wrong with the directory
  std::vector<TrialSummary> summaries;
  int code = kSound;
  for (const std::string& path : paths) {
    const auto trial = open_trial(path);
    auto summary =
        trial ? summarise(*trial, {.path = path, .pattern = arguments.pattern}) : Result<TrialSummary>(trial.error());
    if (summary) {
      summaries.push_back(std::move(*summary));
    } else {
      warn(summary.error().message);
      code = kFailed;
    }
  }
  if (is_cut) warn(fmt::format("only the first {} trials are listed", paths.size()));
  if (!arguments.as_json) return answer(overview_text(summaries, Terminal::of(stdout)), code);
  std::string text = "[";
  for (const TrialSummary& summary : summaries) text += (text.size() > 1 ? ", " : "") + summary_json(summary);
  return answer(text + "]\n", code);
}

int list(const LsArguments& arguments) {
  if (const Status status = check_directory(arguments.dir); !status) return fail(status.error(), arguments.as_json);
  return is_trial_directory(arguments.dir) ? list_trial(arguments) : list_below(arguments);
}

}  // namespace

void add_ls_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "ls",
      "What a trial holds: the state of its run, workers, steps of each mode, collections, tensors, bytes. Of a "
      "directory above several trials: one line for each.");
  const auto arguments = std::make_shared<LsArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("PATTERN", arguments->pattern, "Only tensors with this in their name (as Python's re.search)")
      ->type_name("");
  command->add_flag("-l,--long", arguments->details, "Also type, shape and form of each tensor; reads its last value");
  command->add_flag("--names", arguments->names_only, "Only the names of the tensors, one a line");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole ls runs/mnist gradient\n"
      "  tornasole ls runs\n"
      "\n"
      "Exit codes: 0; 1 a trial cannot be read; 2 no such directory, or no trial.");
  command->callback([arguments, exit_code] { *exit_code = list(*arguments); });
}

}  // namespace tornasole::cli
