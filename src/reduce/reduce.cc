#include "reduce/reduce.h"

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "reduce/kernels.h"

namespace tornasole::reduce {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

enum class Family { kReal, kInteger, kComplex, kNone };

Family family_of(DType dtype) noexcept {
  if (dtype_size(dtype) == 0) return Family::kNone;
  if (dtype == DType::kComplex64 || dtype == DType::kComplex128) return Family::kComplex;
  return dtype_is_inexact(dtype) ? Family::kReal : Family::kInteger;
}

bool is_double(DType dtype) noexcept { return dtype == DType::kFloat64 || dtype == DType::kComplex128; }

// The one rounding at the end; what a float cannot hold becomes infinite.
Scalar one_real(DType of, double value) { return is_double(of) ? Scalar(value) : Scalar(static_cast<float>(value)); }
Scalar one_complex(DType of, double real, double imaginary) {
  if (is_double(of)) return Scalar(std::complex<double>(real, imaginary));
  return Scalar(std::complex<float>(static_cast<float>(real), static_cast<float>(imaginary)));
}

bool is_unsigned(DType dtype) noexcept {
  return dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kUint32 || dtype == DType::kUint64;
}

// A sum or product, modulo 2^64.
Scalar one_wrapped(DType of, std::uint64_t value) {
  return is_unsigned(of) ? Scalar(value) : Scalar(static_cast<std::int64_t>(value));
}

template <typename T>
Scalar one_extreme(Int128 value) {
  // Only the magnitude of the most negative value does not fit; it gets the unsigned type of the same width.
  if (std::is_signed_v<T> && value > static_cast<Int128>(std::numeric_limits<T>::max())) {
    return Scalar(static_cast<std::make_unsigned_t<T>>(value));
  }
  return Scalar(static_cast<T>(value));
}

// A smallest or largest element, in the type of the elements.
Scalar one_element(DType of, Int128 value) {
  switch (of) {
    case DType::kInt8: return one_extreme<std::int8_t>(value);
    case DType::kInt16: return one_extreme<std::int16_t>(value);
    case DType::kInt32: return one_extreme<std::int32_t>(value);
    case DType::kUint8: return one_extreme<std::uint8_t>(value);
    case DType::kUint16: return one_extreme<std::uint16_t>(value);
    case DType::kUint32: return one_extreme<std::uint32_t>(value);
    case DType::kUint64: return one_extreme<std::uint64_t>(value);
    case DType::kBool: return Scalar(value != 0);
    default: return one_extreme<std::int64_t>(value);
  }
}

double mean_of_scaled(Scaled sum, std::int64_t count) noexcept {
  return Scaled{sum.value / static_cast<double>(count), sum.exponent}.to_double();
}

// Whole part and rest apart: the sum itself may have more digits than a double.
double mean_of_int(Int128 sum, std::int64_t count) noexcept {
  return static_cast<double>(sum / count) + static_cast<double>(sum % count) / static_cast<double>(count);
}

double l2_of(const RealSummary& summary) noexcept {
  return summary.count == 1 ? summary.abs_max : summary.squares.square_root().to_double();
}

// What a pass has to find for these reductions. The moduli of complex elements are their own magnitudes.
RealNeeds needs_of(std::span<const Reduction> wanted, bool are_moduli) noexcept {
  RealNeeds needs;
  for (const Reduction reduction : wanted) {
    const bool is_variance = reduction.kind == ReductionKind::kVariance || reduction.kind == ReductionKind::kStd;
    if (are_moduli && !reduction.of_absolute) continue;
    needs.variance |= is_variance && !reduction.of_absolute;
    needs.abs_variance |= is_variance && reduction.of_absolute;
    needs.product |= reduction.kind == ReductionKind::kProd;
    needs.extremes |= reduction.kind == ReductionKind::kMin || reduction.kind == ReductionKind::kMax;
  }
  return needs;
}

// Of a float tensor, or of the moduli of a complex one (then `of_absolute`).
double real_value(const TensorView& tensor, const RealSummary& summary, Reduction reduction) {
  if (summary.has_nan()) return kNan;
  const bool of_absolute = reduction.of_absolute;
  const Scaled& sum = of_absolute ? summary.abs_sum : summary.sum;
  const Scaled& variance = of_absolute ? summary.abs_variance : summary.variance;
  switch (reduction.kind) {
    case ReductionKind::kMin: return of_absolute ? summary.abs_min : summary.min;
    case ReductionKind::kMax: return of_absolute ? summary.abs_max : summary.max;
    case ReductionKind::kMedian: return median_of_real(tensor, of_absolute);
    case ReductionKind::kMean: return mean_of_scaled(sum, summary.count);
    case ReductionKind::kStd: return variance.square_root().to_double();
    case ReductionKind::kVariance: return variance.to_double();
    case ReductionKind::kSum: return sum.to_double();
    case ReductionKind::kProd: {
      const double product = summary.product.to_double();
      return of_absolute ? std::fabs(product) : product;
    }
    case ReductionKind::kL1: return summary.abs_sum.to_double();
    case ReductionKind::kL2: return l2_of(summary);
  }
  return kNan;
}

Scalar int_value(const TensorView& tensor, const IntSummary& summary, Reduction reduction) {
  const DType dtype = tensor.dtype();
  const bool of_absolute = reduction.of_absolute;
  const Int128 sum = of_absolute ? summary.abs_sum : summary.sum;
  switch (reduction.kind) {
    case ReductionKind::kMin:
      return one_element(dtype, of_absolute ? static_cast<Int128>(summary.abs_min) : summary.min);
    case ReductionKind::kMax:
      return one_element(dtype, of_absolute ? static_cast<Int128>(summary.abs_max) : summary.max);
    case ReductionKind::kMedian: return Scalar(median_of_int(tensor, of_absolute));
    case ReductionKind::kMean: return Scalar(mean_of_int(sum, summary.count));
    case ReductionKind::kStd: return Scalar(std::sqrt(of_absolute ? summary.abs_variance : summary.variance));
    case ReductionKind::kVariance: return Scalar(of_absolute ? summary.abs_variance : summary.variance);
    case ReductionKind::kSum: return one_wrapped(dtype, static_cast<std::uint64_t>(sum));
    case ReductionKind::kProd: return one_wrapped(dtype, product_of_int(tensor, of_absolute));
    case ReductionKind::kL1: return Scalar(static_cast<double>(summary.abs_sum));
    case ReductionKind::kL2:
      return Scalar(summary.count == 1 ? static_cast<double>(summary.abs_max) : std::sqrt(summary.squares));
  }
  return Scalar(kNan);
}

// The real or imaginary parts of a complex tensor, seen as a tensor of floats with gaps.
TensorView parts_of(const TensorView& tensor, bool imaginary) {
  const bool is_wide = tensor.dtype() == DType::kComplex128;
  const DType part = is_wide ? DType::kFloat64 : DType::kFloat32;
  const std::byte* data = tensor.data() + (imaginary ? dtype_size(part) : 0);
  if (!tensor.strides_bytes().empty()) return {part, data, tensor.shape(), tensor.strides_bytes()};
  const std::int64_t stride = is_wide ? 16 : 8;
  return {part, data, Shape{tensor.element_count()}, std::span(&stride, 1)};
}

class ComplexReducer {
 public:
  ComplexReducer(const TensorView& tensor, const RealSummary& moduli, int threads)
      : tensor_(tensor), threads_(threads), moduli_(moduli) {}

