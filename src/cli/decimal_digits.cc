#include "cli/decimal_digits.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tornasole::cli {
namespace {

constexpr int kAllPlaces = 2000;  // more than any double has
constexpr double kPositionalFrom = 1e-4;
constexpr double kScientificFrom = 1e16;

// The digits of a magnitude: d.ddd * 10^exponent, no trailing zeros.
struct Digits {
  std::string digits;
  int exponent = 0;
};

Digits parse_scientific(std::string_view text) {
  Digits result;
  const std::size_t e = text.find('e');
  for (const char c : text.substr(0, e)) {
    if (c != '.') result.digits += c;
  }
  result.exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  result.digits.erase(result.digits.find_last_not_of('0') + 1);
  if (result.digits.empty()) result.digits = "0";
  return result;
}

template <typename... Precision>
Digits digits_of(double value, Precision... precision) {
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific, precision...);
  return parse_scientific({buffer.data(), end.ptr});
}

struct SmallFloat {
  int mantissa_bits;  // the hidden one included
  int min_exponent;   // of the unit of the smallest numbers
};

constexpr SmallFloat small_float(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat16: return {11, -24};
    case DType::kBfloat16: return {8, -133};
    case DType::kFloat8E5m2: return {3, -16};
    case DType::kFloat8E4m3fn: return {4, -9};
    default: return {0, 0};
  }
}

// C++ has no shortest text for these types: the first number of digits that stays within half a unit on either side.
Digits shortest_small(double value, SmallFloat type) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - type.mantissa_bits, type.min_exponent);
  const double mantissa = std::ldexp(value, -unit);
  const bool is_even = std::fmod(mantissa, 2) == 0;
  const bool is_power = mantissa == std::ldexp(1.0, type.mantissa_bits - 1) && unit > type.min_exponent;
  const double above = value + std::ldexp(0.5, unit);
  const double below = value - std::ldexp(is_power ? 0.25 : 0.5, unit);
  for (int places = 0; places < 17; ++places) {
    Digits digits = digits_of(value, places);
    const double back = std::strtod(
        fmt::format("{}e{}", digits.digits, digits.exponent + 1 - static_cast<int>(digits.digits.size())).c_str(),
        nullptr);
    if (is_even ? back >= below && back <= above : back > below && back < above) return digits;
  }
  return digits_of(value, 17);
}

Digits shortest(double magnitude, DType dtype) {
  if (magnitude == 0) return {"0", 0};
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) {
    std::array<char, 64> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<float>(magnitude),
                                   std::chars_format::scientific);
    return parse_scientific({buffer.data(), end.ptr});
  }
  const SmallFloat type = small_float(dtype);
  return type.mantissa_bits == 0 ? digits_of(magnitude) : shortest_small(magnitude, type);
}

// Exactly rounded at a number of places after the point, whatever the shortest text would be.
std::string fixed_text(double magnitude, int places) {
  std::array<char, 400> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, std::chars_format::fixed, places);
  return {buffer.data(), end.ptr};
}

std::string_view sign_of(double value) noexcept { return std::signbit(value) ? "-" : ""; }

}  // namespace

DecimalText positional(double value, DType dtype, int places) {
  const double magnitude = std::fabs(value);
  const Digits digits = shortest(magnitude, dtype);
  const int after_point = static_cast<int>(digits.digits.size()) - 1 - digits.exponent;
  DecimalText text{.whole = std::string(sign_of(value)), .fraction = {}};
  if (after_point > places) {
    const std::string fixed = fixed_text(magnitude, places);
    const std::size_t point = fixed.find('.');
    text.whole += fixed.substr(0, point);
    if (point != std::string::npos) text.fraction = fixed.substr(point + 1);
    text.fraction.erase(text.fraction.find_last_not_of('0') + 1);
    return text;
  }
  std::string all = digits.digits;
  if (after_point < 0) all.append(static_cast<std::size_t>(-after_point), '0');
  const auto fraction_size = static_cast<std::size_t>(std::max(after_point, 0));
  if (all.size() <= fraction_size) all.insert(0, fraction_size + 1 - all.size(), '0');
  text.whole += all.substr(0, all.size() - fraction_size);
  text.fraction = all.substr(all.size() - fraction_size);
  return text;
}

DecimalText positional_exactly(double value, DType dtype, int places) {
  DecimalText text = positional(value, dtype, places);
  if (text.fraction.empty()) text.whole = std::string(sign_of(value)) + fixed_text(std::fabs(value), 0);
  return text;
}

DecimalText scientific(double value, DType dtype, int places) {
  const double magnitude = std::fabs(value);
  Digits digits = shortest(magnitude, dtype);
  if (static_cast<int>(digits.digits.size()) - 1 > places) digits = digits_of(magnitude, places);
  return {.whole = std::string(sign_of(value)) + digits.digits[0],
          .fraction = digits.digits.substr(1),
          .exponent = digits.exponent};
}

DecimalText scientific_exactly(double value, int places) {
  const Digits digits = digits_of(std::fabs(value), places);
  DecimalText text{.whole = std::string(sign_of(value)) + digits.digits[0],
                   .fraction = digits.digits.substr(1),
                   .exponent = digits.exponent};
  text.fraction.resize(static_cast<std::size_t>(places), '0');
  return text;
}

std::string exponent_text(int exponent, int min_digits) {
  return fmt::format("e{}{:0{}d}", exponent < 0 ? '-' : '+', std::abs(exponent), min_digits);
}

std::string scalar_text(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::fabs(value);
  if (magnitude == 0 || (magnitude >= kPositionalFrom && magnitude < kScientificFrom)) {
    const DecimalText text = positional(value, dtype, kAllPlaces);
    return text.whole + "." + (text.fraction.empty() ? "0" : text.fraction);
  }
  const DecimalText text = scientific(value, dtype, kAllPlaces);
  return text.whole + (text.fraction.empty() ? "" : "." + text.fraction) + exponent_text(text.exponent);
}

double rounded_to(double value, DType dtype) noexcept {
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) return static_cast<double>(static_cast<float>(value));
  const SmallFloat type = small_float(dtype);
  if (type.mantissa_bits == 0 || value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - type.mantissa_bits, type.min_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

}  // namespace tornasole::cli
