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

// Floating-point tensors; of complex ones, the moduli. With a NaN among the elements only count and has_nan are set.
struct RealSummary {
  std::int64_t count = 0;
  bool has_nan = false;
  bool has_infinity = false;
  double min = 0, max = 0;
  double abs_min = 0, abs_max = 0;
  Scaled sum = {}, abs_sum = {};
  Scaled squares = {};  // sum of them; the exponent is even
};
RealSummary summarize_real(const TensorView& tensor);
// Population variance about the mean, of the elements or of their magnitudes; the exponent is even. Not for NaN or
// infinity among the elements.
Scaled variance_of_real(const TensorView& tensor, const RealSummary& summary, bool of_absolute);
// Not for NaN or infinity among the elements, nor for complex ones.
Scaled product_of_real(const TensorView& tensor);
// True if an odd number of elements has its sign set.
bool is_sign_odd(const TensorView& tensor);
// Not for NaN among the elements.
double median_of_real(const TensorView& tensor, bool of_absolute);

// Integers and bools (as 0 and 1); exact but for `squares`.
struct IntSummary {
  std::int64_t count = 0;
  Int128 min = 0, max = 0;
  std::uint64_t abs_min = 0, abs_max = 0;
  Int128 sum = 0;
  Int128 abs_sum = 0;
  double squares = 0;
};
IntSummary summarize_int(const TensorView& tensor);
double variance_of_int(const TensorView& tensor, const IntSummary& summary, bool of_absolute);
std::uint64_t product_of_int(const TensorView& tensor, bool of_absolute);  // modulo 2^64
double median_of_int(const TensorView& tensor, bool of_absolute);

struct ComplexProduct {
  double real = 0, imaginary = 0;
  std::int64_t exponent = 0;
};
ComplexProduct product_of_complex(const TensorView& tensor);

}  // namespace tornasole::reduce
