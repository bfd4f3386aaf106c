#include "config/schedules.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/errors.h"
#include "base/utf8.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

template <auto Member, typename Target>
void take_first(std::initializer_list<const SaveConfigMode*> sources, Target* target) {
  for (const SaveConfigMode* source : sources) {
    if (source->*Member) {
      *target = *(source->*Member);
      return;
    }
  }
}

Status check_fields(const SaveConfigMode& fields, std::string_view where) {
  if (fields.save_interval && *fields.save_interval < 1) {
    return invalid_error("save_interval{}: {} is not allowed; allowed: an integer of at least 1", where,
                         *fields.save_interval);
  }
  if (!fields.when_nan) return {};
  for (const std::string& pattern : *fields.when_nan) {
    if (auto checked = check_pattern(pattern); !checked) {
      return invalid_error("when_nan{}: {}", where, checked.error().message);
    }
  }
  return {};
}

}  // namespace

bool ScheduleFields::any() const noexcept {
  return every_mode != SaveConfigMode{} || by_mode != std::array<SaveConfigMode, 4>{};
}

Schedule complete_schedule(std::initializer_list<const SaveConfigMode*> sources, std::int64_t default_interval) {
  Schedule schedule;
  schedule.save_interval = default_interval;
  take_first<&SaveConfigMode::save_interval>(sources, &schedule.save_interval);
  take_first<&SaveConfigMode::start_step>(sources, &schedule.start_step);
  take_first<&SaveConfigMode::end_step>(sources, &schedule.end_step);
  take_first<&SaveConfigMode::save_steps>(sources, &schedule.save_steps);
  take_first<&SaveConfigMode::when_nan>(sources, &schedule.when_nan);
  std::sort(schedule.save_steps.begin(), schedule.save_steps.end());
  schedule.save_steps.erase(std::unique(schedule.save_steps.begin(), schedule.save_steps.end()),
                            schedule.save_steps.end());
  return schedule;
}

Result<Schedules> make_schedules(const SaveConfig& config, std::int64_t default_interval) {
  const SaveConfigMode every_mode{config.save_interval, config.start_step, config.end_step, config.save_steps,
                                  config.when_nan};
  TORNASOLE_CHECK(check_fields(every_mode, ""));
  Schedules schedules;
  // Fields beside `modes` are for the modes not listed there; without any such field those stay unset.
  if (config.modes.empty() || every_mode != SaveConfigMode{}) {
    schedules.fill(complete_schedule({&every_mode}, default_interval));
  }
  for (const auto& [mode, fields] : config.modes) {
    if (std::find(kAllModes.begin(), kAllModes.end(), mode) == kAllModes.end()) {
      return invalid_error("modes: {} is not a mode; allowed: TRAIN, EVAL, PREDICT, GLOBAL", static_cast<int>(mode));
    }
    TORNASOLE_CHECK(check_fields(fields, " of mode " + std::string(mode_name(mode))));
    schedules[mode_index(mode)] = complete_schedule({&fields}, default_interval);
  }
  return schedules;
}

Status check_pattern(const std::string& pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return invalid_error("the pattern {}... has {} bytes; allowed: at most {}",
                         Json(pattern.substr(0, 40), 0).to_message(), pattern.size(), kMaxPatternBytes);
  }
  if (!is_valid_utf8(pattern)) {
    return invalid_error("the pattern {} is not allowed; allowed: UTF-8 text", Json(pattern, 0).to_message());
  }
  return {};
}

Status check_pattern_count(const Config& config) {
  std::size_t count = config.include_regex.size();
  // Collections inherit the watched patterns of the hook in every mode, so each text counts once.
  std::set<std::string_view> watched;
  for (const Schedule& schedule : config.schedules) watched.insert(schedule.when_nan.begin(), schedule.when_nan.end());
  for (const CollectionSettings& collection : config.collections) {
    count += collection.include_regex.size();
    for (const auto& schedule : collection.schedules) {
      if (schedule) watched.insert(schedule->when_nan.begin(), schedule->when_nan.end());
    }
  }
  count += watched.size();
  if (count > kMaxPatterns) {
    return invalid_error("{} patterns in include_regex and when_nan; allowed: at most {} in all", count, kMaxPatterns);
  }
  return {};
}

std::int64_t default_save_interval(Framework framework) noexcept { return framework == Framework::kXgboost ? 10 : 500; }

}  // namespace tornasole::config
