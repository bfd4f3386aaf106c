#pragma once

// Whether two tensors are the same, told by their numbers: equal ones have them to the bit, whatever the number.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "rules/check/run_record.h"

namespace tornasole::rules {

enum class Likeness : std::uint8_t { kUnknown, kEqual, kDifferent };

inline Likeness compare_numbers(const History& a, std::size_t row_a, const History& b, std::size_t row_b) {
  std::size_t known = 0;
  for (const Column column : {Column::kMean, Column::kL2, Column::kMin, Column::kMax, Column::kAbsMean}) {
    const double first = a.at(column, row_a);
    const double second = b.at(column, row_b);
    if (std::isnan(first) || std::isnan(second)) continue;
    ++known;
    if (first != second) return Likeness::kDifferent;
  }
  // One number may agree by chance.
  return known >= 3 ? Likeness::kEqual : Likeness::kUnknown;
}

// Batches of one number alone are no samples.
inline Likeness compare_batches(const History& a, std::size_t row_a, const History& b, std::size_t row_b) {
  if (!(a.at(Column::kStd, row_a) > 0)) return Likeness::kUnknown;
  return compare_numbers(a, row_a, b, row_b);
}

}  // namespace tornasole::rules
