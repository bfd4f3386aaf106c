#pragma once

// LiveRun: what `watch` knows of a run, brought up to date by every look.
//
//   in:  a trial that may still be written
//   out: LiveState; what has changed among the findings of `check`
//   who: watch_command.cc
//
// New steps are read once for the losses. `check` looks at the whole trial each time, so it runs the less often the
// longer it takes: never more than a tenth of one core.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/plot_scale.h"
#include "cli/step_rate.h"
#include "tools/run_health.h"
#include "tornasole/check.h"
#include "tornasole/trial.h"

namespace tornasole::cli {

struct LossLine {
  std::string name;
  Mode mode = Mode::kGlobal;
  std::vector<PlotPoint> points = {};  // over global steps; thinned out when there are many, the newest is kept
};

struct LiveState {
  RunStatus status = {};
  std::int64_t steps = 0;       // complete ones
  std::int64_t last_step = -1;  // global
  std::optional<double> steps_per_s = {};
  std::vector<LossLine> losses = {};
  tools::RunHealth health = {};
  CheckReport report = {};         // of the last check
  std::int64_t checked_step = -1;  // up to where it looked
  double check_s = 0;              // how long it took
};

// When `check` may run again.
class CheckPace {
 public:
  bool is_due(double now_s) const noexcept { return now_s >= next_s_; }
  // It ended now and took so much of processors.
  void note(double now_s, double processor_s) noexcept { next_s_ = now_s + kRest * processor_s; }

 private:
  static constexpr double kRest = 9;
  double next_s_ = 0;
};

class LiveRun {
 public:
  LiveRun(Trial* trial, CheckOptions options) : trial_(*trial), options_(std::move(options)) {}

  // Takes in what the trial knows now.
  Status look();
  // Whether a check is worth it: there are steps it has not seen, and the last one is long enough ago.
  bool is_check_due() const;
  Status check();
  const LiveState& state() const noexcept { return state_; }

 private:
  Status read_losses();

  Trial& trial_;
  CheckOptions options_;
  LiveState state_;
  StepRate rate_;
  CheckPace pace_;
  std::map<std::pair<std::string, Mode>, std::size_t> places_;  // of losses
  std::int64_t next_step_ = 0;                                  // the first whose losses were not read
};

}  // namespace tornasole::cli
