#pragma once

#include <cmath>
#include <vector>

#include "rules/tensor_numbers.h"

namespace tornasole::rules {

// The middle of numbers and how far they lie from it, as a few wild ones cannot change it.
struct RobustSpread {
  double median = 0;
  double deviation = 0;  // 1.4826 times the median distance: the standard deviation of normal numbers
};
inline RobustSpread robust_spread(std::vector<double> numbers) {
  constexpr double kOfNormal = 1.4826;
  const double median = quantile(numbers, 0.5);
  for (double& number : numbers) number = std::fabs(number - median);
  return {median, kOfNormal * quantile(numbers, 0.5)};
}

}  // namespace tornasole::rules
