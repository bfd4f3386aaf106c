#include "base/clock.h"

#include <ctime>

namespace tornasole {
namespace {

class SystemClock final : public Clock {
 public:
  double wall_seconds() const noexcept override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  std::int64_t monotonic_ns() const noexcept override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace

const Clock& system_clock() noexcept {
  static const SystemClock kClock;
  return kClock;
}

}  // namespace tornasole
