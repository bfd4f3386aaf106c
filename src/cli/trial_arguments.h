#pragma once

// What commands ask about a trial, parsed once for all: DIR, --step, --mode, --worker, --json; and the trial itself.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tornasole/result.h"
#include "tornasole/stats.h"
#include "tornasole/trial.h"

namespace tornasole::cli {

struct TrialArguments {
  std::string dir = {};
  std::int64_t step = -1;  // -1: none given
  std::string mode_text = {};
  std::string worker = {};
  bool as_json = false;

  Mode mode() const noexcept;  // kGlobal if none was given: steps are global
  std::optional<ModeStep> mode_step() const noexcept;
};

void add_dir(CLI::App* command, TrialArguments* arguments);
void add_step(CLI::App* command, TrialArguments* arguments);
void add_mode(CLI::App* command, TrialArguments* arguments);
void add_worker(CLI::App* command, TrialArguments* arguments);
void add_json(CLI::App* command, TrialArguments* arguments);
// --stat NAME, one of the names of statistics.
void add_stat(CLI::App* command, const std::string& flags, std::string* name, const std::string& help);
// --from-step and --to-step: global steps from the first to before the second.
struct StepRange {
  std::int64_t first = -1, end = -1;
  std::optional<std::int64_t> first_step() const { return first < 0 ? std::nullopt : std::optional(first); }
  std::optional<std::int64_t> end_step() const { return end < 0 ? std::nullopt : std::optional(end); }
};
void add_step_range(CLI::App* command, StepRange* range);

// Opens without waiting. The error says what the path is, if it is no trial: missing, a file, empty, something else, a
// directory above trials.
Result<Trial> open_trial(const std::string& dir);
// kNotFound unless the trial has that worker; an empty one is any.
Status check_worker(const Trial& trial, const std::string& worker);
// The names that any of the patterns is found in; kNotFound, with names that come near, if none is.
Result<std::vector<std::string>> names_matching(const Trial& trial, const std::vector<std::string>& patterns,
                                                Mode mode);
// Prints a warning for each damaged file of the trial (at most a few, then a count).
void warn_of_damage(const Trial& trial);

// "TRAIN 3", or "" for a step saved without a mode.
std::string mode_step_text(ModeStep step);
// "12 (TRAIN 3)" or "12".
std::string step_text(const Trial& trial, GlobalStep step);

}  // namespace tornasole::cli
