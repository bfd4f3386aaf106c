#pragma once

#include <cstdint>

namespace tornasole {

// Time as a parameter, so that tests neither sleep nor depend on the machine's clock.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double wall_seconds() const noexcept = 0;        // since 1970; may jump
  virtual std::int64_t monotonic_ns() const noexcept = 0;  // never goes back; every limit is measured with it
};

const Clock& system_clock() noexcept;

}  // namespace tornasole
