#pragma once

// Products whose size no double holds: a mantissa and an exponent.

#include <bit>
#include <cmath>
#include <cstdint>

#include "reduce/kernels.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {

// Mantissas multiplied, exponents added. The product's rounding errors are carried along, so that its relative error
// does not grow with the number of elements.
class RunningProduct {
 public:
  void multiply(double x) noexcept {
    int exponent = 0;
    const double factor = std::frexp(x, &exponent);
    const double next = product_ * factor;
    dropped_ = dropped_ * factor + std::fma(product_, factor, -next);
    product_ = next;
    exponent_ += exponent;
    if (++since_normal_ == 256) normalize();
  }
  // A block of floats, whose rounding errors are far below what a float result shows.
  void multiply(const BlockProduct& block, std::size_t count) noexcept {
    constexpr std::uint64_t kMantissaBits = (std::uint64_t{1} << 52) - 1;
    double product = 1;  // of eight numbers in [1, 2)
    std::int64_t exponent = -1023 * static_cast<std::int64_t>(count);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto bits = std::bit_cast<std::uint64_t>(block.mantissa[lane]);
      product *= std::bit_cast<double>((bits & kMantissaBits) | (std::uint64_t{1023} << 52));
      exponent += static_cast<std::int64_t>((bits >> 52) + block.exponent[lane]) - 1023;
    }
    multiply((block.sign >> 63) != 0 ? -product : product);
    exponent_ += exponent;
  }
  void multiply(RunningProduct& other) noexcept {
    const Scaled factor = other.value();
    multiply(factor.value);
    exponent_ += factor.exponent;
  }
  Scaled value() noexcept {
    normalize();
    return {product_ + dropped_, exponent_};
  }

 private:
  // A factor is at least one half, so 256 of them cannot underflow.
  void normalize() noexcept {
    since_normal_ = 0;
    int exponent = 0;
    product_ = std::frexp(product_, &exponent);
    dropped_ = std::ldexp(dropped_, -exponent);
    exponent_ += exponent;
  }
  double product_ = 1;
  double dropped_ = 0;
  std::int64_t exponent_ = 0;
  int since_normal_ = 0;
};

}  // namespace tornasole::reduce
