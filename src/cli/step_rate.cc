#include "cli/step_rate.h"

#include <algorithm>

namespace tornasole::cli {

void StepRate::note(double now_s, std::int64_t last_step) {
  if (!arrivals_.empty() && last_step <= arrivals_.back().step) return;
  arrivals_.push_back({now_s, last_step});
  while (arrivals_.size() > kFewest && arrivals_[1].time_s < now_s - kWindowS) arrivals_.pop_front();
}

std::optional<double> StepRate::per_second(double now_s) const {
  if (arrivals_.size() < 2) return std::nullopt;
  const Arrival& first = arrivals_.front();
  const Arrival& last = arrivals_.back();
  const double spread_s = last.time_s - first.time_s;
  const double usual_s = spread_s / static_cast<double>(arrivals_.size() - 1);
  const double until_s = std::max(last.time_s, now_s - usual_s);
  if (until_s <= first.time_s) return std::nullopt;
  return static_cast<double>(last.step - first.step) / (until_s - first.time_s);
}

}  // namespace tornasole::cli
