#pragma once

// How one element of an integer type, or a bool, becomes the integer that is worked with.

#include <cstdint>
#include <type_traits>

#include "tornasole/tensor.h"

namespace tornasole::reduce {

// The magnitude of the most negative value fits the unsigned type, so no value is special.
template <typename T>
constexpr std::make_unsigned_t<T> magnitude_of(T value) noexcept {
  using U = std::make_unsigned_t<T>;
  const auto bits = static_cast<U>(value);
  return value < 0 ? static_cast<U>(U{0} - bits) : bits;
}

template <typename T>
struct LoadInt {
  using Raw = T;
  using Value = T;
  T operator()(T raw) const noexcept { return raw; }
};
// A bool in memory is any byte; what is not zero counts as one.
struct LoadBool {
  using Raw = std::uint8_t;
  using Value = std::uint8_t;
  std::uint8_t operator()(std::uint8_t raw) const noexcept { return raw != 0 ? 1 : 0; }
};
template <typename Load>
struct LoadIntMagnitude {
  using Raw = typename Load::Raw;
  using Value = std::make_unsigned_t<typename Load::Value>;
  Value operator()(Raw raw) const noexcept { return magnitude_of(Load{}(raw)); }
};

// Calls function(load) with the load of an integer type or bool.
template <typename Function>
auto with_int_load(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kInt8: return function(LoadInt<std::int8_t>{});
    case DType::kInt16: return function(LoadInt<std::int16_t>{});
    case DType::kInt32: return function(LoadInt<std::int32_t>{});
    case DType::kUint8: return function(LoadInt<std::uint8_t>{});
    case DType::kUint16: return function(LoadInt<std::uint16_t>{});
    case DType::kUint32: return function(LoadInt<std::uint32_t>{});
    case DType::kUint64: return function(LoadInt<std::uint64_t>{});
    case DType::kBool: return function(LoadBool{});
    default: return function(LoadInt<std::int64_t>{});
  }
}

}  // namespace tornasole::reduce
