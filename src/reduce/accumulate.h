#pragma once

// Sums that keep their precision over any number of elements: inside a block, lanes of plain doubles; across blocks,
// a compensated sum.

#include <array>
#include <cmath>
#include <cstddef>

namespace tornasole::reduce {

// Neumaier's sum: the bits that an addition drops are collected beside it.
class CompensatedSum {
 public:
  void add(double term) noexcept {
    const double next = high_ + term;
    low_ += std::fabs(high_) >= std::fabs(term) ? (high_ - next) + term : (term - next) + high_;
    high_ = next;
  }
  void add(const CompensatedSum& other) noexcept {
    add(other.high_);
    if (std::isfinite(other.high_)) low_ += other.low_;
  }
  // After an infinity the dropped bits are NaN, the sum itself is right.
  double value() const noexcept { return std::isfinite(high_) ? high_ + low_ : high_; }

 private:
  double high_ = 0;
  double low_ = 0;
};

// As many as keep two 512-bit units busy; the compiler maps them to the registers there are.
inline constexpr std::size_t kLanes = 8;
using Lanes = std::array<double, kLanes>;

inline void add_lanes(CompensatedSum& sum, const Lanes& lanes) noexcept {
  for (const double lane : lanes) sum.add(lane);
}

}  // namespace tornasole::reduce
