#include "cli/element_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "reduce/small_floats.h"

namespace tornasole::cli {
namespace {

ElementKind kind_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kString: return ElementKind::kText;
    case DType::kBool: return ElementKind::kBool;
    case DType::kComplex64:
    case DType::kComplex128: return ElementKind::kComplex;
    default: return dtype_is_inexact(dtype) ? ElementKind::kReal : ElementKind::kInteger;
  }
}

std::int64_t count_of(const Tensor& tensor) noexcept {
  const std::int64_t claimed = std::max<std::int64_t>(tensor.element_count(), 0);
  const std::size_t size = dtype_size(tensor.dtype());
  const std::size_t held = size == 0 ? tensor.texts().size() : tensor.bytes().size() / size;
  return std::min(claimed, static_cast<std::int64_t>(held));
}

// The bytes of a tensor have no promised alignment once they were cut out of a file.
template <typename T>
T load(const Tensor& tensor, std::int64_t position) noexcept {
  T value;
  std::memcpy(&value, tensor.bytes().data() + static_cast<std::size_t>(position) * sizeof(T), sizeof(T));
  return value;
}

template <typename Function>
auto with_integer(const Tensor& tensor, std::int64_t position, const Function& function) {
  switch (tensor.dtype()) {
    case DType::kInt8: return function(load<std::int8_t>(tensor, position));
    case DType::kInt16: return function(load<std::int16_t>(tensor, position));
    case DType::kInt32: return function(load<std::int32_t>(tensor, position));
    case DType::kInt64: return function(load<std::int64_t>(tensor, position));
    case DType::kUint16: return function(load<std::uint16_t>(tensor, position));
    case DType::kUint32: return function(load<std::uint32_t>(tensor, position));
    case DType::kUint64: return function(load<std::uint64_t>(tensor, position));
    default: return function(load<std::uint8_t>(tensor, position));
  }
}

}  // namespace

ElementReader::ElementReader(const Tensor& tensor) noexcept
    : tensor_(tensor), kind_(kind_of(tensor.dtype())), count_(count_of(tensor)) {}

double ElementReader::real(std::int64_t position) const noexcept {
  switch (tensor_.dtype()) {
    case DType::kFloat32: return static_cast<double>(load<float>(tensor_, position));
    case DType::kFloat64: return load<double>(tensor_, position);
    case DType::kFloat16: return static_cast<double>(reduce::float_from_half(load<std::uint16_t>(tensor_, position)));
    case DType::kBfloat16:
      return static_cast<double>(reduce::float_from_bfloat16(load<std::uint16_t>(tensor_, position)));
    case DType::kFloat8E5m2: return static_cast<double>(reduce::float_from_e5m2(load<std::uint8_t>(tensor_, position)));
    case DType::kFloat8E4m3fn:
      return static_cast<double>(reduce::float_from_e4m3fn(load<std::uint8_t>(tensor_, position)));
    case DType::kComplex64: return static_cast<double>(load<float>(tensor_, 2 * position));
    case DType::kComplex128: return load<double>(tensor_, 2 * position);
    case DType::kBool: return load<std::uint8_t>(tensor_, position) != 0 ? 1 : 0;
    case DType::kString: return 0;
    default: return with_integer(tensor_, position, [](auto value) { return static_cast<double>(value); });
  }
}

double ElementReader::imaginary(std::int64_t position) const noexcept {
  if (tensor_.dtype() == DType::kComplex64) return static_cast<double>(load<float>(tensor_, 2 * position + 1));
  if (tensor_.dtype() == DType::kComplex128) return load<double>(tensor_, 2 * position + 1);
  return 0;
}

std::string ElementReader::integer_text(std::int64_t position) const {
  return with_integer(tensor_, position, [](auto value) { return fmt::format("{}", +value); });
}

const std::string& ElementReader::text(std::int64_t position) const noexcept {
  return tensor_.texts()[static_cast<std::size_t>(position)];
}

}  // namespace tornasole::cli
