#pragma once

// The loops behind reduce(): each makes one pass over a tensor of one family of types and returns plain numbers. What
// becomes of the numbers (which reduction, which result type) is decided in reduce.cc; how they are computed is known
// here alone, so a faster implementation replaces these functions and nothing else.
//
// Every tensor passed in has at least one element.

#include <cmath>
#include <cstdint>

#include "tornasole/tensor.h"

namespace tornasole::reduce {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

// value * 2^exponent: a number beside which no double overflows or underflows.
struct Scaled {
  double value = 0;
  std::int64_t exponent = 0;
  double to_double() const noexcept;
  Scaled square_root() const noexcept;  // the exponent is even
};
Scaled operator+(Scaled a, Scaled b) noexcept;

// What is wanted of a pass besides sums.
struct RealNeeds {
  bool extremes = false;  // and zeros; the rest of the needs, and one element alone, bring them too
  bool variance = false;
  bool abs_variance = false;
  bool product = false;
  bool counts = false;  // of NaN and infinities: without it the pass may stop at the first NaN
};
// Floating-point tensors; of complex ones, the moduli. With a NaN among the elements only the counts are meant.
struct RealSummary {
  std::int64_t count = 0;
  std::int64_t zeros = 0, nan = 0, positive_infinite = 0, negative_infinite = 0;
  double min = 0, max = 0;
  double abs_min = 0, abs_max = 0;
  Scaled sum = {}, abs_sum = {};
  Scaled squares = {};                      // sum of them; the exponent is even
  Scaled variance = {}, abs_variance = {};  // population variance; the exponent is even; NaN with an infinity
  Scaled product = {};                      // of all elements; NaN where infinities meet zeros
  bool has_nan() const noexcept { return nan > 0; }
  bool has_infinity() const noexcept { return positive_infinite + negative_infinite > 0; }
};
// Up to `threads` threads share a large tensor; their number does not change the result.
RealSummary summarize_real(const TensorView& tensor, const RealNeeds& needs, int threads = 1);
// True if an odd number of elements has its sign set.
bool is_sign_odd(const TensorView& tensor);
// Not for NaN among the elements.
double median_of_real(const TensorView& tensor, bool of_absolute);

// Integers and bools (as 0 and 1); exact but for squares and variances.
struct IntNeeds {
  bool variance = false;
  bool abs_variance = false;
};
struct IntSummary {
  std::int64_t count = 0;
  std::int64_t zeros = 0;
  Int128 min = 0, max = 0;
  std::uint64_t abs_min = 0, abs_max = 0;
  Int128 sum = 0;
  Int128 abs_sum = 0;
  double squares = 0;
  double variance = 0, abs_variance = 0;  // population variance, if it was needed
};
IntSummary summarize_int(const TensorView& tensor, const IntNeeds& needs);
std::uint64_t product_of_int(const TensorView& tensor, bool of_absolute);  // modulo 2^64
double median_of_int(const TensorView& tensor, bool of_absolute);

struct ComplexProduct {
  double real = 0, imaginary = 0;
  std::int64_t exponent = 0;
};
ComplexProduct product_of_complex(const TensorView& tensor);

}  // namespace tornasole::reduce
