#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "bindings/arrays.h"
#include "tornasole/tensor.h"

namespace tornasole::python {

template <typename T>
nanobind::object whole_number(const Tensor& tensor) {
  return nanobind::int_(tensor.values<T>().front());
}

// One number as a number of Python, without loss; anything else as an array.
inline nanobind::object to_number(Tensor tensor) {
  if (tensor.element_count() == 1) {
    switch (tensor.dtype()) {
      case DType::kFloat64: return nanobind::float_(tensor.values<double>().front());
      case DType::kFloat32: return nanobind::float_(static_cast<double>(tensor.values<float>().front()));
      case DType::kInt8: return whole_number<std::int8_t>(tensor);
      case DType::kInt16: return whole_number<std::int16_t>(tensor);
      case DType::kInt32: return whole_number<std::int32_t>(tensor);
      case DType::kInt64: return whole_number<std::int64_t>(tensor);
      case DType::kUint8: return whole_number<std::uint8_t>(tensor);
      case DType::kUint16: return whole_number<std::uint16_t>(tensor);
      case DType::kUint32: return whole_number<std::uint32_t>(tensor);
      case DType::kUint64: return whole_number<std::uint64_t>(tensor);
      case DType::kFloat16: return to_numpy(std::move(tensor)).attr("item")();
      default: break;
    }
  }
  return to_numpy(std::move(tensor));
}

}  // namespace tornasole::python
