#include "cli/schedule_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "plan/schedule.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kShownSteps = 8;

std::string list_of(const std::vector<std::int64_t>& steps) {
  const std::size_t count = std::min(steps.size(), kShownSteps);
  return fmt::format("{}{}", fmt::join(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(count), ", "),
                     steps.size() > count ? ", ..." : "");
}

}  // namespace

std::string in_words(const config::Schedule& schedule) {
  config::Schedule regular = schedule;
  regular.save_steps.clear();
  const bool is_off = schedule.end_step && *schedule.end_step <= 0;
  const bool is_regular = plan::next_due(regular, 0) != std::numeric_limits<std::int64_t>::max();
  std::string words;
  if (is_regular) {
    words = schedule.save_interval == 1 ? "every step" : fmt::format("every {}", schedule.save_interval);
    if (schedule.start_step > 0) words += fmt::format(" from {}", schedule.start_step);
    if (schedule.end_step) words += fmt::format(" to {} (exclusive)", *schedule.end_step);
  }
  if (!is_off && !schedule.save_steps.empty()) {
    words += (words.empty() ? "only " : ", and ") + list_of(schedule.save_steps);
  }
  if (!schedule.when_nan.empty()) {
    words += fmt::format("{} when a tensor matching {} is not finite", words.empty() ? "only" : "; also",
                         fmt::join(schedule.when_nan, " or "));
  }
  return words.empty() ? "never" : words;
}

std::string in_words(const ReductionSpec& form) {
  std::vector<std::string> parts;
  for (const Reduction reduction : form.reductions) parts.push_back(reduction_config_text(reduction));
  if (form.save_raw_tensor) parts.emplace_back("raw");
  if (form.save_shape) parts.emplace_back("shape");
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace tornasole::cli
