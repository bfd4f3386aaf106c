#pragma once

// Floating-point numbers as decimal digits: the fewest that read back as the same number of its type, cut to a number
// of places with correct rounding. NumPy prints arrays by these rules.

#include <cstdint>
#include <string>

#include "tornasole/tensor.h"

namespace tornasole::cli {

// A finite number as two halves of text around a point, and an exponent if it was asked for.
struct DecimalText {
  std::string whole;     // with its sign
  std::string fraction;  // without trailing zeros, unless they were asked for
  int exponent = 0;      // power of ten; 0 for positional text
};

// The element type decides how many digits are needed; a complex type means its parts.
// At most `places` digits after the point, without trailing zeros.
DecimalText positional(double value, DType dtype, int places);
// The same, but digits before the point are those of the number itself, not zeros after the shortest text's last.
DecimalText positional_exactly(double value, DType dtype, int places);
DecimalText scientific(double value, DType dtype, int places);
// Exactly `places` digits, of the number itself: those beyond the shortest text are not zeros but what follows.
DecimalText scientific_exactly(double value, int places);

// One number alone, as NumPy prints a scalar: 0.1, 1.0, 1e-05, 1.5e+20, nan, -inf.
std::string scalar_text(double value, DType dtype);
// "e-05": a sign and at least `min_digits` digits.
std::string exponent_text(int exponent, int min_digits = 2);

// The value rounded to the precision of the type, as an operation on two elements of it would be.
double rounded_to(double value, DType dtype) noexcept;

}  // namespace tornasole::cli
