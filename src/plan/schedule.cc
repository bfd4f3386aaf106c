#include "plan/schedule.h"

#include <algorithm>
#include <limits>

namespace tornasole::plan {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// The smallest multiple of `interval` that is at least `from`; kNever if it does not fit.
std::int64_t next_multiple(std::int64_t from, std::int64_t interval) noexcept {
  if (from <= 0) return from - from % interval;
  const std::int64_t remainder = from % interval;
  if (remainder == 0) return from;
  const std::int64_t gap = interval - remainder;
  return from > kNever - gap ? kNever : from + gap;
}

bool is_switched_off(const config::Schedule& schedule) noexcept {
  return schedule.end_step.has_value() && *schedule.end_step <= 0;
}

}  // namespace

bool is_due(const config::Schedule& schedule, std::int64_t mode_step) noexcept {
  if (is_switched_off(schedule)) return false;
  if (std::binary_search(schedule.save_steps.begin(), schedule.save_steps.end(), mode_step)) return true;
  if (mode_step < schedule.start_step) return false;
  if (schedule.end_step && mode_step >= *schedule.end_step) return false;
  return schedule.save_interval > 0 && mode_step % schedule.save_interval == 0;
}

std::int64_t next_due(const config::Schedule& schedule, std::int64_t from) noexcept {
  if (is_switched_off(schedule)) return kNever;
  std::int64_t next = kNever;
  const auto listed = std::lower_bound(schedule.save_steps.begin(), schedule.save_steps.end(), from);
  if (listed != schedule.save_steps.end()) next = *listed;
  if (schedule.save_interval > 0) {
    const std::int64_t regular = next_multiple(std::max(from, schedule.start_step), schedule.save_interval);
    if (!schedule.end_step || regular < *schedule.end_step) next = std::min(next, regular);
  }
  return next;
}

std::int64_t same_until(const config::Schedule& schedule, std::int64_t mode_step) noexcept {
  if (!is_due(schedule, mode_step)) return next_due(schedule, mode_step);
  const std::int64_t end = schedule.end_step.value_or(kNever);
  const bool is_at_each_step = schedule.save_interval == 1 && mode_step >= schedule.start_step && mode_step < end;
  return is_at_each_step ? end : mode_step + 1;
}

}  // namespace tornasole::plan
