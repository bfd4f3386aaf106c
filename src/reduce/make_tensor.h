#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "tornasole/tensor.h"

namespace tornasole::reduce {

// An owned tensor with a copy of the values, row-major.
template <typename T>
Tensor make_tensor(std::span<const T> values, Shape shape) {
  std::string bytes(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
  return {DTypeOf<T>::value, std::move(shape), std::move(bytes)};
}

// Beyond the largest float: infinite, by rule and not by the undefined behaviour of a cast.
inline float to_float(double value) noexcept {
  if (std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max())) return static_cast<float>(value);
  if (std::isnan(value)) return std::numeric_limits<float>::quiet_NaN();
  // What rounds to the largest float still does.
  constexpr double kRoundsUp = 0x1.ffffffp127;
  const float size =
      std::fabs(value) < kRoundsUp ? std::numeric_limits<float>::max() : std::numeric_limits<float>::infinity();
  return value < 0 ? -size : size;
}

}  // namespace tornasole::reduce
