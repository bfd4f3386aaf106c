// Floating-point tensors, worked in float64.
//
//   1. summarize: one pass over everything that needs no mean.
//   2. Where the largest magnitude says that squares or sums of float64 elements may overflow or vanish, the pass is
//      repeated on the elements times a power of two, which is exact; only such tensors pay for it.
//   3. variance: a pass over squared distances from the mean, corrected by what the rounded mean is off.

#include <algorithm>
#include <bit>
#include <cassert>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/kernels.h"
#include "reduce/loads.h"

namespace tornasole::reduce {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Between these magnitudes the sum of 2^40 squares is neither infinite nor loses bits of its larger terms.
constexpr int kSmallestSafeExponent = -400;
constexpr int kLargestSafeExponent = 480;

// The power of two that brings a largest magnitude near 1; 0 if it is fine as it is.
int scaling_exponent(double largest) noexcept {
  if (largest == 0) return 0;
  const int exponent = std::ilogb(largest);
  if (exponent >= kSmallestSafeExponent && exponent <= kLargestSafeExponent) return 0;
  return std::max(exponent, -1000);  // 2^1000 is still a double
}

struct Totals {
  double min = kInfinity, max = -kInfinity, abs_min = kInfinity;
  CompensatedSum sum, abs_sum, squares;
};

struct BlockLanes {
  Lanes min, max, abs_min, sum = {}, dropped = {}, abs_sum = {}, squares = {};
  BlockLanes() noexcept {
    min.fill(kInfinity);
    max.fill(-kInfinity);
    abs_min.fill(kInfinity);
  }
  template <bool kIsCompensated>
  void take(std::size_t lane, double x) noexcept {
    const double magnitude = std::fabs(x);
    min[lane] = x < min[lane] ? x : min[lane];
    max[lane] = x > max[lane] ? x : max[lane];
    abs_min[lane] = magnitude < abs_min[lane] ? magnitude : abs_min[lane];
    if constexpr (kIsCompensated) {
      const double next = sum[lane] + x;
      const double part = next - sum[lane];
      dropped[lane] += (sum[lane] - (next - part)) + (x - part);
      sum[lane] = next;
    } else {
      sum[lane] += x;
    }
    abs_sum[lane] += magnitude;
    squares[lane] += x * x;
  }
  void add_to(Totals& totals) const noexcept {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      totals.min = std::min(totals.min, min[lane]);
      totals.max = std::max(totals.max, max[lane]);
      totals.abs_min = std::min(totals.abs_min, abs_min[lane]);
      totals.sum.add(sum[lane]);
      if (std::isfinite(sum[lane])) totals.sum.add(dropped[lane]);
    }
    add_lanes(totals.abs_sum, abs_sum);
    add_lanes(totals.squares, squares);
  }
};

template <typename Load>
double scaled(const Load& load, typename Load::Raw raw, double factor) noexcept {
  if constexpr (Load::kNeedsScaling) return load(raw) * factor;
  return load(raw);
}

template <typename Load>
Totals total(const TensorView& tensor, const Load& load, double factor) {
  using Raw = typename Load::Raw;
  Totals totals;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    BlockLanes lanes;
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        lanes.template take<Load::kNeedsScaling>(lane, scaled(load, x[i + lane], factor));
      }
    }
    for (std::size_t lane = 0; i < count; ++i, ++lane) {
      lanes.template take<Load::kNeedsScaling>(lane, scaled(load, x[i], factor));
    }
    lanes.add_to(totals);
    return true;
  });
  return totals;
}

template <typename Load>
RealSummary summarize(const TensorView& tensor, const Load& load) {
  RealSummary summary;
  summary.count = tensor.element_count();
  Totals totals = total(tensor, load, 1.0);
  // Sums of squares are never the difference of two infinities: they are NaN only if an element is.
  summary.has_nan = std::isnan(totals.squares.value());
  if (summary.has_nan) return summary;
  summary.min = totals.min;
  summary.max = totals.max;
  summary.abs_min = totals.abs_min;
  summary.abs_max = std::max(std::fabs(totals.min), std::fabs(totals.max));
  summary.has_infinity = std::isinf(summary.abs_max);
  int exponent = 0;
  if (Load::kNeedsScaling && !summary.has_infinity) exponent = scaling_exponent(summary.abs_max);
  if (exponent != 0) totals = total(tensor, load, std::ldexp(1.0, -exponent));
  summary.sum = {totals.sum.value(), exponent};
  summary.abs_sum = {totals.abs_sum.value(), exponent};
  summary.squares = {totals.squares.value(), std::int64_t{2} * exponent};
  return summary;
}

