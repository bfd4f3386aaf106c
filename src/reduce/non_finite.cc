// Questions about the bits of floating-point elements: is any NaN or infinite, where is the first, how many are at the
// edges of their type. A block is tested without branches; for the first, the block is then searched one by one.

#include <cstdint>

#include "reduce/blocks.h"
#include "reduce/reduce.h"

namespace tornasole::reduce {
namespace {

// The bits of a floating-point type, or of the parts of a complex one.
template <typename BitsType, unsigned kParts, std::uint64_t kExponentMask, std::uint64_t kLargestBits,
          std::uint64_t kSmallestNormalBits>
struct Layer {
  using Bits = BitsType;
  struct Raw {
    Bits part[kParts];
  };
  // All bits of the mask set means NaN or infinite.
  static constexpr auto kNonFinite = static_cast<Bits>(kExponentMask);
  static constexpr auto kMagnitude = static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1)));
  static bool is_non_finite(const Raw& raw) noexcept {
    Bits found = 0;
    for (const Bits part : raw.part) found = static_cast<Bits>(found | ((part & kNonFinite) == kNonFinite ? 1 : 0));
    return found != 0;
  }
  static bool is_subnormal(const Raw& raw) noexcept {
    bool found = false;
    for (const Bits part : raw.part) {
      const auto magnitude = static_cast<Bits>(part & kMagnitude);
      found = found || (magnitude != 0 && magnitude < static_cast<Bits>(kSmallestNormalBits));
    }
    return found;
  }
  static bool is_at_max(const Raw& raw) noexcept {
    bool found = false;
    for (const Bits part : raw.part) found = found || (part & kMagnitude) == static_cast<Bits>(kLargestBits);
    return found;
  }
};
template <unsigned kParts>
using Float32 = Layer<std::uint32_t, kParts, 0x7F800000U, 0x7F7FFFFFU, 0x00800000U>;
template <unsigned kParts>
using Float64 = Layer<std::uint64_t, kParts, 0x7FF0000000000000U, 0x7FEFFFFFFFFFFFFFU, 0x0010000000000000U>;
using Float16 = Layer<std::uint16_t, 1, 0x7C00U, 0x7BFFU, 0x0400U>;
using Bfloat16 = Layer<std::uint16_t, 1, 0x7F80U, 0x7F7FU, 0x0080U>;
using Float8E5m2 = Layer<std::uint8_t, 1, 0x7CU, 0x7BU, 0x04U>;
using Float8E4m3fn = Layer<std::uint8_t, 1, 0x7FU, 0x7EU, 0x08U>;  // no infinities: the exponent is used up to its end

// function(Layer) of a floating-point or complex type; `otherwise` for all others and for a tensor without elements.
template <typename T, typename Function>
T with_layer(const TensorView& tensor, T otherwise, const Function& function) noexcept {
  if (tensor.element_count() <= 0 || tensor.data() == nullptr) return otherwise;
  switch (tensor.dtype()) {
    case DType::kFloat32: return function(Float32<1>{});
    case DType::kFloat64: return function(Float64<1>{});
    case DType::kFloat16: return function(Float16{});
    case DType::kBfloat16: return function(Bfloat16{});
    case DType::kFloat8E5m2: return function(Float8E5m2{});
    case DType::kFloat8E4m3fn: return function(Float8E4m3fn{});
    case DType::kComplex64: return function(Float32<2>{});
    case DType::kComplex128: return function(Float64<2>{});
    default: return otherwise;
  }
}

template <typename Layer>
bool has_non_finite_in(const typename Layer::Raw* x, std::size_t count) noexcept {
  unsigned found = 0;
  for (std::size_t i = 0; i < count; ++i) found |= Layer::is_non_finite(x[i]) ? 1U : 0U;
  return found != 0;
}

}  // namespace

bool has_non_finite(const TensorView& tensor) noexcept {
  return with_layer(tensor, false, [&]<typename Layer>(Layer) {
    using Raw = typename Layer::Raw;
    return !for_each_block<Raw>(tensor, ElementOrder::kAny,
                                [](const Raw* x, std::size_t count) { return !has_non_finite_in<Layer>(x, count); });
  });
}

std::int64_t first_non_finite(const TensorView& tensor) noexcept {
  return with_layer(tensor, std::int64_t{-1}, [&]<typename Layer>(Layer) {
    using Raw = typename Layer::Raw;
    std::int64_t position = 0;
    const bool is_finite = for_each_block<Raw>(tensor, ElementOrder::kRowMajor, [&](const Raw* x, std::size_t count) {
      if (has_non_finite_in<Layer>(x, count)) {
        while (!Layer::is_non_finite(*x)) ++x, ++position;
        return false;
      }
      position += static_cast<std::int64_t>(count);
      return true;
    });
    return is_finite ? std::int64_t{-1} : position;
  });
}

EdgeCounts count_edges(const TensorView& tensor) noexcept {
  return with_layer(tensor, EdgeCounts{}, [&]<typename Layer>(Layer) {
    using Raw = typename Layer::Raw;
    EdgeCounts edges;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      std::uint32_t subnormal = 0, at_max = 0;
      for (std::size_t i = 0; i < count; ++i) subnormal += Layer::is_subnormal(x[i]) ? 1 : 0;
      for (std::size_t i = 0; i < count; ++i) at_max += Layer::is_at_max(x[i]) ? 1 : 0;
      edges.subnormal += subnormal;
      edges.at_max += at_max;
      return true;
    });
    return edges;
  });
}

}  // namespace tornasole::reduce
