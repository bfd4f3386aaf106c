#pragma once

// Two values, element by element, by the rules of tolerance.h.

#include <cstdint>
#include <optional>

#include "tools/tolerance.h"
#include "tornasole/tensor.h"

namespace tornasole::tools {

// How far two numbers are apart.
struct Gap {
  double abs = 0;
  double rel = 0;                         // abs / max(|a|, |b|)
  std::optional<std::uint64_t> ulp = {};  // nothing between two types, and where one is not finite
  bool is_same = true;                    // equal, or both NaN
  bool is_comparable = true;              // false: just one is NaN, or infinities differ; abs and rel are infinite then
};
bool agrees(const Gap& gap, const Tolerance& tolerance) noexcept;

struct Comparison {
  std::int64_t elements_different = 0;     // over the tolerance
  std::optional<std::int64_t> first = {};  // position of the first of them
  Gap first_gap = {};                      // its gap
  double max_abs = 0, max_rel = 0;         // over all elements
  std::uint64_t max_ulp = 0;
};
// Both have the same number of elements; types may differ, but texts are compared with texts alone: any other pair with
// texts differs in every element.
Comparison compare_values(const Tensor& a, const Tensor& b, const Tolerance& tolerance);

}  // namespace tornasole::tools
