#pragma once

// How one element of a floating-point or complex type becomes the double that is worked with.
//
// A load has: Raw, the element in memory; operator()(Raw); and kNeedsScaling, whether sums of squares may leave the
// range of a double, which only the types as wide as a double can do.

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "reduce/small_floats.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

struct LoadFloat32 {
  using Raw = float;
  static constexpr bool kNeedsScaling = false;
  double operator()(float raw) const noexcept { return static_cast<double>(raw); }
};
struct LoadFloat64 {
  using Raw = double;
  static constexpr bool kNeedsScaling = true;
  double operator()(double raw) const noexcept { return raw; }
};
struct LoadFloat16 {
  using Raw = std::uint16_t;
  static constexpr bool kNeedsScaling = false;
  double operator()(std::uint16_t raw) const noexcept { return static_cast<double>(float_from_half(raw)); }
};
struct LoadBfloat16 {
  using Raw = std::uint16_t;
  static constexpr bool kNeedsScaling = false;
  double operator()(std::uint16_t raw) const noexcept { return static_cast<double>(float_from_bfloat16(raw)); }
};
struct LoadE5m2 {
  using Raw = std::uint8_t;
  static constexpr bool kNeedsScaling = false;
  double operator()(std::uint8_t raw) const noexcept { return static_cast<double>(float_from_e5m2(raw)); }
};
struct LoadE4m3fn {
  using Raw = std::uint8_t;
  static constexpr bool kNeedsScaling = false;
  double operator()(std::uint8_t raw) const noexcept { return static_cast<double>(float_from_e4m3fn(raw)); }
};

// The squares of floats neither overflow nor vanish in a double.
struct LoadModulus64 {
  using Raw = std::complex<float>;
  static constexpr bool kNeedsScaling = false;
  double operator()(Raw raw) const noexcept {
    const auto real = static_cast<double>(raw.real());
    const auto imaginary = static_cast<double>(raw.imag());
    const double modulus = std::sqrt(real * real + imaginary * imaginary);
    return modulus;
  }
};
struct LoadModulus128 {
  using Raw = std::complex<double>;
  static constexpr bool kNeedsScaling = true;
  double operator()(Raw raw) const noexcept {
    // hypot takes (infinity, NaN) for infinite; here any NaN makes the element NaN.
    if (std::isnan(raw.real()) || std::isnan(raw.imag())) return std::numeric_limits<double>::quiet_NaN();
    return std::hypot(raw.real(), raw.imag());
  }
};

template <typename Load>
struct LoadMagnitude : Load {
  double operator()(typename Load::Raw raw) const noexcept { return std::fabs(Load::operator()(raw)); }
};

// Calls function(load) with the load of a floating-point or complex type.
template <typename Function>
auto with_load(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kFloat64: return function(LoadFloat64{});
    case DType::kFloat16: return function(LoadFloat16{});
    case DType::kBfloat16: return function(LoadBfloat16{});
    case DType::kFloat8E5m2: return function(LoadE5m2{});
    case DType::kFloat8E4m3fn: return function(LoadE4m3fn{});
    case DType::kComplex64: return function(LoadModulus64{});
    case DType::kComplex128: return function(LoadModulus128{});
    default: return function(LoadFloat32{});
  }
}

}  // namespace tornasole::reduce
