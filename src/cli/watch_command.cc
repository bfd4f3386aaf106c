// tornasole watch DIR: a run as it goes, on one screen: its state, its losses, what `check` finds.
//
//   1. Wait for the trial, if it is not there yet.
//   2. Refresh every --poll seconds; read the losses of what is new; check if it is time (live_run.h).
//   3. Show it: on a terminal a screen, else a line for each piece of news (watch_view.h).
//   4. End when the run ended, failed or is presumed dead, or showed no sign of life for --timeout seconds: check all
//      of it once more.

#include <fmt/format.h>

#include <memory>

#include "cli/command_output.h"
#include "cli/interrupts.h"
#include "cli/number_text.h"
#include "cli/rule_commands.h"
#include "cli/run_state_text.h"
#include "cli/trial_arguments.h"
#include "cli/trial_waiting.h"
#include "cli/watch_view.h"

namespace tornasole::cli {
namespace {

struct WatchArguments : TrialArguments {
  std::vector<std::string> rules;
  double poll_s = 1;
  double timeout_s = 300;
};

std::unique_ptr<WatchView> view_of(const WatchArguments& arguments) {
  if (arguments.as_json) return make_watch_json();
  const Terminal terminal = Terminal::of(stdout);
  if (terminal.is_terminal) return make_watch_screen(arguments.dir);
  return make_watch_lines(terminal);
}

// Why it is over, or nothing while it goes on.
struct Ending {
  std::string how = {};
  bool is_sound = false;  // the run itself ended as it should
};

std::optional<Ending> ending_of(const Trial& trial, const LiveState& state, Patience* patience,
                                const WatchArguments& arguments) {
  const RunState run = state.status.state;
  if (run == RunState::kFailed || run == RunState::kPresumedDead) {
    return Ending{"the run is over, " + run_status_text(state.status), false};
  }
  if (trial.loaded_all_steps()) return Ending{"the run ended", true};
  if (was_interrupted()) return Ending{"interrupted", false};
  if (run == RunState::kRunning) patience->renew();
  if (patience->is_over()) {
    return Ending{fmt::format("no sign of life for {} s", number_text(arguments.timeout_s)), false};
  }
  return std::nullopt;
}

int watch(Trial& trial, WatchView& view, const WatchArguments& arguments) {
  LiveRun run(&trial, {.rules = arguments.rules});
  FindingLog log;
  Patience patience(arguments.timeout_s);
  std::int64_t last_step = -1;
  while (true) {
    if (const Status looked = run.look(); !looked) return fail(looked.error(), arguments.as_json);
    if (run.state().last_step > last_step) patience.renew();
    last_step = run.state().last_step;
    const auto ending = ending_of(trial, run.state(), &patience, arguments);
    std::vector<FindingNews> news;
    const bool is_checked = run.is_check_due() || (ending && run.state().checked_step < last_step);
    if (is_checked) {
      if (const Status checked = run.check(); !checked) return fail(checked.error(), arguments.as_json);
      news = log.update(run.state().report);
    }
    bool is_read = view.show(run.state(), news, is_checked);
    if (ending) {
      const int code = run.state().report.has_findings() ? kFound : ending->is_sound ? kSound : kFailed;
      is_read = view.end(run.state(), ending->how, code) && is_read;
      return is_read ? code : kFailed;
    }
    if (!is_read) return kFailed;
    sleep_seconds(arguments.poll_s);
    if (const Status refreshed = trial.refresh(); !refreshed) return fail(refreshed.error(), arguments.as_json);
  }
}

int watch_run(const WatchArguments& arguments) {
  const std::unique_ptr<WatchView> view = view_of(arguments);
  TrialWait wait{.dir = arguments.dir, .timeout_s = arguments.timeout_s, .poll_s = arguments.poll_s};
  wait.on_wait = [&] { view->wait_for(arguments.dir); };
  auto trial = wait_for_trial(wait);
  if (!trial) return fail(trial.error(), arguments.as_json);
  heed_interrupts();
  if (const Status refreshed = trial->refresh(); !refreshed) return fail(refreshed.error(), arguments.as_json);
  return watch(*trial, *view, arguments);
}

}  // namespace

void add_watch_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "watch",
      "Watch a run as it goes: its state and speed, its losses as small plots, what it costs to save, and what check "
      "finds, as soon as it is found. Waits for a run that has not begun. Ends with the run.");
  const auto arguments = std::make_shared<WatchArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("--rule", arguments->rules, "Only these rules")->type_name("NAME");
  command->add_option("--poll", arguments->poll_s, "Seconds between two looks")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--timeout", arguments->timeout_s, "Give up after so long without a sign of life")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--json", arguments->as_json, "Print one JSON object a line for each event");
  command->footer(
      "On a terminal the screen is drawn again in place; through a pipe there is a line for each piece of news.\n"
      "Looking for findings never takes more than a tenth of one processor.\n"
      "\n"
      "Example:\n"
      "  tornasole watch runs/mnist\n"
      "\n"
      "Exit codes: 10 a warning or an error was found; else 0 the run ended; 1 it failed, is presumed dead or gave no\n"
      "sign of life, or the command was interrupted; 2 wrong use.");
  command->callback([arguments, exit_code] { *exit_code = watch_run(*arguments); });
}

}  // namespace tornasole::cli