  // Nothing for what has no order.
  std::optional<Scalar> value(Reduction reduction) const {
    const DType dtype = tensor_.dtype();
    if (reduction.of_absolute || is_norm(reduction.kind)) {
      return one_real(dtype, real_value(tensor_, moduli_, {reduction.kind, true}));
    }
    switch (reduction.kind) {
      case ReductionKind::kMean: {
        const auto [real, imaginary] = sums();
        const auto count = static_cast<double>(tensor_.element_count());
        return one_complex(dtype, Scaled{real.value / count, real.exponent}.to_double(),
                           Scaled{imaginary.value / count, imaginary.exponent}.to_double());
      }
      case ReductionKind::kSum: {
        const auto [real, imaginary] = sums();
        return one_complex(dtype, real.to_double(), imaginary.to_double());
      }
      case ReductionKind::kProd: return product();
      case ReductionKind::kVariance: return one_real(dtype, variance().to_double());
      case ReductionKind::kStd: return one_real(dtype, variance().square_root().to_double());
      default: return std::nullopt;
    }
  }

 private:
  std::pair<Scaled, Scaled> sums() const {
    if (moduli_.has_nan()) return {{kNan, 0}, {kNan, 0}};
    return {summarize_real(parts_of(tensor_, false), {}, threads_).sum,
            summarize_real(parts_of(tensor_, true), {}, threads_).sum};
  }
  // The squared distance from the mean is that of the real parts plus that of the imaginary ones.
  Scaled variance() const {
    if (moduli_.has_nan()) return {kNan, 0};
    Scaled total;
    for (const bool imaginary : {false, true}) {
      total = total + summarize_real(parts_of(tensor_, imaginary), {.variance = true}, threads_).variance;
    }
    return total;
  }
  Scalar product() const {
    if (moduli_.has_nan()) return one_complex(tensor_.dtype(), kNan, kNan);
    const ComplexProduct product = product_of_complex(tensor_);
    return one_complex(tensor_.dtype(), Scaled{product.real, product.exponent}.to_double(),
                       Scaled{product.imaginary, product.exponent}.to_double());
  }
  const TensorView& tensor_;
  int threads_;
  const RealSummary& moduli_;
};

// Of no elements: what an empty sum and an empty product are; there is no smallest and no largest.
std::optional<Scalar> empty_value(DType dtype, Reduction reduction) {
  const Family family = family_of(dtype);
  const bool is_real = family != Family::kComplex || reduction.of_absolute || is_norm(reduction.kind) ||
                       reduction.kind == ReductionKind::kStd || reduction.kind == ReductionKind::kVariance;
  double value = kNan;
  switch (reduction.kind) {
    case ReductionKind::kMin:
    case ReductionKind::kMax: return std::nullopt;
    case ReductionKind::kMedian:
      if (!is_real) return std::nullopt;
      break;
    case ReductionKind::kSum:
      if (family == Family::kInteger) return one_wrapped(dtype, 0);
      value = 0;
      break;
    case ReductionKind::kProd:
      if (family == Family::kInteger) return one_wrapped(dtype, 1);
      value = 1;
      break;
    case ReductionKind::kL1:
    case ReductionKind::kL2: value = 0; break;
    default: break;
  }
  if (!is_real) return one_complex(dtype, value, std::isnan(value) ? kNan : 0);
  return family == Family::kInteger ? Scalar(value) : one_real(dtype, value);
}

template <typename ValueOf>
Reduced collect(std::span<const Reduction> wanted, const ValueOf& value_of) {
  Reduced reduced;
  reduced.values.resize(wanted.size());
  ReducedValue* next = reduced.values.data();
  for (const Reduction reduction : wanted) {
    if (const auto value = value_of(reduction)) {
      next->reduction = reduction;
      next->value = *value;
      ++next;
    } else {
      reduced.skipped.push_back(reduction);
    }
  }
  reduced.values.resize(static_cast<std::size_t>(next - reduced.values.data()));
  return reduced;
}

}  // namespace

