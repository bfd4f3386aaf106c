#include "reduce/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tornasole::reduce {
namespace {

using Real = long double;
using Complex = std::complex<Real>;
constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity = true;
};
FloatFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128: return {11, 52};
    case DType::kFloat16: return {5, 10};
    case DType::kBfloat16: return {8, 7};
    case DType::kFloat8E5m2: return {5, 2};
    case DType::kFloat8E4m3fn: return {4, 3, false};
    default: return {8, 23};
  }
}

std::uint64_t bits_at(const Tensor& tensor, std::size_t at, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes().data() + at * size, size);
  return bits;
}

std::vector<Complex> numbers_of(const Tensor& tensor) {
  std::vector<Complex> numbers;
  const auto count = static_cast<std::size_t>(tensor.element_count());
  const std::size_t size = dtype_size(tensor.dtype());
  for (std::size_t i = 0; i < count; ++i) {
    if (is_complex(tensor.dtype())) {
      numbers.emplace_back(decode_float(tensor.dtype(), bits_at(tensor, 2 * i, size / 2)),
                           decode_float(tensor.dtype(), bits_at(tensor, 2 * i + 1, size / 2)));
    } else {
      numbers.emplace_back(decode_float(tensor.dtype(), bits_at(tensor, i, size)), 0.0L);
    }
  }
  return numbers;
}

std::vector<Wide> integers_of(const Tensor& tensor) {
  std::vector<Wide> integers;
  const auto count = static_cast<std::size_t>(tensor.element_count());
  const std::size_t size = dtype_size(tensor.dtype());
  const DType dtype = tensor.dtype();
  const bool is_signed =
      dtype == DType::kInt8 || dtype == DType::kInt16 || dtype == DType::kInt32 || dtype == DType::kInt64;
  for (std::size_t i = 0; i < count; ++i) {
    auto value = static_cast<Wide>(bits_at(tensor, i, size));
    const Wide modulus = Wide{1} << (8 * size);
    if (is_signed && value >= modulus / 2) value -= modulus;
    if (dtype == DType::kBool) value = value != 0 ? 1 : 0;
    integers.push_back(value);
  }
  return integers;
}

// Neumaier's sum in long double.
Real sum_of(const std::vector<Real>& terms) {
  Real high = 0, low = 0;
  for (const Real term : terms) {
    const Real next = high + term;
    low += std::fabs(high) >= std::fabs(term) ? (high - next) + term : (term - next) + high;
    high = next;
  }
  return std::isfinite(high) ? high + low : high;
}

template <typename T, typename Function>
std::vector<Real> map(const std::vector<T>& values, const Function& function) {
  std::vector<Real> mapped;
  mapped.reserve(values.size());
  for (const T& value : values) mapped.push_back(function(value));
  return mapped;
}

// The product with the exponent kept apart, as it may leave even the range of a long double.
Complex product_of(const std::vector<Complex>& values) {
  Complex product = 1;
  long exponent = 0;
  for (const Complex& value : values) {
    const Complex next = {product.real() * value.real() - product.imag() * value.imag(),
                          product.real() * value.imag() + product.imag() * value.real()};
    product = next;
    const Real size = std::max(std::fabs(product.real()), std::fabs(product.imag()));
    if (size == 0 || !std::isfinite(size)) continue;
    const int shift = std::ilogb(size);
    product = {std::ldexp(product.real(), -shift), std::ldexp(product.imag(), -shift)};
    exponent += shift;
  }
  const int shift = static_cast<int>(std::clamp(exponent, -16000L, 16000L));
  return {std::ldexp(product.real(), shift), std::ldexp(product.imag(), shift)};
}

// A real product is kept real: an infinite factor must not turn the absent imaginary part into NaN.
Real product_of(const std::vector<Real>& values) {
  Real product = 1;
  long exponent = 0;
  for (const Real value : values) {
    product *= value;
    if (product == 0 || !std::isfinite(product)) continue;
    int shift = 0;
    product = std::frexp(product, &shift);
    exponent += shift;
  }
  return std::ldexp(product, static_cast<int>(std::clamp(exponent, -16000L, 16000L)));
}

