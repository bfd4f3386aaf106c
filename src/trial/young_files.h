#pragma once

// A damaged file that changed a moment ago may be one that is still being written.

namespace tornasole::trial {

inline constexpr double kYoungSeconds = 5;

// A time in the future says nothing, so such a file is not young.
constexpr bool is_young(double modified_s, double now_s) noexcept {
  const double age_s = now_s - modified_s;
  return age_s < kYoungSeconds && age_s > -kYoungSeconds;
}

}  // namespace tornasole::trial
