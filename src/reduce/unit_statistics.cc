// Statistics per unit: elements are walked in the order of memory where that is possible, and each goes to the sum of
// its unit. Two shapes of loop cover every layout: units side by side (the unit axis is the innermost one), or runs of
// samples of the same unit.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/derived.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"
#include "reduce/vector_kernels.h"

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

// Calls side_by_side(first unit, elements, count) for elements of neighbouring units, one each, or run(unit, elements,
// count) for elements of one unit. Raw has the size of the elements.
template <typename Raw, typename SideBySide, typename Run>
void for_each_unit_block(const UnitView& units, const SideBySide& side_by_side, const Run& run) {
  std::size_t unit = 0;
  std::size_t place = 0;  // within the run of the unit
  for_each_block<Raw>(units.view, ElementOrder::kRowMajor, [&](const Raw* x, std::size_t size) {
    for (std::size_t i = 0; i < size;) {
      std::size_t count = 0;
      if (units.inner == 1) {
        count = std::min(size - i, units.units - unit);
        side_by_side(unit, x + i, count);
        unit += count;
      } else {
        count = std::min(size - i, units.inner - place);
        run(unit, x + i, count);
        place += count;
        unit += place == units.inner ? 1 : 0;
        if (place == units.inner) place = 0;
      }
      if (unit == units.units) unit = 0;
      i += count;
    }
    return true;
  });
}

// The same with elements of any type as doubles.
template <typename SideBySide, typename Run>
void for_each_unit_value(const UnitView& units, const SideBySide& side_by_side, const Run& run) {
  with_value_load(units.view.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    std::array<double, kBlockElements> values;
    const auto widened = [&](const Raw* raw, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) values[i] = load(raw[i]);
      return values.data();
    };
    for_each_unit_block<Raw>(
        units, [&](std::size_t first, const Raw* raw, std::size_t n) { side_by_side(first, widened(raw, n), n); },
        [&](std::size_t unit, const Raw* raw, std::size_t n) { run(unit, widened(raw, n), n); });
  });
}

Tensor shares_of(const std::vector<std::int64_t>& hits, double samples) {
  std::vector<float> shares(hits.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] = static_cast<float>(static_cast<double>(hits[i]) / samples);  // 0 / 0 is NaN
  }
  return make_tensor<float>(shares, Shape{static_cast<std::int64_t>(hits.size())});
}

// float32 [U]: the share of samples for which `is_counted` holds.
template <typename Predicate>
Tensor share_of_samples(const UnitView& units, const Predicate& is_counted) {
  std::vector<std::int64_t> hits(units.units);
  for_each_unit_value(
      units,
      [&](std::size_t first, const double* x, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) hits[first + i] += static_cast<std::int64_t>(is_counted(x[i]));
      },
      [&](std::size_t unit, const double* x, std::size_t count) {
        std::uint32_t of_run = 0;
        for (std::size_t i = 0; i < count; ++i) of_run += static_cast<std::uint32_t>(is_counted(x[i]));
        hits[unit] += of_run;
      });
  return shares_of(hits, units.samples);
}

Tensor share_of_active_floats(const UnitView& units) {
  const VectorKernels& kernels = vector_kernels();
  std::vector<std::int64_t> hits(units.units);
  std::vector<std::uint32_t> side_by_side(units.units);  // since they were added to `hits`
  std::size_t pending = 0;
  const auto flush = [&] {
    for (std::size_t i = 0; i < hits.size(); ++i) hits[i] += std::exchange(side_by_side[i], 0U);
    pending = 0;
  };
  for_each_unit_block<float>(
      units,
      [&](std::size_t first, const float* x, std::size_t count) {
        kernels.count_active_units(x, count, side_by_side.data() + first);
        if (++pending == std::numeric_limits<std::uint32_t>::max()) flush();
      },
      [&](std::size_t unit, const float* x, std::size_t count) {
        hits[unit] += static_cast<std::int64_t>(kernels.count_active(x, count));
      });
  flush();
  return shares_of(hits, units.samples);
}

void add_lanes_to(double& sum, const Lanes& lanes) {
  for (const double lane : lanes) sum += lane;
}

void add_up_floats(const UnitView& units, const UnitSums& sums) {
  const VectorKernels& kernels = vector_kernels();
  for_each_unit_block<float>(
      units,
      [&](std::size_t first, const float* x, std::size_t count) {
        kernels.add_to_units(x, count, {sums.sum + first, sums.squares + first, sums.magnitudes + first});
      },
      [&](std::size_t unit, const float* x, std::size_t count) {
        BlockSums block;
        kernels.sum_floats(x, count, &block);
        add_lanes_to(sums.sum[unit], block.sum);
        add_lanes_to(sums.squares[unit], block.squares);
        add_lanes_to(sums.magnitudes[unit], block.abs_sum);
      });
}

// The sums of x are those of x * down.
void add_up(const UnitView& units, const UnitSums& sums, double down) {
  for_each_unit_value(
      units,
      [&](std::size_t first, const double* x, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          sums.sum[first + i] += x[i] * down;
          sums.squares[first + i] += x[i] * x[i];
          sums.magnitudes[first + i] += std::fabs(x[i]);
        }
      },
      [&](std::size_t unit, const double* x, std::size_t count) {
        Lanes sum{}, squares{}, magnitudes{};
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t lane = i % kLanes;
          sum[lane] += x[i] * down;
          squares[lane] += x[i] * x[i];
          magnitudes[lane] += std::fabs(x[i]);
        }
        add_lanes_to(sums.sum[unit], sum);
        add_lanes_to(sums.squares[unit], squares);
        add_lanes_to(sums.magnitudes[unit], magnitudes);
      });
}

}  // namespace

Result<Tensor> unit_activity(const TensorView& tensor) {
  TORNASOLE_TRY(const UnitView units, view_units(tensor, "unit_activity"));
  if (tensor.dtype() == DType::kFloat32) return share_of_active_floats(units);
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
  std::vector<double> sums(3 * u);
  const UnitSums places = {sums.data(), sums.data() + u, sums.data() + 2 * u};
  const bool are_floats = tensor.dtype() == DType::kFloat32;
  // Terms of the mean may cancel after their sum overflowed, so they are summed scaled down; floats do not overflow.
  // Squares and magnitudes never cancel: where their sums overflow, so do the results.
  const double down = are_floats ? 1 : 0x1p-64;
  are_floats ? add_up_floats(units, places) : add_up(units, places, down);
  std::vector<float> means(3 * u);
  for (std::size_t i = 0; i < u; ++i) means[i] = to_float(sums[i] / units.samples / down);
  for (std::size_t i = u; i < means.size(); ++i) means[i] = to_float(sums[i] / units.samples);
  return make_tensor<float>(means, Shape{3, static_cast<std::int64_t>(u)});
}

}  // namespace tornasole::reduce