// sum of (x * factor - mean)^2, less what the rounding of the mean added to it.
template <typename Load>
double squared_deviations(const TensorView& tensor, const Load& load, double factor, double mean) {
  using Raw = typename Load::Raw;
  CompensatedSum deviations;
  CompensatedSum squares;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    Lanes lane_deviations = {};
    Lanes lane_squares = {};
    const auto take = [&](std::size_t lane, Raw raw) {
      const double deviation = scaled(load, raw, factor) - mean;
      lane_deviations[lane] += deviation;
      lane_squares[lane] += deviation * deviation;
    };
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, x[i + lane]);
    }
    for (std::size_t lane = 0; i < count; ++i, ++lane) take(lane, x[i]);
    add_lanes(deviations, lane_deviations);
    add_lanes(squares, lane_squares);
    return true;
  });
  const double off = deviations.value();
  return std::max(0.0, squares.value() - off * off / static_cast<double>(tensor.element_count()));
}

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

}  // namespace

double Scaled::to_double() const noexcept {
  return std::ldexp(value, static_cast<int>(std::clamp<std::int64_t>(exponent, -10'000, 10'000)));
}

Scaled Scaled::square_root() const noexcept {
  assert(exponent % 2 == 0);
  return {std::sqrt(value), exponent / 2};
}

Scaled operator+(Scaled a, Scaled b) noexcept {
  if (a.value == 0) return b;
  if (b.value == 0) return a;
  if (a.exponent < b.exponent) std::swap(a, b);
  return {a.value + Scaled{b.value, b.exponent - a.exponent}.to_double(), a.exponent};
}

RealSummary summarize_real(const TensorView& tensor) {
  return with_load(tensor.dtype(), [&](const auto& load) { return summarize(tensor, load); });
}

Scaled variance_of_real(const TensorView& tensor, const RealSummary& summary, bool of_absolute) {
  const double smallest = of_absolute ? summary.abs_min : summary.min;
  const double largest = of_absolute ? summary.abs_max : summary.max;
  if (smallest == largest) return {0, 0};
  const auto count = static_cast<double>(summary.count);
  const Scaled& sum = of_absolute ? summary.abs_sum : summary.sum;
  // Halved, since the difference of two doubles may overflow. Distinct elements lie at least 2^-53 of their size apart,
  // so what brings their distance near 1 does not make the elements themselves too large.
  const int exponent =
      scaling_exponent(std::max(largest / 2 - smallest / 2, std::numeric_limits<double>::denorm_min()));
  const double mean = Scaled{sum.value / count, sum.exponent - exponent}.to_double();
  const double factor = std::ldexp(1.0, -exponent);
  const double squares = with_load(tensor.dtype(), [&](const auto& load) {
    using Load = std::remove_cvref_t<decltype(load)>;
    return of_absolute ? squared_deviations(tensor, LoadMagnitude<Load>{}, factor, mean)
                       : squared_deviations(tensor, load, factor, mean);
  });
  return {squares / count, std::int64_t{2} * exponent};
}

Scaled product_of_real(const TensorView& tensor) {
  return with_load(tensor.dtype(), [&](const auto& load) {
    using Raw = typename std::remove_cvref_t<decltype(load)>::Raw;
    RunningProduct product;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) product.multiply(load(x[i]));
      return true;
    });
    return product.value();
  });
}

bool is_sign_odd(const TensorView& tensor) {
  return with_load(tensor.dtype(), [&](const auto& load) {
    using Raw = typename std::remove_cvref_t<decltype(load)>::Raw;
    std::uint64_t sign = 0;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) sign ^= std::bit_cast<std::uint64_t>(load(x[i]));
      return true;
    });
    return (sign >> 63) != 0;
  });
}

ComplexProduct product_of_complex(const TensorView& tensor) {
  ComplexProduct product;
  bool is_first = true;
  const auto multiply = [&](double real, double imaginary) {
    // Scaled like the real product. Infinite and NaN parts are left alone and follow the arithmetic.
    const double largest = std::max(std::fabs(real), std::fabs(imaginary));
    int exponent = 0;
    if (largest > 0 && std::isfinite(largest)) exponent = std::ilogb(largest);
    real = std::scalbn(real, -exponent);
    imaginary = std::scalbn(imaginary, -exponent);
    product.exponent += exponent;
    if (is_first) {
      product.real = real;
      product.imaginary = imaginary;
      is_first = false;
      return;
    }
    const double next = product.real * real - product.imaginary * imaginary;
    product.imaginary = product.real * imaginary + product.imaginary * real;
    product.real = next;
    const double size = std::max(std::fabs(product.real), std::fabs(product.imaginary));
    if (size > 0 && std::isfinite(size)) {
      const int shift = std::ilogb(size);
      product.real = std::scalbn(product.real, -shift);
      product.imaginary = std::scalbn(product.imaginary, -shift);
      product.exponent += shift;
    }
  };
  const auto take = [&]<typename Raw>(const Raw* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      multiply(static_cast<double>(x[i].real()), static_cast<double>(x[i].imag()));
    }
    return true;
  };
  if (tensor.dtype() == DType::kComplex64) {
    for_each_block<std::complex<float>>(tensor, ElementOrder::kRowMajor, take);
  } else {
    for_each_block<std::complex<double>>(tensor, ElementOrder::kRowMajor, take);
  }
  return product;
}

}  // namespace tornasole::reduce
