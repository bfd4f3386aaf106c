#pragma once

// Counts over the samples of each unit of a layer's tensor.
//
//   rank 2 and more  samples lie along axis 0; one unit per position of the remaining axes, or per position of axis 1
//                    (kChannel), where samples and all other axes are pooled
//   rank 1           one sample; every element is a unit

#include <cstdint>
#include <vector>

#include "rules/tensor_numbers.h"

namespace tornasole::rules {

enum class UnitKind : std::uint8_t { kElement, kChannel };

// How the elements of a value, in row-major order, belong to units: outer blocks, in each the units, of each a run.
struct UnitLayout {
  std::int64_t samples = 1;  // along axis 0
  std::int64_t outer = 1, units = 1, inner = 1;
  std::int64_t elements_per_unit() const noexcept { return outer * inner; }
};
inline UnitLayout unit_layout(const Shape& shape, UnitKind kind) {
  UnitLayout layout;
  if (shape.rank() < 2) {
    layout.units = shape.element_count();
    return layout;
  }
  layout.samples = layout.outer = shape[0];
  if (kind == UnitKind::kChannel) {
    layout.units = shape[1];
    for (std::size_t axis = 2; axis < shape.rank(); ++axis) layout.inner *= shape[axis];
  } else {
    for (std::size_t axis = 1; axis < shape.rank(); ++axis) layout.units *= shape[axis];
  }
  return layout;
}

// Calls function(unit, number) for every element of a value with elements.
template <typename Function>
void for_each_unit_number(const Tensor& value, const UnitLayout& layout, const Function& function) {
  std::int64_t unit = 0;
  std::int64_t in_run = 0;
  for_each_number(value, [&](double number) {
    function(static_cast<std::size_t>(unit), number);
    if (++in_run == layout.inner) {
      in_run = 0;
      if (++unit == layout.units) unit = 0;
    }
    return true;
  });
}

// How many elements of each unit have the property.
template <typename Predicate>
std::vector<std::int64_t> count_by_unit(const Tensor& value, const UnitLayout& layout, const Predicate& has_property) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(layout.units), 0);
  for_each_unit_number(value, layout, [&](std::size_t unit, double number) {
    if (has_property(number)) ++counts[unit];
  });
  return counts;
}

// The share of the units, in percent, of whose elements less than `percent` percent have the property.
inline double inactive_percent(const std::vector<std::int64_t>& active, const UnitLayout& layout, double percent) {
  std::int64_t inactive = 0;
  for (const std::int64_t count : active) {
    const double activity = 100.0 * static_cast<double>(count) / static_cast<double>(layout.elements_per_unit());
    if (activity < percent) ++inactive;
  }
  return 100.0 * static_cast<double>(inactive) / static_cast<double>(active.size());
}

}  // namespace tornasole::rules
