// tornasole tail DIR: a line for each step as it is published, until the run is over.
//
//   1. Wait for the trial, if it is not there yet.
//   2. Print the last few steps that are there.
//   3. Refresh every --poll seconds, print what is new.
//   4. End when the run ended, failed or is presumed dead, or showed no sign of life for --timeout seconds.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/loss_names.h"
#include "cli/number_text.h"
#include "cli/run_state_text.h"
#include "cli/stat_cells.h"
#include "cli/terminal.h"
#include "cli/trial_arguments.h"
#include "cli/trial_waiting.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxColumns = 8;

struct TailArguments : TrialArguments {
  std::vector<std::string> patterns;
  std::string stat = "mean";
  std::int64_t lines = 10;
  double poll_s = 1;
  double timeout_s = 300;
};

class Tail {
 public:
  Tail(const Trial& trial, const TailArguments& arguments)
      : trial_(trial), arguments_(arguments), stat_(*parse_stat(arguments.stat)) {}

  // Lines for the steps after the last one printed; of the first call, the last `lines` alone.
  std::string new_lines(const Style& style) {
    std::vector<ModeStep> steps = trial_.steps(arguments_.mode());
    std::erase_if(steps, [&](ModeStep step) { return step.number <= last_; });
    if (last_ < 0 && steps.size() > static_cast<std::size_t>(arguments_.lines)) {
      steps.erase(steps.begin(), steps.end() - arguments_.lines);
    }
    std::string text;
    for (const ModeStep step : steps) {
      text += arguments_.as_json ? json_line(step) : line(step, style);
      last_ = step.number;
    }
    return text;
  }

 private:
  // Asked for, else the losses; the names may still grow while the run is young.
  std::vector<std::string> names_at(ModeStep step) const {
    NameQuery query{.step = step, .mode = arguments_.mode()};
    if (arguments_.patterns.empty()) return loss_names(trial_, query);
    query.regex = arguments_.patterns;
    auto names = trial_.tensor_names(query);
    return names ? std::move(*names) : std::vector<std::string>{};
  }

  std::optional<double> number_of(const std::string& name, ModeStep step) const {
    const auto tensor = trial_.tensor(name);
    if (!tensor) return std::nullopt;
    const auto reduction = parse_reduction(arguments_.stat);
    if (reduction) {
      const auto value = tensor->reduction_value(step, *reduction, arguments_.worker);
      return value ? std::optional(*value) : std::nullopt;
    }
    const auto value = tensor->value(step, arguments_.worker);
    if (!value || value->dtype() == DType::kString) return std::nullopt;
    const auto numbers = stats(view_of(*value), {stat_});
    return numbers ? (*numbers)[stat_] : std::nullopt;
  }

  GlobalStep global_of(ModeStep step) const { return trial_.global_step(step).value_or(GlobalStep{step.number}); }

  std::string line(ModeStep step, const Style& style) const {
    std::string text = "step " + step_text(trial_, global_of(step));
    const std::vector<std::string> names = names_at(step);
    for (std::size_t i = 0; i < std::min(names.size(), kMaxColumns); ++i) {
      const auto number = number_of(names[i], step);
      const Cell cell = stat_cell(stat_, number);
      text += fmt::format("  {} {}", printable(names[i]), style.paint(cell.tone, cell.text));
    }
    if (names.size() > kMaxColumns) text += fmt::format("  and {} more", names.size() - kMaxColumns);
    return text + "\n";
  }

  std::string json_line(ModeStep step) const {
    const GlobalStep global = global_of(step);
    const ModeStep of_mode = trial_.mode_step(global).value_or(step);
    std::string text;
    JsonWriter json(&text);
    json.begin_object().key("global_step").value(global.number);
    json.key("mode").value(mode_name(of_mode.mode)).key("mode_step").value(of_mode.number);
    json.key("stat").value(arguments_.stat).key("values").begin_object();
    for (const std::string& name : names_at(step)) {
      json.key(name);
      if (const auto number = number_of(name, step)) {
        write_number(json, *number);
      } else {
        json.null();
      }
    }
    json.end_object().end_object();
    return text + "\n";
  }

  const Trial& trial_;
  const TailArguments& arguments_;
  Stat stat_;
  std::int64_t last_ = -1;
};

int finish(const std::string& how, const RunStatus& status, const TailArguments& arguments, int code) {
  if (!arguments.as_json) return answer(printable(how) + "\n", code);
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("end").value(run_state_name(status.state)).key("reason").value(how).end_object();
  return answer(text + "\n", code);
}

int follow(Trial& trial, const TailArguments& arguments) {
  Tail tail(trial, arguments);
  const Style style = Style::of(stdout);
  Patience patience(arguments.timeout_s);
  while (true) {
    const std::string text = tail.new_lines(style);
    if (!text.empty()) {
      if (const int code = answer(text); code != kSound) return code;
      patience.renew();
    }
    const RunStatus status = trial.run_status();
    if (status.state == RunState::kFailed || status.state == RunState::kPresumedDead) {
      return finish("the run is over, " + run_status_text(status), status, arguments, kFailed);
    }
    if (trial.loaded_all_steps()) return finish("the run ended", status, arguments, kSound);
    if (status.state == RunState::kRunning) patience.renew();
    if (patience.is_over()) {
      return finish(fmt::format("no sign of life for {} s", number_text(arguments.timeout_s)), status, arguments,
                    kFailed);
    }
    sleep_seconds(arguments.poll_s);
    if (const Status refreshed = trial.refresh(); !refreshed) return fail(refreshed.error(), arguments.as_json);
  }
}

int tail_run(const TailArguments& arguments) {
  auto trial = wait_for_trial({.dir = arguments.dir, .timeout_s = arguments.timeout_s, .poll_s = arguments.poll_s});
  if (!trial) return fail(trial.error(), arguments.as_json);
  if (const Status known = check_worker(*trial, arguments.worker); !known)
    return fail(known.error(), arguments.as_json);
  if (auto names = trial->tensor_names({.regex = arguments.patterns}); !names) {
    return fail(names.error(), arguments.as_json);  // a pattern that Python would refuse
  }
  if (const Status refreshed = trial->refresh(); !refreshed) return fail(refreshed.error(), arguments.as_json);
  return follow(*trial, arguments);
}

}  // namespace

void add_tail_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "tail",
      "Follow a run: a line for each step with the losses, or the tensors asked for. Waits for a run that has not "
      "begun. Ends when the run ended, failed or is presumed dead, and says why.");
  const auto arguments = std::make_shared<TailArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("PATTERN", arguments->patterns, "Tensors with any of these in their name; else the losses")
      ->type_name("");
  add_stat(command, "--stat", &arguments->stat, "What is printed of a tensor");
  add_mode(command, arguments.get());
  add_worker(command, arguments.get());
  command->add_option("-n,--lines", arguments->lines, "Steps already there that are printed first")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--poll", arguments->poll_s, "Seconds between two looks")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--timeout", arguments->timeout_s, "Give up after so long without a sign of life")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--json", arguments->as_json, "Print one JSON object a line");
  command->footer(
      "Example:\n"
      "  tornasole tail runs/mnist loss accuracy --mode train\n"
      "\n"
      "Exit codes: 0 the run ended; 1 it failed, is presumed dead or gave no sign of life; 2 wrong use.");
  command->callback([arguments, exit_code] { *exit_code = tail_run(*arguments); });
}

}  // namespace tornasole::cli
