#pragma once

// When a schedule is due. Pure functions of numbers.

#include <cstdint>

#include "config/config.h"

namespace tornasole::plan {

// A listed step is, and a multiple of the interval from the start up to the end; nothing is when the end is 0 or less.
bool is_due(const config::Schedule& schedule, std::int64_t mode_step) noexcept;
// The first due mode step at or after `from`; INT64_MAX if there is none.
std::int64_t next_due(const config::Schedule& schedule, std::int64_t from) noexcept;
// A later mode step: at all of those from `mode_step` up to it the schedule is due, or at none; INT64_MAX: for ever.
std::int64_t same_until(const config::Schedule& schedule, std::int64_t mode_step) noexcept;

}  // namespace tornasole::plan
