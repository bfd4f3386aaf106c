// Statistics per unit: elements are walked in the order of memory where that is possible, and each goes to the sum of
// its unit. Two shapes of loop cover every layout: units side by side (the unit axis is the innermost one), or runs of
// samples of the same unit.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/derived.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"

namespace tornasole::reduce {
namespace {

// The tensor as [outer, units, inner], elements in row-major order.
struct UnitView {
  TensorView view;
  std::size_t units = 1;
  std::size_t inner = 1;
  double samples = 0;  // per unit
};

std::size_t unit_axis(const Shape& shape) noexcept { return shape.rank() >= 3 ? 1 : shape.rank() - 1; }

// Which sample is which does not matter, so the unit axis may go last if its elements lie closest in memory, as in a
// channels-last tensor.
TensorView with_units_last(const TensorView& tensor, std::size_t axis) {
  std::vector<std::int64_t> extents, strides;
  for (std::size_t i = 0; i < tensor.shape().rank(); ++i) {
    if (i == axis) continue;
    extents.push_back(tensor.shape()[i]);
    strides.push_back(tensor.strides_bytes()[i]);
  }
  extents.push_back(tensor.shape()[axis]);
  strides.push_back(tensor.strides_bytes()[axis]);
  return {tensor.dtype(), tensor.data(), Shape(extents), strides};
}

bool is_innermost(const TensorView& tensor, std::size_t axis) {
  const auto strides = tensor.strides_bytes();
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (i != axis && tensor.shape()[i] > 1 && std::abs(strides[i]) < std::abs(strides[axis])) return false;
  }
  return true;
}

Result<UnitView> view_units(const TensorView& tensor, std::string_view what) {
  TORNASOLE_CHECK(check_real_elements(tensor, what));
  const Shape& shape = tensor.shape();
  if (shape.rank() == 0) return UnitView{tensor, 1, 1, 1};
  const std::size_t axis = unit_axis(shape);
  if (shape[axis] > kMaxUnits) {
    return invalid_error("{} of a tensor of shape {}: {} units; at most {} are allowed", what, shape.to_string(),
                         shape[axis], kMaxUnits);
  }
  UnitView units{tensor, static_cast<std::size_t>(shape[axis]), 1, 0};
  if (units.units > 0) units.samples = static_cast<double>(tensor.element_count() / shape[axis]);
  if (!tensor.strides_bytes().empty() && is_innermost(tensor, axis)) {
    units.view = with_units_last(tensor, axis);
  } else {
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) units.inner *= static_cast<std::size_t>(shape[i]);
  }
  return units;
}

// Calls side_by_side(first unit, values, count) for elements of neighbouring units, one each, or run(unit, values,
// count) for elements of one unit.
template <typename SideBySide, typename Run>
void for_each_unit_block(const UnitView& units, const SideBySide& side_by_side, const Run& run) {
  std::size_t unit = 0;
  std::size_t place = 0;  // within the run of the unit
  with_value_load(units.view.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    for_each_block<Raw>(units.view, ElementOrder::kRowMajor, [&](const Raw* raw, std::size_t size) {
      std::array<double, kBlockElements> x;
      for (std::size_t i = 0; i < size; ++i) x[i] = load(raw[i]);
      for (std::size_t i = 0; i < size;) {
        std::size_t count = 0;
        if (units.inner == 1) {
          count = std::min(size - i, units.units - unit);
          side_by_side(unit, &x[i], count);
          unit += count;
        } else {
          count = std::min(size - i, units.inner - place);
          run(unit, &x[i], count);
          place += count;
          unit += place == units.inner ? 1 : 0;
          if (place == units.inner) place = 0;
        }
        if (unit == units.units) unit = 0;
        i += count;
      }
      return true;
    });
  });
}

// float32 [U]: the share of samples for which `is_counted` holds.
template <typename Predicate>
Tensor share_of_samples(const UnitView& units, const Predicate& is_counted) {
  std::vector<std::int64_t> hits(units.units);
  for_each_unit_block(
      units,
      [&](std::size_t first, const double* x, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) hits[first + i] += static_cast<std::int64_t>(is_counted(x[i]));
      },
      [&](std::size_t unit, const double* x, std::size_t count) {
        std::uint32_t of_run = 0;
        for (std::size_t i = 0; i < count; ++i) of_run += static_cast<std::uint32_t>(is_counted(x[i]));
        hits[unit] += of_run;
      });
  std::vector<float> shares(units.units);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] = static_cast<float>(static_cast<double>(hits[i]) / units.samples);  // 0 / 0 is NaN
  }
  return make_tensor<float>(shares, Shape{static_cast<std::int64_t>(units.units)});
}

}  // namespace

Result<Tensor> unit_activity(const TensorView& tensor) {
  TORNASOLE_TRY(const UnitView units, view_units(tensor, "unit_activity"));
  return share_of_samples(units, [](double x) { return x > 0; });
}

Result<Tensor> unit_range(const TensorView& tensor, ValueRange bounds) {
  if (!(bounds.low <= bounds.high)) {
    return invalid_error("unit_range with the bounds {} and {}: not allowed; allowed: two numbers in order", bounds.low,
                         bounds.high);
  }
  TORNASOLE_TRY(const UnitView units, view_units(tensor, "unit_range"));
  return share_of_samples(units, [bounds](double x) { return !(x >= bounds.low && x <= bounds.high); });
}

Result<Tensor> across_samples(const TensorView& tensor) {
  TORNASOLE_TRY(const UnitView units, view_units(tensor, "across_samples"));
  const std::size_t u = units.units;
  // Terms of the mean may cancel after their sum overflowed, so they are summed scaled down. Squares and magnitudes
  // never cancel: where their sums overflow, so do the results.
  constexpr double kDown = 0x1p-64;
  std::vector<double> sums(3 * u);
  double* const sum = sums.data();
  double* const squares = sum + u;
  double* const magnitudes = squares + u;
  for_each_unit_block(
      units,
      [&](std::size_t first, const double* x, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          sum[first + i] += x[i] * kDown;
          squares[first + i] += x[i] * x[i];
          magnitudes[first + i] += std::fabs(x[i]);
        }
      },
      [&](std::size_t unit, const double* x, std::size_t count) {
        Lanes lane_sum{}, lane_squares{}, lane_magnitudes{};
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t lane = i % kLanes;
          lane_sum[lane] += x[i] * kDown;
          lane_squares[lane] += x[i] * x[i];
          lane_magnitudes[lane] += std::fabs(x[i]);
        }
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          sum[unit] += lane_sum[lane];
          squares[unit] += lane_squares[lane];
          magnitudes[unit] += lane_magnitudes[lane];
        }
      });
  std::vector<float> means(3 * u);
  for (std::size_t i = 0; i < u; ++i) means[i] = to_float(sums[i] / units.samples / kDown);
  for (std::size_t i = u; i < means.size(); ++i) means[i] = to_float(sums[i] / units.samples);
  return make_tensor<float>(means, Shape{3, static_cast<std::int64_t>(u)});
}

}  // namespace tornasole::reduce
