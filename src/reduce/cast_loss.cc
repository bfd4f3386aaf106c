// Magnitudes are compared as bits, in the order of the magnitudes: the processor of a training process may have been
// told to take subnormal numbers for zero, and those are what is counted here.

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include "reduce/blocks.h"
#include "reduce/derived.h"
#include "reduce/element_values.h"

namespace tornasole::reduce {
namespace {

// Up to `to_zero` a magnitude rounds to zero; from `beyond` on, to more than the largest finite number.
struct Limits {
  double to_zero;
  double beyond;
};

std::optional<Limits> limits_of(DType target) noexcept {
  switch (target) {
    // Half of the smallest number is a tie, and zero is even. Half a unit above the largest is one too, and its
    // neighbour above is even.
    case DType::kFloat16: return Limits{0x1p-25, 65520};
    case DType::kBfloat16: return Limits{0x1p-134, 0x1.FFp127};
    case DType::kFloat8E5m2: return Limits{0x1p-17, 61440};
    // Here the largest number itself is the even one: the first beyond is the next number after the tie.
    case DType::kFloat8E4m3fn: return Limits{0x1p-10, 464};
    default: return std::nullopt;
  }
}

// The smallest bits of the type that mean `value` or more; every limit above is a number of both types.
template <typename Float, typename Bits>
constexpr Bits bits_of(double value) noexcept {
  return std::bit_cast<Bits>(static_cast<Float>(value));
}

// BitsOf gives the magnitude of a Raw as the bits of a Float.
template <typename Raw, typename Float, typename Bits, typename BitsOf>
CastLoss count_losses(const TensorView& tensor, DType target, const BitsOf& bits_of_raw) {
  const Limits limits = *limits_of(target);
  const auto to_zero = bits_of<Float, Bits>(limits.to_zero);
  const auto beyond =
      static_cast<Bits>(bits_of<Float, Bits>(limits.beyond) + (target == DType::kFloat8E4m3fn ? Bits{1} : Bits{0}));
  const auto infinite = std::bit_cast<Bits>(std::numeric_limits<Float>::infinity());
  CastLoss loss;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t size) {
    std::uint32_t under = 0;
    std::uint32_t over = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const Bits bits = bits_of_raw(x[i]);
      under += static_cast<std::uint32_t>(bits != 0 && bits <= to_zero);
      over += static_cast<std::uint32_t>(bits >= beyond && bits < infinite);
    }
    loss.underflow += under;
    loss.overflow += over;
    return true;
  });
  return loss;
}

template <typename Raw, typename Convert>
CastLoss count_as_floats(const TensorView& tensor, DType target, const Convert& convert) {
  return count_losses<Raw, float, std::uint32_t>(
      tensor, target, [&](Raw raw) { return std::bit_cast<std::uint32_t>(convert(raw)) & 0x7FFFFFFFU; });
}

}  // namespace

Result<CastLoss> cast_loss(const TensorView& tensor, DType target) {
  TORNASOLE_CHECK(check_real_elements(tensor, "cast_loss"));
  if (!limits_of(target)) {
    return invalid_error("cast_loss to {}: not allowed; allowed: float16, bfloat16, float8_e5m2, float8_e4m3fn",
                         dtype_name(target));
  }
  switch (tensor.dtype()) {
    case DType::kFloat32: return count_as_floats<float>(tensor, target, [](float raw) { return raw; });
    case DType::kFloat16: return count_as_floats<std::uint16_t>(tensor, target, float_from_half);
    case DType::kBfloat16: return count_as_floats<std::uint16_t>(tensor, target, float_from_bfloat16);
    case DType::kFloat8E5m2: return count_as_floats<std::uint8_t>(tensor, target, float_from_e5m2);
    case DType::kFloat8E4m3fn: return count_as_floats<std::uint8_t>(tensor, target, float_from_e4m3fn);
    default: break;
  }
  return with_value_load(tensor.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    return count_losses<Raw, double, std::uint64_t>(tensor, target, [load](Raw raw) {
      return std::bit_cast<std::uint64_t>(load(raw)) & ~(std::uint64_t{1} << 63);
    });
  });
}

}  // namespace tornasole::reduce
