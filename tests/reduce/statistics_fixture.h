#pragma once

// What the tests of statistics share: comparison, and a walk over every type, size and layout.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reduce/any_tensor.h"

namespace tornasole::reduce {

inline TensorView view(const Tensor& tensor) { return {tensor.dtype(), tensor.bytes().data(), tensor.shape()}; }

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}
// Equal, NaN to NaN.
template <typename T>
bool are_same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](T x, T y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}
inline bool is_near(long double got, long double want, long double tolerance, long double scale) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::fabs(got - want) <= tolerance * std::max(std::fabs(want), scale);
}

// Runs check(view, dense copy) for every real type, sizes 0 to 70, dense and strided, in one to four dimensions.
template <typename Check>
void for_each_tensor(std::uint32_t seed, const Check& check) {
  TensorMaker maker(seed);
  for (const DType dtype : real_dtypes()) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      const Values values = maker.below(3) == 0 ? Values::kAnyBits : Values::kMixed;
      const std::vector<std::vector<std::int64_t>> shapes = {{count},       {count, 3},    {2, count},
                                                             {2, count, 3}, {3, 2, count}, {2, 3, 2, count / 4}};
      const auto& shape = shapes[static_cast<std::size_t>(count) % shapes.size()];
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + Shape(shape).to_string());
      const Tensor dense = maker.tensor(dtype, Shape(shape), values);
      check(view(dense), dense);
      const AnyTensor strided = maker.strided(dtype, shape, values);
      check(strided.view(), strided.dense());
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace tornasole::reduce
