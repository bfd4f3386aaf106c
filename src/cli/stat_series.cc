#include "cli/stat_series.h"

#include <algorithm>

#include "base/errors.h"
#include "cli/progress_bar.h"

namespace tornasole::cli {
namespace {

// Of one name, worker and step: what is stored beats what is worked out.
struct Candidate {
  double value = 0;
  bool is_stored = false;
};

// Of one element the sum is itself; complex numbers have no sum, so their magnitude.
std::optional<double> scalar_of(const TensorView& view) {
  const auto found = stats(view, {Stat::kSum, Stat::kL2});
  if (!found) return std::nullopt;
  const auto sum = (*found)[Stat::kSum];
  return sum ? sum : (*found)[Stat::kL2];
}

}  // namespace

std::optional<Reduction> reduction_of(Stat stat) noexcept {
  const std::string_view name = stat_name(stat);
  return parse_reduction(name);
}

std::optional<Stat> stat_of(Reduction reduction) noexcept {
  if (is_norm(reduction.kind)) reduction.of_absolute = false;  // norms look at magnitudes anyway
  return parse_stat(reduction_name(reduction));
}

Result<StatSeries> series_of(const Trial& trial, const SeriesQuery& query) {
  StatSeries series;
  if (query.names.empty()) return series;  // a sweep of no names would be one of all
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, Candidate>> found;
  const auto steps = trial.steps(query.mode, StepFilter::kIncludingIncomplete);
  ProgressBar progress("reading", steps.size());
  std::int64_t steps_done = 0;
  std::int64_t current = -1;
  const SweepQuery sweep{.names = query.names,
                         .mode = query.mode,
                         .steps = StepFilter::kIncludingIncomplete,
                         .first_step = query.first_step,
                         .end_step = query.end_step,
                         .worker = query.worker,
                         .values = true,
                         .reductions = true};
  TORNASOLE_CHECK(trial.sweep(sweep, [&](const SweptValue& swept) {
    if (swept.global_step.number != current) {
      current = swept.global_step.number;
      progress.update(static_cast<std::uint64_t>(++steps_done));
    }
    if (swept.error != nullptr) {
      if (series.unreadable++ == 0) series.first_error = swept.error->message;
      return true;
    }
    const std::int64_t x = query.mode == Mode::kGlobal ? swept.global_step.number : swept.step.number;
    auto& line = found[{std::string(swept.name), std::string(swept.worker)}];
    if (swept.reduction) {
      if (stat_of(*swept.reduction) != query.stat) return true;
      if (const auto value = scalar_of(*swept.value)) line[x] = {*value, true};
      return true;
    }
    const auto numbers = stats(*swept.value, {query.stat});
    if (!numbers || !(*numbers)[query.stat]) return true;
    auto& candidate = line[x];
    if (!candidate.is_stored) candidate.value = *(*numbers)[query.stat];
    return true;
  }));
  for (const auto& [key, line] : found) {
    std::vector<PlotPoint> points;
    for (const auto& [x, candidate] : line) points.push_back({static_cast<double>(x), candidate.value});
    if (!points.empty()) series.lines.emplace(key, std::move(points));
  }
  return series;
}

}  // namespace tornasole::cli
