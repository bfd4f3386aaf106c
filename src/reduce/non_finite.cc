// Is any element NaN or infinite? That is a question about exponent bits, so the test works on integers: a block is
// tested without branches, and the first bad block ends the search.

#include <cstdint>

#include "reduce/blocks.h"
#include "reduce/reduce.h"

namespace tornasole::reduce {
namespace {

// Some element has all the bits of the mask set. The masks are chosen so that this means NaN or infinity.
template <typename Bits>
bool has_all_bits(const Bits* x, std::size_t count, Bits mask) noexcept {
  Bits found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    found = static_cast<Bits>(found | static_cast<Bits>((x[i] & mask) == mask ? 1 : 0));
  }
  return found != 0;
}

template <typename Bits>
bool search(const TensorView& tensor, Bits mask) noexcept {
  return !for_each_block<Bits>(tensor, ElementOrder::kAny,
                               [mask](const Bits* x, std::size_t count) { return !has_all_bits(x, count, mask); });
}

template <typename Bits>
struct Pair {
  Bits real, imaginary;
};

template <typename Bits>
bool search_complex(const TensorView& tensor, Bits mask) noexcept {
  if (tensor.strides_bytes().empty()) {
    // Two floats where there was one complex number: the same bytes, and twice as many elements as before.
    const DType part = sizeof(Bits) == 4 ? DType::kFloat32 : DType::kFloat64;
    return search<Bits>(TensorView(part, tensor.data(), Shape{2 * tensor.element_count()}), mask);
  }
  return !for_each_block<Pair<Bits>>(tensor, ElementOrder::kAny, [mask](const Pair<Bits>* x, std::size_t count) {
    Bits found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      found |= (x[i].real & mask) == mask || (x[i].imaginary & mask) == mask ? 1 : 0;
    }
    return found == 0;
  });
}

}  // namespace

bool has_non_finite(const TensorView& tensor) noexcept {
  if (tensor.element_count() <= 0 || tensor.data() == nullptr) return false;
  constexpr std::uint32_t kFloat32Exponent = 0x7F800000U;
  constexpr std::uint64_t kFloat64Exponent = 0x7FF0000000000000U;
  switch (tensor.dtype()) {
    case DType::kFloat32: return search<std::uint32_t>(tensor, kFloat32Exponent);
    case DType::kFloat64: return search<std::uint64_t>(tensor, kFloat64Exponent);
    case DType::kFloat16: return search<std::uint16_t>(tensor, 0x7C00U);
    case DType::kBfloat16: return search<std::uint16_t>(tensor, 0x7F80U);
    case DType::kFloat8E5m2: return search<std::uint8_t>(tensor, 0x7CU);
    case DType::kFloat8E4m3fn:
      return search<std::uint8_t>(tensor, 0x7FU);  // only NaN; the rest of the exponent is used
    case DType::kComplex64: return search_complex<std::uint32_t>(tensor, kFloat32Exponent);
    case DType::kComplex128: return search_complex<std::uint64_t>(tensor, kFloat64Exponent);
    default: return false;
  }
}

}  // namespace tornasole::reduce
