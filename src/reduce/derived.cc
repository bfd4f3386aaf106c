#include "reduce/derived.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include "reduce/blocks.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"

namespace tornasole::reduce {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"counts",         "unit_activity", "unit_range",
                                                    "across_samples", "update",        "cosine_previous",
                                                    "quantiles",      "hash",          "classes"};

struct Counted {
  std::int64_t zeros = 0;
  std::int64_t nan = 0;
  std::int64_t pos_inf = 0;
  std::int64_t neg_inf = 0;
  std::int64_t first_bad = -1;
};

// A floating-point type by its bits. They are looked at as integers: the processor of a training process may have been
// told to take subnormal numbers for zero.
template <typename Bits>
struct FloatBits {
  Bits infinity;      // magnitudes beyond it are NaN
  bool has_infinity;  // else that magnitude is an ordinary number
};

template <typename Bits>
Counted count_floats(const TensorView& tensor, FloatBits<Bits> type) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  Counted counted;
  std::int64_t at = 0;
  for_each_block<Bits>(tensor, ElementOrder::kRowMajor, [&](const Bits* x, std::size_t size) {
    std::uint32_t zeros = 0;
    std::uint32_t bad = 0;
    const Bits first_bad = type.has_infinity ? type.infinity : static_cast<Bits>(type.infinity + 1);
    for (std::size_t i = 0; i < size; ++i) {
      const auto magnitude = static_cast<Bits>(x[i] & static_cast<Bits>(~kSign));
      zeros += static_cast<std::uint32_t>(magnitude == 0);
      bad += static_cast<std::uint32_t>(magnitude >= first_bad);
    }
    counted.zeros += zeros;
    for (std::size_t i = 0; bad > 0 && i < size; ++i) {
      const auto magnitude = static_cast<Bits>(x[i] & static_cast<Bits>(~kSign));
      if (magnitude < first_bad) continue;
      --bad;
      if (counted.first_bad < 0) counted.first_bad = at + static_cast<std::int64_t>(i);
      if (magnitude > type.infinity) {
        ++counted.nan;
      } else {
        ++((x[i] & kSign) != 0 ? counted.neg_inf : counted.pos_inf);
      }
    }
    at += static_cast<std::int64_t>(size);
    return true;
  });
  return counted;
}

template <typename Part>
struct ComplexParts {
  Part real, imaginary;
};

template <typename Part>
Counted count_complex(const TensorView& tensor, Part infinity) {
  constexpr Part kSign = Part{1} << (8 * sizeof(Part) - 1);
  Counted counted;
  std::int64_t at = 0;
  for_each_block<ComplexParts<Part>>(tensor, ElementOrder::kRowMajor,
                                     [&](const ComplexParts<Part>* x, std::size_t size) {
                                       for (std::size_t i = 0; i < size; ++i, ++at) {
                                         const Part real = x[i].real & ~kSign;
                                         const Part imaginary = x[i].imaginary & ~kSign;
                                         counted.zeros += (real | imaginary) == 0 ? 1 : 0;
                                         if (real < infinity && imaginary < infinity) continue;
                                         ++(real > infinity || imaginary > infinity ? counted.nan : counted.pos_inf);
                                         if (counted.first_bad < 0) counted.first_bad = at;
                                       }
                                       return true;
                                     });
  return counted;
}

std::int64_t count_zero_ints(const TensorView& tensor) {
  std::int64_t zeros = 0;
  with_int_load(tensor.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t size) {
      std::uint32_t of_block = 0;
      for (std::size_t i = 0; i < size; ++i) of_block += static_cast<std::uint32_t>(load(x[i]) == 0);
      zeros += of_block;
      return true;
    });
  });
  return zeros;
}

Counted count_elements(const TensorView& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32: return count_floats<std::uint32_t>(tensor, {0x7F800000U, true});
    case DType::kFloat64: return count_floats<std::uint64_t>(tensor, {0x7FF0000000000000U, true});
    case DType::kFloat16: return count_floats<std::uint16_t>(tensor, {0x7C00U, true});
    case DType::kBfloat16: return count_floats<std::uint16_t>(tensor, {0x7F80U, true});
    case DType::kFloat8E5m2: return count_floats<std::uint8_t>(tensor, {0x7CU, true});
    case DType::kFloat8E4m3fn: return count_floats<std::uint8_t>(tensor, {0x7EU, false});
    case DType::kComplex64: return count_complex<std::uint32_t>(tensor, 0x7F800000U);
    case DType::kComplex128: return count_complex<std::uint64_t>(tensor, 0x7FF0000000000000U);
    default: return {.zeros = count_zero_ints(tensor)};
  }
}

struct FreeState {
  void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};

template <std::size_t kSize>
struct ElementBytes {
  std::array<std::byte, kSize> bytes;
};

template <std::size_t kSize>
bool feed(XXH3_state_t* state, const TensorView& tensor) {
  using Raw = ElementBytes<kSize>;
  return for_each_block<Raw>(tensor, ElementOrder::kRowMajor, [state](const Raw* x, std::size_t size) {
    return XXH3_64bits_update(state, x, size * sizeof(Raw)) == XXH_OK;
  });
}

bool feed_elements(XXH3_state_t* state, const TensorView& tensor) {
  switch (dtype_size(tensor.dtype())) {
    case 1: return feed<1>(state, tensor);
    case 2: return feed<2>(state, tensor);
    case 4: return feed<4>(state, tensor);
    case 8: return feed<8>(state, tensor);
    default: return feed<16>(state, tensor);
  }
}

}  // namespace

std::string_view statistic_name(Statistic statistic) noexcept { return kNames[static_cast<std::size_t>(statistic)]; }

std::optional<Statistic> parse_statistic(std::string_view name) noexcept {
  for (const Statistic statistic : kAllStatistics) {
    if (statistic_name(statistic) == name) return statistic;
  }
  return std::nullopt;
}

Result<Tensor> counts(const TensorView& tensor) {
  TORNASOLE_CHECK(check_elements(tensor, "counts"));
  const Counted counted = count_elements(tensor);
  const std::array<std::int64_t, 6> values = {tensor.element_count(), counted.zeros,   counted.nan,
                                              counted.pos_inf,        counted.neg_inf, counted.first_bad};
  return make_tensor<std::int64_t>(values, {6});
}

Result<Tensor> content_hash(const TensorView& tensor) {
  TORNASOLE_CHECK(check_elements(tensor, "hash"));
  XXH64_hash_t hash = 0;
  if (tensor.is_contiguous()) {
    hash = XXH3_64bits(tensor.data(), static_cast<std::size_t>(tensor.size_bytes()));
  } else {
    const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
    if (state == nullptr || XXH3_64bits_reset(state.get()) != XXH_OK || !feed_elements(state.get(), tensor)) {
      return invalid_error("hash of a tensor of shape {}: no memory", tensor.shape().to_string());
    }
    hash = XXH3_64bits_digest(state.get());
  }
  const std::array<std::int64_t, 1> value = {std::bit_cast<std::int64_t>(hash)};
  return make_tensor<std::int64_t>(value, {1});
}

}  // namespace tornasole::reduce
