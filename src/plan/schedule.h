#pragma once

// When a schedule is due. Pure functions of numbers.

#include <cstdint>

#include "config/config.h"

namespace tornasole::plan {

// capture 4.3, rows 2 to 5.
bool is_due(const config::Schedule& schedule, std::int64_t mode_step) noexcept;
// The first due mode step at or after `from`; INT64_MAX if there is none.
std::int64_t next_due(const config::Schedule& schedule, std::int64_t from) noexcept;

}  // namespace tornasole::plan
