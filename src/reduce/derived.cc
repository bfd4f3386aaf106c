#include "reduce/derived.h"

#include <xxhash.h>

#include <bit>
#include <memory>
#include <string>

#include "reduce/blocks.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"
#include "reduce/reduce.h"

namespace tornasole::reduce {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"counts",         "unit_activity", "unit_range",
                                                    "across_samples", "update",        "cosine_previous",
                                                    "quantiles",      "hash",          "classes"};

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
  Counts found;
  reduce(tensor, {}, /*threads=*/1, &found);
  const bool is_finite = found.nan + found.positive_infinite + found.negative_infinite == 0;
  const std::array<std::int64_t, 6> values = {tensor.element_count(),
                                              found.zeros,
                                              found.nan,
                                              found.positive_infinite,
                                              found.negative_infinite,
                                              is_finite ? -1 : first_non_finite(tensor)};
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
