#include <algorithm>
#include <cassert>
#include <utility>

#include "reduce/kernels.h"

namespace tornasole::reduce {

double Scaled::to_double() const noexcept {
  if (exponent == 0) return value;
  return std::ldexp(value, static_cast<int>(std::clamp<std::int64_t>(exponent, -10'000, 10'000)));
}

Scaled Scaled::square_root() const noexcept {
  assert(exponent % 2 == 0);
  return {std::sqrt(value), exponent / 2};
}

Scaled operator+(Scaled a, Scaled b) noexcept {
  if (a.value == 0) return b;
  if (b.value == 0) return a;
  if (a.exponent < b.exponent) std::swap(a, b);
  return {a.value + Scaled{b.value, b.exponent - a.exponent}.to_double(), a.exponent};
}

}  // namespace tornasole::reduce
