#pragma once

// Samples: tensors of every element type, and what smdebug makes of them. The conversions are written out by hand here
// and share nothing with the library's.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tornasole/tensor.h"

namespace interop {

struct Sample {
  tornasole::DType dtype = tornasole::DType::kFloat32;
  std::vector<std::int64_t> shape = {};
  std::string bytes = {};  // row-major
};

// Random bits, NaN payloads and infinities included; truth values where the type has only two.
Sample random_sample(tornasole::DType dtype, std::vector<std::int64_t> shape, std::mt19937_64* random);
// Every bit pattern that smdebug gets as another type and that has one meaning: all finite ones and the infinities.
Sample all_patterns(tornasole::DType dtype);
// Two elements, -4 and 3 or as near as the type has them: every reduction of them is exact.
Sample exact_sample(tornasole::DType dtype);
template <typename T>
Sample sample_of(const std::vector<T>& values, std::vector<std::int64_t> shape) {
  return {tornasole::DTypeOf<T>::value,
          std::move(shape),
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}};
}

tornasole::TensorView view_of(const Sample& sample);

// How smdebug reads the type: NumPy's name; empty if it cannot.
std::string smdebug_dtype(tornasole::DType dtype);
// The sample in the wider type that readable_by_smdebug promises; itself if it needs none.
Sample widened(const Sample& sample);

}  // namespace interop
