#pragma once

// Tensors of every real type with awkward values, dense and in odd layouts, and their elements one by one.

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "reduce/reference.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

inline std::vector<DType> real_dtypes() {
  std::vector<DType> dtypes;
  for (const DType dtype : kNumericDTypes) {
    if (!is_complex(dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

inline long double element_of(DType dtype, const char* at) {
  std::uint64_t bits = 0;
  const std::size_t size = dtype_size(dtype);
  std::memcpy(&bits, at, size);
  if (dtype == DType::kBool) return bits != 0 ? 1 : 0;
  if (!is_integer(dtype)) return decode_float(dtype, bits);
  const bool is_unsigned =
      dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kUint32 || dtype == DType::kUint64;
  const int shift = static_cast<int>(64 - 8 * size);
  if (is_unsigned) return static_cast<long double>(bits);
  return static_cast<long double>(static_cast<std::int64_t>(bits << shift) >> shift);
}

// Row-major elements of a dense tensor.
inline std::vector<long double> elements_of(const Tensor& tensor) {
  std::vector<long double> elements;
  const std::size_t size = dtype_size(tensor.dtype());
  for (std::size_t at = 0; at < tensor.bytes().size(); at += size) {
    elements.push_back(element_of(tensor.dtype(), tensor.bytes().data() + at));
  }
  return elements;
}

enum class Values { kMixed, kModerate, kAnyBits };

// A tensor in a layout of its own: padded, reversed and permuted axes in one buffer.
struct AnyTensor {
  std::string buffer = {};
  std::size_t offset = 0;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape = {}, strides = {};

  TensorView view() const { return {dtype, buffer.data() + offset, Shape(shape), strides}; }
  Tensor dense() const { return Tensor(view()); }
};

class TensorMaker {
 public:
  explicit TensorMaker(std::uint32_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return (random_() * std::uint64_t{2654435761U} >> 7) % limit; }
  double number() { return std::normal_distribution<double>(0, 2)(random_); }

  std::string bytes(DType dtype, std::size_t count, Values values) {
    const std::size_t size = dtype_size(dtype);
    std::string out(count * size, '\0');
    for (std::size_t i = 0; i < count; ++i) put(dtype, values, out.data() + i * size);
    return out;
  }
  Tensor tensor(DType dtype, Shape shape, Values values) {
    const auto count = static_cast<std::size_t>(shape.element_count());
    return {dtype, std::move(shape), bytes(dtype, count, values)};
  }

  AnyTensor strided(DType dtype, const std::vector<std::int64_t>& shape, Values values) {
    const std::size_t size = dtype_size(dtype);
    AnyTensor made{.dtype = dtype, .shape = shape, .strides = std::vector<std::int64_t>(shape.size())};
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(below(axis + 1)), axis);
    }
    auto stride = static_cast<std::int64_t>(size);
    std::int64_t first = 0;
    for (const std::size_t axis : axes) {
      const auto padding = static_cast<std::int64_t>(below(2));
      const bool is_reversed = below(4) == 0;
      made.strides[axis] = is_reversed ? -stride : stride;
      if (is_reversed && shape[axis] > 0) first += stride * (shape[axis] - 1);
      stride *= std::max<std::int64_t>(shape[axis], 1) + padding;
    }
    const std::size_t misalignment = below(2);
    made.offset = static_cast<std::size_t>(first) + misalignment;
    made.buffer = std::string(misalignment, '\0') + bytes(dtype, static_cast<std::size_t>(stride) / size, values);
    return made;
  }

 private:
  void put(DType dtype, Values values, char* at) {
    const std::size_t size = dtype_size(dtype);
    std::uint64_t bits = (std::uint64_t{random_()} << 32) | random_();
    if (values != Values::kAnyBits && !is_integer(dtype)) {
      const std::uint64_t one = dtype == DType::kFloat64      ? 0x3FF0000000000000U
                                : dtype == DType::kFloat16    ? 0x3C00U
                                : dtype == DType::kBfloat16   ? 0x3F80U
                                : dtype == DType::kFloat32    ? 0x3F800000U
                                : dtype == DType::kFloat8E5m2 ? 0x3CU
                                                              : 0x38U;
      const int wobble = size == 1 ? 3 : size == 2 ? 8 : size == 4 ? 24 : 53;
      const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
      const std::uint64_t any = bits;
      bits = (one ^ (any & ((std::uint64_t{1} << wobble) - 1))) | (below(2) == 0 ? sign : 0);
      if (values == Values::kMixed && below(8) == 0) bits = below(2) == 0 ? 0 : sign;
    }
    const std::uint64_t words[2] = {bits, bits >> 7};  // the second is that of complex128
    std::memcpy(at, words, size);
  }
  std::mt19937 random_;
};

}  // namespace tornasole::reduce
