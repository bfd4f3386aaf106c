#include <complex>
#include <cstring>
#include <limits>

#include "reduce/blocks.h"
#include "reduce/reduce.h"
#include "reduce/small_floats.h"

namespace tornasole::reduce {
namespace {

// The row-major tensor of To with every element converted.
template <typename Raw, typename To, typename Convert>
Tensor converted(const TensorView& tensor, const Convert& convert) {
  std::string bytes(static_cast<std::size_t>(tensor.element_count()) * sizeof(To), '\0');
  char* out = bytes.data();
  for_each_block<Raw>(tensor, ElementOrder::kRowMajor, [&](const Raw* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, out += sizeof(To)) {
      const To value = convert(x[i]);
      std::memcpy(out, &value, sizeof value);
    }
    return true;
  });
  return {DTypeOf<To>::value, tensor.shape(), std::move(bytes)};
}

template <typename Raw, typename To>
Tensor widened(const TensorView& tensor) {
  return converted<Raw, To>(tensor, [](Raw raw) { return static_cast<To>(raw); });
}

bool fits_int64(const TensorView& tensor) noexcept {
  using U = std::uint64_t;
  return for_each_block<U>(tensor, ElementOrder::kAny, [](const U* x, std::size_t count) {
    U all = 0;
    for (std::size_t i = 0; i < count; ++i) all |= x[i];
    return (all >> 63) == 0;
  });
}

}  // namespace

std::optional<Tensor> widen_for_smdebug(const TensorView& tensor, bool* is_exact_only) {
  if (is_exact_only != nullptr) *is_exact_only = false;
  const std::int64_t count = tensor.element_count();
  if (count < 0 || (count > 0 && tensor.data() == nullptr)) return std::nullopt;
  switch (tensor.dtype()) {
    case DType::kInt8: return widened<std::int8_t, std::int32_t>(tensor);
    case DType::kInt16: return widened<std::int16_t, std::int32_t>(tensor);
    case DType::kUint16: return widened<std::uint16_t, std::int32_t>(tensor);
    case DType::kUint32: return widened<std::uint32_t, std::int64_t>(tensor);
    case DType::kComplex64:
      return converted<std::complex<float>, std::complex<double>>(
          tensor, [](std::complex<float> raw) { return std::complex<double>(raw); });
    case DType::kBfloat16: return converted<std::uint16_t, float>(tensor, float_from_bfloat16);
    case DType::kFloat8E5m2: return converted<std::uint8_t, float>(tensor, float_from_e5m2);
    case DType::kFloat8E4m3fn: return converted<std::uint8_t, float>(tensor, float_from_e4m3fn);
    case DType::kUint64:
      if (fits_int64(tensor)) return widened<std::uint64_t, std::int64_t>(tensor);
      if (is_exact_only != nullptr) *is_exact_only = true;
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace tornasole::reduce
