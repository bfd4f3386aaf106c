#pragma once

// Series: what one name of an index file stands for, as one number: a tensor's value, one of its reductions, or its
// shape. All series of a tensor are neighbours, its value first.

#include <cstdint>
#include <optional>

#include "tornasole/reduction.h"

namespace tornasole::trial {

using Series = std::uint32_t;

// Reductions are numbered from 1; the first that is no reduction we know, and the shape, come last.
inline constexpr std::uint32_t kSeriesPerTensor = 32;
inline constexpr std::uint32_t kValueSeries = 0;
inline constexpr std::uint32_t kUnknownReductionSeries = 30;
inline constexpr std::uint32_t kShapeSeries = 31;
inline constexpr std::uint32_t kMaxTensors = UINT32_MAX / kSeriesPerTensor;

constexpr Series series_of(std::uint32_t tensor, std::uint32_t kind) noexcept {
  return tensor * kSeriesPerTensor + kind;
}
constexpr Series series_of(std::uint32_t tensor, Reduction reduction) noexcept {
  return series_of(tensor, 1 + static_cast<std::uint32_t>(reduction.kind) * 2 + (reduction.of_absolute ? 1 : 0));
}
constexpr std::uint32_t tensor_of(Series series) noexcept { return series / kSeriesPerTensor; }
constexpr std::uint32_t kind_of(Series series) noexcept { return series % kSeriesPerTensor; }
constexpr bool is_value(Series series) noexcept { return kind_of(series) == kValueSeries; }
constexpr bool is_shape(Series series) noexcept { return kind_of(series) == kShapeSeries; }
constexpr std::optional<Reduction> reduction_of(Series series) noexcept {
  const std::uint32_t kind = kind_of(series);
  if (kind == kValueSeries || kind >= kUnknownReductionSeries) return std::nullopt;
  return Reduction{static_cast<ReductionKind>((kind - 1) / 2), (kind - 1) % 2 == 1};
}
static_assert(1 + kAllReductionKinds.size() * 2 <= kUnknownReductionSeries);

}  // namespace tornasole::trial
