#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "config/locations.h"
#include "config/problems.h"
#include "trial/trial_state.h"

namespace tornasole::trial {
namespace {

constexpr double kLongestSeconds = 1e9;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// An option, else TORNASOLE_<suffix> or SMDEBUG_<suffix> or the suffix alone, as it was once called, else the default.
Result<std::int64_t> count_setting(const std::optional<std::int64_t>& option, const config::Environment& environment,
                                   std::string_view suffix, std::int64_t fallback) {
  std::int64_t number = option.value_or(fallback);
  if (!option) {
    auto text = environment.get_twin(suffix);
    if (!text) text = environment.get(suffix);
    if (!text) return fallback;
    const std::string_view digits = trimmed(*text);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      return invalid_error("SMDEBUG_{} or TORNASOLE_{} is \"{}\", not a whole number", suffix, suffix,
                           config::shown_key(*text));
    }
  }
  if (number < 0) return invalid_error("{} is {}; at least 0 is needed", suffix, number);
  return number;
}

Status check_seconds(const char* what, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0 && seconds <= kLongestSeconds) return {};
  return invalid_error("{} is {}; 0 to {:.0e} seconds are possible", what, seconds, kLongestSeconds);
}

Status check_range(const TrialOptions& options) {
  if (options.first_step && *options.first_step < 0) {
    return invalid_error("first_step is {}; at least 0 is needed", *options.first_step);
  }
  if (options.end_step && *options.end_step < 0) {
    return invalid_error("end_step is {}; at least 0 is needed", *options.end_step);
  }
  if (options.first_step && options.end_step && *options.end_step <= *options.first_step) {
    return invalid_error("end_step {} is not after first_step {}", *options.end_step, *options.first_step);
  }
  return {};
}

std::string last_component(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

Status check_waiting(std::optional<double> timeout_s, double poll_s) {
  if (timeout_s) TORNASOLE_CHECK(check_seconds("timeout_s", *timeout_s));
  return check_seconds("poll_s", poll_s);
}

Result<TrialSettings> make_settings(const TrialOptions& options, const config::Environment& environment) {
  TORNASOLE_CHECK(check_range(options));
  TrialSettings settings{.range = {options.first_step, options.end_step},
                         .on_damage = options.on_damage,
                         .check = options.check,
                         .cache = options.cache,
                         .timeout_s = options.timeout_s,
                         .poll_s = options.poll_s,
                         .sleep = options.sleep};
  const std::string given(trimmed(options.path));
  if (given.empty()) return invalid_error("the path of a trial is empty");
  TORNASOLE_TRY(settings.path, config::absolute_location(config::expand_home(given, environment)));
  settings.name = options.name.empty() ? last_component(settings.path) : options.name;
  TORNASOLE_CHECK(check_waiting(settings.timeout_s, settings.poll_s));
  TORNASOLE_TRY(settings.incomplete_step_window,
                count_setting(options.incomplete_step_window, environment, "INCOMPLETE_STEP_WAIT_WINDOW", 1000));
  TORNASOLE_TRY(settings.missing_file_retries,
                count_setting(options.missing_file_retries, environment, "MISSING_EVENT_FILE_RETRY_LIMIT", 100));
  TORNASOLE_TRY(const std::int64_t delay, count_setting({}, environment, "TRAINING_END_DELAY_REFRESH", 1));
  settings.end_delay_s = options.end_delay_s.value_or(static_cast<double>(delay));
  TORNASOLE_CHECK(check_seconds("end_delay_s", settings.end_delay_s));
  return settings;
}

}  // namespace tornasole::trial