Real median_of(std::vector<Real> values) {
  if (values.empty()) return kNan;
  std::ranges::sort(values);
  const std::size_t upper = values.size() / 2;
  return values.size() % 2 == 1 ? values[upper] : (values[upper - 1] + values[upper]) / 2;
}

Real round_to(DType dtype, Real value) {
  const bool is_wide = dtype == DType::kFloat64 || dtype == DType::kComplex128;
  return is_wide ? static_cast<Real>(static_cast<double>(value)) : static_cast<Real>(static_cast<float>(value));
}

bool is_wide_float(DType dtype) { return dtype == DType::kFloat64 || dtype == DType::kComplex128; }

// Of a float tensor, or of moduli.
std::optional<Expected> expected_real(DType dtype, const std::vector<Real>& values, ReductionKind kind) {
  Expected want{is_wide_float(dtype) ? DType::kFloat64 : DType::kFloat32};
  const auto n = static_cast<Real>(values.size());
  const Real sum = sum_of(values);
  const Real magnitudes = sum_of(map(values, [](Real x) { return std::fabs(x); }));
  const Real error = (is_wide_float(dtype) ? 1e-17L : 1e-14L) * (std::isfinite(magnitudes) ? magnitudes : 0);
  const auto variance = [&] { return sum_of(map(values, [&](Real x) { return (x - sum / n) * (x - sum / n); })) / n; };
  // How far apart equal elements may seem to be: a modulus is rounded to a double, the oracle's own mean to a Real.
  const Real fuzz = (is_complex(dtype) ? 3e-16L : 1e-18L) * (std::isfinite(magnitudes) ? magnitudes : 0);
  Real value = 0;
  switch (kind) {
    case ReductionKind::kMin:
      if (values.empty()) return std::nullopt;
      value = *std::ranges::min_element(values);
      break;
    case ReductionKind::kMax:
      if (values.empty()) return std::nullopt;
      value = *std::ranges::max_element(values);
      break;
    case ReductionKind::kMedian: value = median_of(values); break;
    case ReductionKind::kMean: value = sum / n, want.slack = values.empty() ? 0 : error / n; break;
    case ReductionKind::kStd: value = std::sqrt(variance()), want.slack = fuzz; break;
    case ReductionKind::kVariance:
      value = variance();
      want.slack = fuzz * (fuzz + 2 * (std::isfinite(value) ? std::sqrt(value) : 0));
      break;
    case ReductionKind::kSum: value = sum, want.slack = error; break;
    case ReductionKind::kProd: value = product_of(values); break;
    case ReductionKind::kL1: value = magnitudes; break;
    case ReductionKind::kL2: value = std::sqrt(sum_of(map(values, [](Real x) { return x * x; }))); break;
  }
  if (std::ranges::any_of(values, [](Real x) { return std::isnan(x); })) value = kNan;
  want.value = round_to(want.dtype, value);
  return want;
}