bool Scalar::is_finite() const noexcept {
  if (dtype_ == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, words_, sizeof value);
    return std::isfinite(value);
  }
  return !has_non_finite(view());
}

std::optional<double> Scalar::to_double() const noexcept {
  switch (family_of(dtype_)) {
    case Family::kInteger: return static_cast<double>(summarize_int(view(), {}).sum);
    case Family::kReal: {
      const RealSummary summary = summarize_real(view(), {});
      return summary.has_nan() ? kNan : summary.min;
    }
    default: return std::nullopt;
  }
}

std::optional<double> to_double(const Tensor& one) noexcept {
  if (one.element_count() != 1 || one.bytes().size() != dtype_size(one.dtype())) return std::nullopt;
  return Scalar(one.dtype(), one.bytes().data()).to_double();
}

Reduced reduce(const TensorView& tensor, std::span<const Reduction> wanted, int threads, Counts* counts) {
  const std::int64_t count = tensor.element_count();
  const Family family = family_of(tensor.dtype());
  using Value = std::optional<Scalar>;
  if (wanted.empty() && counts == nullptr) return {};
  if (family == Family::kNone || count < 0 || (count > 0 && tensor.data() == nullptr)) {
    return collect(wanted, [](Reduction) { return Value(); });
  }
  if (count == 0) return collect(wanted, [&](Reduction r) { return empty_value(tensor.dtype(), r); });
  if (family == Family::kInteger) {
    const RealNeeds needs = needs_of(wanted, false);
    const IntSummary summary = summarize_int(tensor, {needs.variance, needs.abs_variance});
    if (counts != nullptr) *counts = {.zeros = summary.zeros};
    return collect(wanted, [&](Reduction r) { return Value(int_value(tensor, summary, r)); });
  }
  RealNeeds needs = needs_of(wanted, family == Family::kComplex);
  needs.counts = counts != nullptr;
  const RealSummary summary = summarize_real(tensor, needs, threads);
  if (counts != nullptr) *counts = {summary.zeros, summary.nan, summary.positive_infinite, summary.negative_infinite};
  if (family == Family::kComplex) {
    const ComplexReducer reducer(tensor, summary, threads);
    return collect(wanted, [&](Reduction r) { return reducer.value(r); });
  }
  return collect(wanted, [&](Reduction r) { return Value(one_real(tensor.dtype(), real_value(tensor, summary, r))); });
}

double mean_of(const TensorView& tensor) noexcept {
  const std::int64_t count = tensor.element_count();
  const Family family = family_of(tensor.dtype());
  if (count <= 0 || tensor.data() == nullptr) return kNan;
  if (family == Family::kInteger) return mean_of_int(summarize_int(tensor, {}).sum, count);
  if (family != Family::kReal) return kNan;
  return real_value(tensor, summarize_real(tensor, {}), {ReductionKind::kMean, false});
}

}  // namespace tornasole::reduce
