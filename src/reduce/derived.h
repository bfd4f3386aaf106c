#pragma once

// Derived statistics: small tensors that tell about a large one what no single number does. Pure functions; capture
// stores the results as derived/<statistic>/<tensor> (docs/format.md 6).
//
//   in:  TensorView, contiguous or strided; for two of them also the same tensor as it was before
//   out: Tensor of the type and shape stated here, or kInvalid if the statistic is not defined for the tensor
//   who: capture, queries, rules
//
// The units of a tensor lie along axis 1 for three or more dimensions (channels) and along the last axis otherwise; the
// elements of one unit are its samples. A number without dimensions is one unit with one sample.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reduce/value_range.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

enum class Statistic : std::uint8_t {
  kCounts,
  kUnitActivity,
  kUnitRange,
  kAcrossSamples,
  kUpdate,
  kCosinePrevious,
  kQuantiles,
  kHash,
  kClasses,
};
inline constexpr std::array<Statistic, 9> kAllStatistics = {
    Statistic::kCounts,        Statistic::kUnitActivity, Statistic::kUnitRange,
    Statistic::kAcrossSamples, Statistic::kUpdate,       Statistic::kCosinePrevious,
    Statistic::kQuantiles,     Statistic::kHash,         Statistic::kClasses};
// "counts", "unit_activity": as in configuration and in names of tensors.
std::string_view statistic_name(Statistic statistic) noexcept;
std::optional<Statistic> parse_statistic(std::string_view name) noexcept;

// int64 [6]: elements, zeros, NaN, +Inf, -Inf, row-major position of the first that is not finite or -1. A complex
// element is NaN if a part of it is, else +Inf if a part is infinite.
Result<Tensor> counts(const TensorView& tensor);

// A tensor with more units has statistics as large as itself, and is refused.
inline constexpr std::int64_t kMaxUnits = std::int64_t{1} << 20;
// float32 [U]: the share of the samples with x > 0. A NaN is not active. Without samples: NaN.
Result<Tensor> unit_activity(const TensorView& tensor);
// float32 [U]: the share of the samples that are not in low <= x <= high. A NaN is outside. Without samples: NaN.
Result<Tensor> unit_range(const TensorView& tensor, ValueRange bounds);
// float32 [3, U]: mean, mean square, mean magnitude over the samples. NaN and infinity follow the arithmetic; without
// samples: NaN.
Result<Tensor> across_samples(const TensorView& tensor);

// Both tensors have the same type and shape; else kInvalid. Not for complex numbers.
// float64 [2]: l2 of now - before, l2 of before.
Result<Tensor> update(const TensorView& now, const TensorView& before);
// float64 [2]: cosine of the angle between now and before, NaN if one of them is zero; l2 of before.
Result<Tensor> cosine_previous(const TensorView& now, const TensorView& before);
// Both at the price of one.
struct Movement {
  Tensor update;
  Tensor cosine_previous;
};
Result<Movement> movement(const TensorView& now, const TensorView& before);

// float32 [5]: the 1, 5, 50, 95 and 99 % quantiles, interpolated linearly between neighbours. NaN if an element is, and
// of no elements. Memory does not grow with the tensor.
Result<Tensor> quantiles(const TensorView& tensor);

// int64 [1]: the bits of XXH3-64 of the elements' bytes in row-major order.
Result<Tensor> content_hash(const TensorView& tensor);

inline constexpr std::int64_t kMaxClasses = 65'536;
inline constexpr std::int64_t kMaxPairedClasses = 4'096;
inline constexpr double kIgnoredLabel = -100;  // what PyTorch and what is built on it leave out of a loss
// int64 [C], C one more than the largest label: how often each occurs. Labels are integers, or floats with integral
// values, from 0 to kMaxClasses - 1; kIgnoredLabel is not counted, anything else is kInvalid.
Result<Tensor> class_counts(const TensorView& labels);
// int64 [C, C]: how often label (row) and prediction (column) come together: two tensors of classes, as above, with the
// same number of elements. C is one more than the largest class of both and at least `classes`; at most
// kMaxPairedClasses.
Result<Tensor> class_pairs(const TensorView& labels, const TensorView& predictions, std::int64_t classes = 0);
// int32, the shape without the class axis: where along it the highest score lies; the first of equal ones, a NaN before
// all others.
Result<Tensor> predicted_classes(const TensorView& scores, std::size_t class_axis);

// What rounding to a narrower type would do to the elements.
struct CastLoss {
  std::int64_t underflow = 0;  // not zero, and zero in the target
  std::int64_t overflow = 0;   // finite, and beyond the target's largest finite number after rounding
  bool operator==(const CastLoss&) const = default;
};
// `target` is float16, bfloat16, float8_e5m2 or float8_e4m3fn. Rounds to nearest, ties to even.
Result<CastLoss> cast_loss(const TensorView& tensor, DType target);

}  // namespace tornasole::reduce
