#pragma once

// StepRate: how fast a run goes, from when its steps were seen.

#include <cstdint>
#include <deque>
#include <optional>

namespace tornasole::cli {

class StepRate {
 public:
  // The newest step that is known at a time; both ascend.
  void note(double now_s, std::int64_t last_step);
  // Steps a second over the last half minute, or over the last two arrivals if they are rarer. Falls while nothing
  // comes for longer than usual. Nothing before a second arrival.
  std::optional<double> per_second(double now_s) const;

 private:
  struct Arrival {
    double time_s;
    std::int64_t step;
  };
  static constexpr double kWindowS = 30;
  static constexpr std::size_t kFewest = 3;
  std::deque<Arrival> arrivals_;
};

}  // namespace tornasole::cli
