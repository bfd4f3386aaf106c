// tornasole learn DIR...: what always held in runs known to be good, for the rule InvariantCheck.

#include <fmt/format.h>

#include <map>
#include <memory>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/rule_commands.h"
#include "cli/run_state_text.h"
#include "cli/terminal.h"
#include "cli/trial_arguments.h"
#include "tornasole/invariants.h"

namespace tornasole::cli {
namespace {

struct LearnArguments {
  std::vector<std::string> dirs;
  std::string out;
  bool as_json = false;
};

Result<Invariants> learn(const LearnArguments& arguments) {
  std::vector<Trial> trials;
  for (const std::string& dir : arguments.dirs) {
    TORNASOLE_TRY(Trial trial, open_trial(dir));
    if (!arguments.as_json) warn_of_damage(trial);
    if (trial.run_status().state == RunState::kFailed) {
      warn(fmt::format("{}: {}; it is taken as good", printable(dir), printable(run_status_text(trial.run_status()))));
    }
    trials.push_back(std::move(trial));
  }
  std::vector<Trial*> pointers;
  for (Trial& trial : trials) pointers.push_back(&trial);
  TORNASOLE_TRY(Invariants learned, learn_invariants(pointers));
  if (learned.list.empty()) {
    return invalid_error("nothing held at least five times in {} of {}; save more steps",
                         counted(learned.steps, "step"), counted(static_cast<std::int64_t>(trials.size()), "run"));
  }
  learned.trials = arguments.dirs;  // as they were given
  return learned;
}

std::map<std::string, std::int64_t> kinds_of(const Invariants& learned) {
  std::map<std::string, std::int64_t> kinds;
  for (const Invariant& invariant : learned.list) ++kinds[std::string(invariant_kind_name(invariant.kind))];
  return kinds;
}

std::string summary_text(const Invariants& learned) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, count] : kinds_of(learned)) rows.push_back({kind, fmt::format("{}", count)});
  return fmt::format("{} from {} of {}\n", counted(static_cast<std::int64_t>(learned.list.size()), "invariant"),
                     counted(learned.steps, "step"), counted(static_cast<std::int64_t>(learned.trials.size()), "run")) +
         align(rows, "  ");
}

std::string summary_json(const Invariants& learned, const std::string& out) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("invariants").value(static_cast<std::int64_t>(learned.list.size()));
  json.key("steps").value(learned.steps).key("trials").begin_array();
  for (const std::string& trial : learned.trials) json.value(trial);
  json.end_array().key("kinds").begin_object();
  for (const auto& [kind, count] : kinds_of(learned)) json.key(kind).value(count);
  json.end_object().key("out").value(out).end_object();
  return text + "\n";
}

int learn_run(const LearnArguments& arguments) {
  const auto learned = learn(arguments);
  if (!learned) return fail(learned.error(), arguments.as_json);
  if (arguments.out.empty()) return answer(learned->to_text());
  if (const Status written = write_output_file(arguments.out, learned->to_text()); !written) {
    return fail(written.error(), arguments.as_json);
  }
  return answer(arguments.as_json ? summary_json(*learned, arguments.out) : summary_text(*learned));
}

}  // namespace

void add_learn_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "learn",
      "Learn from runs known to be good what always holds in them: values that are finite, change or stay, shapes, "
      "ranges of statistics, agreement of workers. The rule InvariantCheck looks for what breaks it in other runs.");
  const auto arguments = std::make_shared<LearnArguments>();  // shared: the parser keeps the callback
  command->add_option("DIR", arguments->dirs, "The directories that good runs were written to")
      ->required()
      ->type_name("");
  CLI::Option* out = command->add_option("-o,--out", arguments->out, "Write them to this file; else they are printed")
                         ->type_name("FILE");
  command->add_flag("--json", arguments->as_json, "Print what was learned as JSON, errors included")->needs(out);
  command->footer(
      "Example:\n"
      "  tornasole learn runs/good-1 runs/good-2 -o invariants.jsonl\n"
      "  tornasole rule runs/new InvariantCheck --invariants invariants.jsonl\n"
      "\n"
      "Exit codes: 0; 2 no such directory, no trial, or nothing to be learned; 1 a run cannot be read.");
  command->callback([arguments, exit_code] { *exit_code = learn_run(*arguments); });
}

}  // namespace tornasole::cli
