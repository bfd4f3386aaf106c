#pragma once

// A statistic of tensors over the steps of a trial, in one sweep: the stored reduction where there is one, else worked
// out from the value.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/plot_scale.h"
#include "tornasole/stats.h"
#include "tornasole/trial.h"

namespace tornasole::cli {

// The stored reduction that a statistic is, if there is one.
std::optional<Reduction> reduction_of(Stat stat) noexcept;
// "mean", "abs_l2": of a stored reduction.
std::optional<Stat> stat_of(Reduction reduction) noexcept;

struct SeriesQuery {
  std::vector<std::string> names = {};
  Stat stat = Stat::kMean;
  Mode mode = Mode::kGlobal;  // kGlobal: x is the global step, else the step of the mode
  std::string worker = {};    // empty: a series for each worker
  std::optional<std::int64_t> first_step = {}, end_step = {};
};

struct StatSeries {
  // By name and worker, each by rising step.
  std::map<std::pair<std::string, std::string>, std::vector<PlotPoint>> lines = {};
  std::int64_t unreadable = 0;  // values that could not be had
  std::string first_error = {};
};

// Shows progress on a terminal.
Result<StatSeries> series_of(const Trial& trial, const SeriesQuery& query);

}  // namespace tornasole::cli
