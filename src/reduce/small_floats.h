#pragma once

// Exact values of the floating-point types that C++20 has no type for. Every one of them fits a float.
//
// The conversions use integers where a value is subnormal: a training process may have told its processor to take
// subnormal floats for zero.

#include <bit>
#include <cstdint>

namespace tornasole::reduce {

// 1 sign, 5 exponent, 10 mantissa bits. Without branches, so that a loop over it is vectorised.
constexpr float float_from_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t rest = half & 0x7FFFU;
  const std::uint32_t mantissa = half & 0x3FFU;
  const std::uint32_t normal = (rest << 13) + (112U << 23);
  const std::uint32_t special = (rest << 13) | 0x7F800000U;
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(mantissa)) * 0x1p-24F);
  const std::uint32_t magnitude = rest < 0x400U ? subnormal : rest >= 0x7C00U ? special : normal;
  return std::bit_cast<float>(sign | magnitude);
}

// The upper half of a float.
constexpr float float_from_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// 1 sign, 5 exponent, 2 mantissa bits: the upper half of a half.
constexpr float float_from_e5m2(std::uint8_t bits) noexcept {
  return float_from_half(static_cast<std::uint16_t>(bits << 8));
}

// 1 sign, 4 exponent, 3 mantissa bits; no infinities, all ones is NaN.
constexpr float float_from_e4m3fn(std::uint8_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x80U) << 24;
  const std::uint32_t rest = bits & 0x7FU;
  const std::uint32_t normal = (rest << 20) + (120U << 23);
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-9F);
  const std::uint32_t magnitude = rest < 8U ? subnormal : rest == 0x7FU ? 0x7FC00000U : normal;
  return std::bit_cast<float>(sign | magnitude);
}

}  // namespace tornasole::reduce
