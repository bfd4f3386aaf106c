#include "cli/trial_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "cli/command_output.h"
#include "cli/trial_paths.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kNamedDamage = 5;

std::vector<std::string> stat_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kStatCount; ++i) names.emplace_back(stat_name(static_cast<Stat>(i)));
  return names;
}

}  // namespace

Mode TrialArguments::mode() const noexcept {
  for (const Mode mode : kAllModes) {
    const std::string_view name = mode_name(mode);
    if (std::equal(name.begin(), name.end(), mode_text.begin(), mode_text.end(),
                   [](char a, char b) { return a == (b >= 'a' && b <= 'z' ? b - 'a' + 'A' : b); })) {
      return mode;
    }
  }
  return Mode::kGlobal;
}

std::optional<ModeStep> TrialArguments::mode_step() const noexcept {
  if (step < 0) return std::nullopt;
  return ModeStep{mode(), step};
}

void add_dir(CLI::App* command, TrialArguments* arguments) {
  command->add_option("DIR", arguments->dir, "The directory a run was written to")->required()->type_name("");
}

void add_step(CLI::App* command, TrialArguments* arguments) {
  command->add_option("--step", arguments->step, "A step of the mode; without --mode, a global step")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

void add_mode(CLI::App* command, TrialArguments* arguments) {
  command->add_option("--mode", arguments->mode_text, "Only steps of this mode")
      ->check(CLI::IsMember({"train", "eval", "predict", "global"}, CLI::ignore_case));
}

void add_worker(CLI::App* command, TrialArguments* arguments) {
  command->add_option("--worker", arguments->worker, "Only what this worker saved")->type_name("NAME");
}

void add_json(CLI::App* command, TrialArguments* arguments) {
  command->add_flag("--json", arguments->as_json, "Print JSON on standard output, errors included");
}

void add_stat(CLI::App* command, const std::string& flags, std::string* name, const std::string& help) {
  command->add_option(flags, *name, help)->check(CLI::IsMember(stat_names()))->capture_default_str();
}

void add_step_range(CLI::App* command, StepRange* range) {
  command->add_option("--from-step", range->first, "Only global steps from this one on")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_option("--to-step", range->end, "Only global steps before this one")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

Result<Trial> open_trial(const std::string& dir) {
  TORNASOLE_CHECK(check_trial_directory(dir));
  return Trial::open({.path = dir, .timeout_s = 0});
}

Status check_worker(const Trial& trial, const std::string& worker) {
  if (worker.empty()) return {};
  const std::vector<std::string> workers = trial.workers();
  if (std::find(workers.begin(), workers.end(), worker) != workers.end()) return {};
  return not_found_error("no worker \"{}\" in {}; workers: {}", worker, trial.path(), fmt::join(workers, ", "));
}

Result<std::vector<std::string>> names_matching(const Trial& trial, const std::vector<std::string>& patterns,
                                                Mode mode) {
  TORNASOLE_TRY(std::vector<std::string> names, trial.tensor_names({.mode = mode, .regex = patterns}));
  if (!names.empty() || patterns.empty()) return names;
  // A pattern that looks like a name gets the suggestions a name gets.
  if (patterns.size() == 1) {
    if (auto tensor = trial.tensor(patterns[0]); !tensor) return tensor.error();
  }
  return not_found_error("no tensor of {} matches {}", trial.path(), fmt::join(patterns, " or "));
}

void warn_of_damage(const Trial& trial) {
  const std::vector<Damage>& damage = trial.damage();
  for (std::size_t i = 0; i < std::min(damage.size(), kNamedDamage); ++i) {
    warn(fmt::format("{}: {}; it is left out", damage[i].path, damage[i].what));
  }
  if (damage.size() > kNamedDamage) {
    warn(fmt::format("{} more damaged files are left out; tornasole verify lists all", damage.size() - kNamedDamage));
  }
}

std::string mode_step_text(ModeStep step) {
  return step.mode == Mode::kGlobal ? "" : fmt::format("{} {}", mode_name(step.mode), step.number);
}

std::string step_text(const Trial& trial, GlobalStep step) {
  const auto mode_step = trial.mode_step(step);
  if (!mode_step || mode_step->mode == Mode::kGlobal) return fmt::format("{}", step.number);
  return fmt::format("{} ({})", step.number, mode_step_text(*mode_step));
}

}  // namespace tornasole::cli