std::optional<Expected> expected_complex(DType dtype, const std::vector<Complex>& values, ReductionKind kind) {
  Expected want{dtype};
  const auto n = static_cast<Real>(values.size());
  const auto real = map(values, [](const Complex& x) { return x.real(); });
  const auto imaginary = map(values, [](const Complex& x) { return x.imag(); });
  const Complex sum = {sum_of(real), sum_of(imaginary)};
  const Real magnitudes =
      sum_of(map(values, [](const Complex& x) { return std::fabs(x.real()) + std::fabs(x.imag()); }));
  const Real error = (is_wide_float(dtype) ? 1e-17L : 1e-14L) * (std::isfinite(magnitudes) ? magnitudes : 0);
  switch (kind) {
    case ReductionKind::kMean:
      want.value = {sum.real() / n, sum.imag() / n}, want.slack = values.empty() ? 0 : error / n;
      break;
    case ReductionKind::kSum: want.value = sum, want.slack = error; break;
    case ReductionKind::kProd: {
      want.value = product_of(values);
      const Real size = std::abs(want.value);
      want.slack = std::isfinite(size) ? size * (is_wide_float(dtype) ? 1e-13L : 1e-7L) : 0;
      break;
    }
    case ReductionKind::kStd:
    case ReductionKind::kVariance: {
      const Complex mean = {sum.real() / n, sum.imag() / n};
      const Real variance = sum_of(map(values, [&](const Complex& x) { return std::norm(x - mean); })) / n;
      want.dtype = is_wide_float(dtype) ? DType::kFloat64 : DType::kFloat32;
      want.value = kind == ReductionKind::kStd ? std::sqrt(variance) : variance;
      break;
    }
    default: return std::nullopt;
  }
  const auto is_nan = [](const Complex& x) { return std::isnan(x.real()) || std::isnan(x.imag()); };
  if (std::ranges::any_of(values, is_nan)) want.value = is_complex(want.dtype) ? Complex(kNan, kNan) : Complex(kNan, 0);
  want.value = {round_to(want.dtype, want.value.real()), round_to(want.dtype, want.value.imag())};
  return want;
}

std::optional<Expected> expected_integer(DType dtype, const std::vector<Wide>& values, ReductionKind kind) {
  const bool is_unsigned =
      dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kUint32 || dtype == DType::kUint64;
  const auto n = static_cast<Wide>(values.size());
  Wide sum = 0, magnitudes = 0;
  std::uint64_t product = 1;
  for (const Wide value : values) {
    sum += value;
    magnitudes += value < 0 ? -value : value;
    product *= static_cast<std::uint64_t>(value);
  }
  const auto wrapped = [&](std::uint64_t bits) {
    Expected want{is_unsigned ? DType::kUint64 : DType::kInt64};
    want.exact = is_unsigned ? static_cast<Wide>(bits) : static_cast<Wide>(static_cast<std::int64_t>(bits));
    return want;
  };
  const auto real = [](Real value) { return Expected{DType::kFloat64, round_to(DType::kFloat64, value)}; };
  const auto variance = [&]() -> Real {
    if (n == 0) return kNan;
    const Wide whole = sum / n;
    const Real rest = static_cast<Real>(sum % n) / static_cast<Real>(n);
    return sum_of(map(values,
                      [&](Wide x) {
                        const Real distance = static_cast<Real>(x - whole) - rest;
                        return distance * distance;
                      })) /
           static_cast<Real>(n);
  };
  switch (kind) {
    case ReductionKind::kMin:
    case ReductionKind::kMax: {
      if (values.empty()) return std::nullopt;
      Expected want{dtype};
      want.exact = kind == ReductionKind::kMin ? *std::ranges::min_element(values) : *std::ranges::max_element(values);
      return want;
    }
    case ReductionKind::kSum: return wrapped(static_cast<std::uint64_t>(sum));
    case ReductionKind::kProd: return wrapped(product);
    case ReductionKind::kMean: return real(n == 0 ? kNan : static_cast<Real>(sum) / static_cast<Real>(n));
    case ReductionKind::kVariance: return real(variance());
    case ReductionKind::kStd: return real(std::sqrt(variance()));
    case ReductionKind::kMedian: return real(median_of(map(values, [](Wide x) { return static_cast<Real>(x); })));
    case ReductionKind::kL1: return real(static_cast<Real>(magnitudes));
    case ReductionKind::kL2:
      return real(std::sqrt(sum_of(map(values, [](Wide x) { return static_cast<Real>(x) * static_cast<Real>(x); }))));
  }
  return std::nullopt;
}

DType unsigned_of(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return DType::kUint8;
    case DType::kInt16: return DType::kUint16;
    case DType::kInt32: return DType::kUint32;
    case DType::kInt64: return DType::kUint64;
    default: return dtype;
  }
}

bool is_close(Real got, Real want, Real relative, Real absolute) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= relative * std::fabs(want) + absolute;
}

}  // namespace

bool is_integer(DType dtype) { return !dtype_is_inexact(dtype) && dtype_size(dtype) != 0; }
bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

