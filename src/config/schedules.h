#pragma once

// Schedules out of fields that may be missing.

#include <array>
#include <cstdint>
#include <initializer_list>

#include "config/config.h"

namespace tornasole::config {

inline constexpr std::size_t kMaxPatternBytes = 4096;
inline constexpr std::size_t kMaxPatterns = 1000;

// The schedule fields of one object of a file: those without and those with a mode's prefix.
struct ScheduleFields {
  SaveConfigMode every_mode = {};
  std::array<SaveConfigMode, 4> by_mode = {};  // by mode_index
  bool any() const noexcept;
};

// Each field from the first source that has it, else its default.
Schedule complete_schedule(std::initializer_list<const SaveConfigMode*> sources, std::int64_t default_interval);

// kInvalid for a pattern longer than the limit or that is not UTF-8.
Status check_pattern(const std::string& pattern);
// kInvalid for more patterns than the limit, those of when_nan and of every collection counted.
Status check_pattern_count(const Config& config);

}  // namespace tornasole::config
