#pragma once

// One width and one form for all elements that are printed together, chosen as NumPy chooses them.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "cli/element_reader.h"

namespace tornasole::cli {

inline constexpr int kPrintedPlaces = 8;  // digits after the point

// How floating-point numbers of one array are printed.
class RealFormat {
 public:
  // `always_signed` is for imaginary parts.
  RealFormat(std::span<const double> values, DType dtype, bool always_signed);
  std::string text(double value) const;

 private:
  void fit_scientific(std::span<const double> values);
  void fit_positional(std::span<const double> values);
  void fit_non_finite(std::span<const double> values);
  const char* sign_for(double value) const noexcept { return is_signed_ && !std::signbit(value) ? "+" : ""; }

  DType dtype_;
  bool is_signed_;
  bool is_scientific_ = false;
  std::size_t left_ = 0;   // columns before the point
  std::size_t right_ = 0;  // columns after it
  int places_ = kPrintedPlaces;
  int exponent_digits_ = 2;
};

// The words of the elements at `shown`, all of one width where NumPy pads them.
class ElementFormat {
 public:
  ElementFormat(const ElementReader& reader, std::span<const std::int64_t> shown);
  std::string word(std::int64_t position) const;

 private:
  const ElementReader& reader_;
  RealFormat real_;
  RealFormat imaginary_;
  std::size_t integer_width_ = 0;
};

// An element alone: 0.1, True, (1+2j), 'text'.
std::string element_text(const ElementReader& reader, std::int64_t position);

}  // namespace tornasole::cli
