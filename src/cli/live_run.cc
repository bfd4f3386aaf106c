#include "cli/live_run.h"

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/errors.h"
#include "cli/loss_names.h"
#include "tornasole/stats.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxPoints = 4000;
constexpr Reduction kMean = {.kind = ReductionKind::kMean};

double now_s() { return static_cast<double>(system_clock().monotonic_ns()) * 1e-9; }

// Of all threads of this process.
double processor_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The value where it was saved, else its mean.
void choose_form(StoredForms* forms) {
  const bool has_mean = std::ranges::find(forms->reductions, kMean) != forms->reductions.end();
  forms->reductions.clear();
  if (!forms->value && has_mean) forms->reductions = {kMean};
}

// Every other one, but the newest.
void thin_out(std::vector<PlotPoint>* points) {
  if (points->size() <= kMaxPoints) return;
  std::vector<PlotPoint> kept;
  for (std::size_t i = (points->size() - 1) % 2; i < points->size(); i += 2) kept.push_back((*points)[i]);
  *points = std::move(kept);
}

}  // namespace

Status LiveRun::look() {
  state_.status = trial_.run_status();
  state_.steps = static_cast<std::int64_t>(trial_.steps().size());
  state_.last_step = trial_.last_complete_step();
  rate_.note(now_s(), state_.last_step);
  state_.steps_per_s = rate_.per_second(now_s());
  if (auto health = tools::read_run_health(trial_.path())) state_.health = std::move(*health);
  return read_losses();
}

Status LiveRun::read_losses() {
  if (state_.last_step < next_step_) return {};
  const SweepQuery query{.names = loss_names(trial_),
                         .steps = StepFilter::kComplete,
                         .first_step = next_step_,
                         .select = [](std::string_view /*name*/, StoredForms* forms) { choose_form(forms); }};
  next_step_ = state_.last_step + 1;
  if (query.names.empty()) return {};  // a sweep of no names would be one of all
  return trial_.sweep(query, [this](const SweptValue& swept) {
    if (swept.value == nullptr || swept.value->dtype() == DType::kString) return true;
    const auto numbers = stats(*swept.value, {Stat::kMean});
    const std::optional<double> mean = numbers ? (*numbers)[Stat::kMean] : std::nullopt;
    if (!mean) return true;
    const auto [place, is_new] = places_.try_emplace({std::string(swept.name), swept.step.mode}, state_.losses.size());
    if (is_new) state_.losses.push_back({.name = std::string(swept.name), .mode = swept.step.mode});
    std::vector<PlotPoint>& points = state_.losses[place->second].points;
    const auto x = static_cast<double>(swept.global_step.number);
    // Of several workers the first speaks.
    if (points.empty() || points.back().x < x) points.push_back({x, *mean});
    thin_out(&points);
    return true;
  });
}

bool LiveRun::is_check_due() const { return state_.checked_step < state_.last_step && pace_.is_due(now_s()); }

Status LiveRun::check() {
  const double begun_s = now_s();
  const double used_s = processor_s();
  TORNASOLE_TRY(state_.report, tornasole::check(trial_, options_));
  state_.checked_step = trial_.last_complete_step();
  state_.check_s = now_s() - begun_s;
  pace_.note(now_s(), processor_s() - used_s);
  return {};
}

}  // namespace tornasole::cli
