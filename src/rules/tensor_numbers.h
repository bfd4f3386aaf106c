#pragma once

// The elements of a value as doubles, and what several rules compute from them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reduce/blocks.h"
#include "reduce/element_values.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

inline TensorView view_of(const Tensor& tensor) { return {tensor.dtype(), tensor.bytes().data(), tensor.shape()}; }

// The value, if it has real numbers in it; else null, and the finding that it was skipped and why.
const Tensor* numeric_value(const StepTensor& tensor, Findings& findings);

// Calls function(double) for each element in row-major order, until it returns false; returns whether it never did. The
// value is one that numeric_value gave.
template <typename Function>
bool for_each_number(const Tensor& value, const Function& function) {
  return reduce::with_value_load(value.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    return reduce::for_each_block<Raw>(view_of(value), reduce::ElementOrder::kRowMajor,
                                       [&](const Raw* elements, std::size_t count) {
                                         for (std::size_t i = 0; i < count; ++i) {
                                           if (!function(load(elements[i]))) return false;
                                         }
                                         return true;
                                       });
  });
}

std::vector<double> to_doubles(const Tensor& value);

// The quantile of share q, interpolated linearly between neighbours; reorders the numbers. NaN if one is, and of none.
double quantile(std::span<double> numbers, double q);

struct Tolerance {
  double relative = 1e-5, absolute = 1e-8;
  bool equal_nan = false;
};
// Equal shapes, and |a - b| <= absolute + relative * |b| for every element. Equal infinities are close.
bool all_close(const Tensor& a, const Tensor& b, const Tolerance& tolerance);

}  // namespace tornasole::rules
