#pragma once

// The elements of a tensor, one by one, as the C++ type that holds them exactly: float for the small floats.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "reduce/small_floats.h"
#include "tornasole/tensor.h"

namespace tornasole::tools {

// Elements need not be aligned: views point into event files.
template <typename T>
struct PlainLoad {
  using Value = T;
  static constexpr std::size_t kBytes = sizeof(T);
  T operator()(const std::byte* data, std::int64_t position) const noexcept {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>(position) * sizeof(T), sizeof(T));
    return value;
  }
};
struct BoolLoad {
  using Value = bool;
  static constexpr std::size_t kBytes = 1;
  bool operator()(const std::byte* data, std::int64_t position) const noexcept {
    return data[position] != std::byte{0};
  }
};
template <typename Bits, float (*kConvert)(Bits) noexcept>
struct SmallFloatLoad {
  using Value = float;
  static constexpr std::size_t kBytes = sizeof(Bits);
  float operator()(const std::byte* data, std::int64_t position) const noexcept {
    return kConvert(PlainLoad<Bits>{}(data, position));
  }
};

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// Calls visit with the load of the type; not for strings, for which it is not called and false is returned.
template <typename Visit>
bool visit_elements(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kFloat32: visit(PlainLoad<float>{}); return true;
    case DType::kFloat64: visit(PlainLoad<double>{}); return true;
    case DType::kInt32: visit(PlainLoad<std::int32_t>{}); return true;
    case DType::kUint8: visit(PlainLoad<std::uint8_t>{}); return true;
    case DType::kInt16: visit(PlainLoad<std::int16_t>{}); return true;
    case DType::kInt8: visit(PlainLoad<std::int8_t>{}); return true;
    case DType::kComplex64: visit(PlainLoad<std::complex<float>>{}); return true;
    case DType::kInt64: visit(PlainLoad<std::int64_t>{}); return true;
    case DType::kBool: visit(BoolLoad{}); return true;
    case DType::kBfloat16: visit(SmallFloatLoad<std::uint16_t, reduce::float_from_bfloat16>{}); return true;
    case DType::kUint16: visit(PlainLoad<std::uint16_t>{}); return true;
    case DType::kComplex128: visit(PlainLoad<std::complex<double>>{}); return true;
    case DType::kFloat16: visit(SmallFloatLoad<std::uint16_t, reduce::float_from_half>{}); return true;
    case DType::kUint32: visit(PlainLoad<std::uint32_t>{}); return true;
    case DType::kUint64: visit(PlainLoad<std::uint64_t>{}); return true;
    case DType::kFloat8E5m2: visit(SmallFloatLoad<std::uint8_t, reduce::float_from_e5m2>{}); return true;
    case DType::kFloat8E4m3fn: visit(SmallFloatLoad<std::uint8_t, reduce::float_from_e4m3fn>{}); return true;
    case DType::kString: break;
  }
  return false;
}

// A tensor as a view of itself; `texts` holds what a view of strings borrows.
TensorView view_of(const Tensor& tensor, std::vector<std::string_view>* texts);

// One element as text: shortest number that reads back equal, "NaN", "Infinity", "-Infinity", "true", "1+2i", a text as
// it is.
std::string element_text(const Tensor& tensor, std::int64_t position);
// The same of one number.
std::string number_text(double number);
std::string number_text(float number);

// Row-major position -> one index per dimension; empty for a tensor of no dimensions.
std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t position);

}  // namespace tornasole::tools