long double decode_float(DType dtype, std::uint64_t bits) {
  const FloatFormat format = format_of(dtype);
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const auto exponent =
      static_cast<int>((bits >> format.mantissa_bits) & ((std::uint64_t{1} << format.exponent_bits) - 1));
  const bool is_negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1) != 0;
  const int largest = (1 << format.exponent_bits) - 1;
  const int bias = largest / 2;
  Real value = 0;
  if (format.has_infinity && exponent == largest) {
    value = mantissa == 0 ? std::numeric_limits<Real>::infinity() : kNan;
  } else if (!format.has_infinity && exponent == largest && mantissa + 1 == std::uint64_t{1} << format.mantissa_bits) {
    value = kNan;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<Real>(mantissa), 1 - bias - format.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<Real>(mantissa | (std::uint64_t{1} << format.mantissa_bits)),
                       exponent - bias - format.mantissa_bits);
  }
  return is_negative ? -value : value;
}

std::optional<Expected> expected(const Tensor& tensor, Reduction reduction) {
  const DType dtype = tensor.dtype();
  if (is_integer(dtype)) {
    std::vector<Wide> values = integers_of(tensor);
    if (!reduction.of_absolute) return expected_integer(dtype, values, reduction.kind);
    for (Wide& value : values) value = value < 0 ? -value : value;
    auto want = expected_integer(dtype, values, reduction.kind);
    // Only the magnitude of the most negative value does not fit the type of the elements.
    const bool is_extreme = reduction.kind == ReductionKind::kMin || reduction.kind == ReductionKind::kMax;
    const Wide most = (Wide{1} << (8 * dtype_size(dtype) - 1));
    if (want && is_extreme && want->exact >= most) want->dtype = unsigned_of(dtype);
    return want;
  }
  if (dtype_size(dtype) == 0) return std::nullopt;
  const std::vector<Complex> values = numbers_of(tensor);
  if (is_complex(dtype) && !reduction.of_absolute && !is_norm(reduction.kind)) {
    return expected_complex(dtype, values, reduction.kind);
  }
  const bool of_magnitudes = reduction.of_absolute || is_complex(dtype);
  const auto reals = map(values, [&](const Complex& x) {
    if (std::isnan(x.real()) || std::isnan(x.imag())) return kNan;
    if (!of_magnitudes) return x.real();
    const Real modulus = std::hypot(x.real(), x.imag());
    return dtype == DType::kComplex128 ? round_to(dtype, modulus) : modulus;  // may be infinite
  });
  return expected_real(dtype, reals, reduction.kind);
}

std::string difference(const Tensor& got, const Expected& want) {
  if (got.dtype() != want.dtype) {
    return fmt::format("type {} instead of {}", dtype_name(got.dtype()), dtype_name(want.dtype));
  }
  if (got.shape() != Shape{1}) return fmt::format("shape {} instead of [1]", got.shape().to_string());
  if (got.bytes().size() != dtype_size(got.dtype())) return fmt::format("{} bytes", got.bytes().size());
  if (is_integer(got.dtype())) {
    const Wide value = integers_of(got)[0];
    if (value == want.exact) return {};
    return fmt::format("{} instead of {}", static_cast<double>(value), static_cast<double>(want.exact));
  }
  const bool is_wide = is_wide_float(want.dtype);
  const Real relative = is_wide ? 1e-12L : 1e-6L;
  const Real absolute = want.slack + (is_wide ? 4 * static_cast<Real>(std::numeric_limits<double>::denorm_min())
                                              : static_cast<Real>(std::numeric_limits<float>::denorm_min()));
  const Complex value = numbers_of(got)[0];
  if (is_close(value.real(), want.value.real(), relative, absolute) &&
      is_close(value.imag(), want.value.imag(), relative, absolute)) {
    return {};
  }
  return fmt::format("({}, {}) instead of ({}, {})", static_cast<double>(value.real()),
                     static_cast<double>(value.imag()), static_cast<double>(want.value.real()),
                     static_cast<double>(want.value.imag()));
}

}  // namespace tornasole::reduce
