// Medians by selection. Elements are mapped to unsigned keys in the same order, of the width of the element.
//
//   few elements:  copy the keys, std::nth_element.
//   many floats:   a sorted sample brackets the middle; one read counts what lies below the bracket and keeps what lies
//                  in it, a few hundredths of the tensor; the middle is selected among those.
//   otherwise:     no copy; count the keys by their upper 16 bits, then, within the class that holds the middle, by the
//                  next 16 bits, and so on. Memory is one histogram, whatever the tensor's size.

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "reduce/blocks.h"
#include "reduce/int_loads.h"
#include "reduce/kernels.h"
#include "reduce/loads.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {
namespace {

constexpr std::size_t kFewElements = std::size_t{1} << 16;

template <typename Key>
constexpr Key kTopBit = static_cast<Key>(Key{1} << (std::numeric_limits<Key>::digits - 1));

// Bits of an IEEE-like float to its key: negative ones in reverse, below the positive ones.
template <typename Key>
constexpr Key key_of_float(Key bits) noexcept {
  return (bits & kTopBit<Key>) != 0 ? static_cast<Key>(~bits) : static_cast<Key>(bits | kTopBit<Key>);
}
template <typename Key>
constexpr Key float_of_key(Key key) noexcept {
  return (key & kTopBit<Key>) != 0 ? static_cast<Key>(key & ~kTopBit<Key>) : static_cast<Key>(~key);
}
// Without its sign bit a float is its magnitude and in order already.
template <typename Key>
constexpr Key without_sign(Key bits) noexcept {
  return static_cast<Key>(bits & ~kTopBit<Key>);
}

template <typename Key>
struct Middle {
  Key lower, upper;  // the same for an odd number of elements
};

template <typename Raw, typename Key, typename KeyOf>
Middle<Key> select_among_few(const TensorView& tensor, const KeyOf& key_of) {
  std::vector<Key> keys;
  keys.reserve(static_cast<std::size_t>(tensor.element_count()));
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) keys.push_back(key_of(x[i]));
    return true;
  });
  const auto upper = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
  std::nth_element(keys.begin(), upper, keys.end());
  if (keys.size() % 2 == 1) return {*upper, *upper};
  return {*std::max_element(keys.begin(), upper), *upper};
}

template <typename Raw, typename Key, typename KeyOf>
Middle<Key> select_among_many(const TensorView& tensor, const KeyOf& key_of) {
  constexpr int kKeyBits = std::numeric_limits<Key>::digits;
  constexpr int kDigitBits = std::min(kKeyBits, 16);
  constexpr std::uint64_t kDigitMask = (std::uint64_t{1} << kDigitBits) - 1;
  std::vector<std::int64_t> histogram(std::size_t{1} << kDigitBits);
  std::int64_t rank = (tensor.element_count() - 1) / 2;  // of the lower middle, within the class
  std::uint64_t prefix = 0;                              // the digits found so far
  std::int64_t equal = 0;
  for (int shift = kKeyBits - kDigitBits; shift >= 0; shift -= kDigitBits) {
    std::ranges::fill(histogram, 0);
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t digits = std::uint64_t{key_of(x[i])} >> shift;
        if ((digits >> kDigitBits) == prefix) ++histogram[digits & kDigitMask];
      }
      return true;
    });
    std::size_t digit = 0;
    for (; rank >= histogram[digit]; ++digit) rank -= histogram[digit];
    prefix = (prefix << kDigitBits) | digit;
    equal = histogram[digit];
  }
  const auto lower = static_cast<Key>(prefix);
  if (tensor.element_count() % 2 == 1 || rank + 1 < equal) return {lower, lower};
  Key upper = std::numeric_limits<Key>::max();
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Key key = key_of(x[i]);
      if (key > lower) upper = std::min(upper, key);
    }
    return true;
  });
  return {lower, upper};
}

// Of floats without gaps. Nothing if the sample misled or too many elements are equal.
template <typename KeyOf>
std::optional<Middle<std::uint32_t>> select_by_sample(const TensorView& tensor, const KeyOf& key_of, bool of_absolute) {
  const Layout layout(tensor, ElementOrder::kAny);
  if (layout.rank() != 1 || layout.stride(0) != sizeof(float)) return std::nullopt;
  constexpr std::size_t kSample = 16384;
  constexpr std::size_t kMargin = 256;  // four standard deviations of the middle of a sample
  const auto count = static_cast<std::size_t>(layout.extent(0));
  std::vector<std::uint32_t> sample(kSample);
  for (std::size_t i = 0; i < kSample; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, layout.data() + count / kSample * i * sizeof bits, sizeof bits);
    sample[i] = key_of(std::bit_cast<float>(bits));
  }
  std::ranges::sort(sample);
  const std::uint32_t low = sample[kSample / 2 - kMargin], high = sample[kSample / 2 + kMargin];

  std::vector<std::uint32_t> inside(count / 8 + kBlockElements);
  std::size_t below = 0, kept = 0;
  const VectorKernels& kernels = vector_kernels();
  const bool is_done =
      for_each_block<std::uint32_t>(tensor, ElementOrder::kAny, [&](const std::uint32_t* bits, std::size_t n) {
        if (kept + kBlockElements > inside.size()) return false;
        below += kernels.partition_keys(bits, n, low, high, of_absolute, inside.data(), &kept);
        return true;
      });
  const std::size_t lower = (count - 1) / 2, upper = count / 2;
  if (!is_done || lower < below || upper >= below + kept) return std::nullopt;
  const auto begin = inside.begin(), end = begin + static_cast<std::ptrdiff_t>(kept);
  const auto at = begin + static_cast<std::ptrdiff_t>(upper - below);
  std::nth_element(begin, at, end);
  return Middle<std::uint32_t>{lower == upper ? *at : *std::max_element(begin, at), *at};
}

template <typename Raw, typename KeyOf>
auto select_middle(const TensorView& tensor, const KeyOf& key_of) {
  using Key = std::remove_cvref_t<std::invoke_result_t<KeyOf, Raw>>;
  const bool are_few = static_cast<std::size_t>(tensor.element_count()) <= kFewElements;
  return are_few ? select_among_few<Raw, Key>(tensor, key_of) : select_among_many<Raw, Key>(tensor, key_of);
}

// Bits: the unsigned type of the width of the float that the key is made from.
template <typename Bits, typename Raw, typename BitsOf, typename ValueOf>
double median_of_floats(const TensorView& tensor, bool of_absolute, const BitsOf& bits_of, const ValueOf& value_of) {
  const auto select = [&](const auto& key_of) {
    if constexpr (std::is_same_v<Raw, float>) {
      if (static_cast<std::size_t>(tensor.element_count()) > kFewElements) {
        if (const auto middle = select_by_sample(tensor, key_of, of_absolute)) return *middle;
      }
    }
    return select_middle<Raw>(tensor, key_of);
  };
  if (of_absolute) {
    const auto middle = select([&](Raw raw) { return without_sign<Bits>(bits_of(raw)); });
    return std::midpoint(value_of(middle.lower), value_of(middle.upper));
  }
  const auto middle = select([&](Raw raw) { return key_of_float<Bits>(bits_of(raw)); });
  return std::midpoint(value_of(float_of_key<Bits>(middle.lower)), value_of(float_of_key<Bits>(middle.upper)));
}

}  // namespace

double median_of_real(const TensorView& tensor, bool of_absolute) {
  return with_load(tensor.dtype(), [&](const auto& load) {
    using Load = std::remove_cvref_t<decltype(load)>;
    using Raw = typename Load::Raw;
    if constexpr (std::is_same_v<Raw, float>) {
      return median_of_floats<std::uint32_t, Raw>(
          tensor, of_absolute, [](float raw) { return std::bit_cast<std::uint32_t>(raw); },
          [](std::uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); });
    } else if constexpr (std::is_unsigned_v<Raw>) {  // the small floats are their bits already
      return median_of_floats<Raw, Raw>(tensor, of_absolute, [](Raw raw) { return raw; }, load);
    } else {  // doubles, and moduli of complex numbers
      return median_of_floats<std::uint64_t, Raw>(
          tensor, of_absolute, [&](const Raw& raw) { return std::bit_cast<std::uint64_t>(load(raw)); },
          [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
    }
  });
}

double median_of_int(const TensorView& tensor, bool of_absolute) {
  return with_int_load(tensor.dtype(), [&](const auto& load) {
    using Load = std::remove_cvref_t<decltype(load)>;
    using Raw = typename Load::Raw;
    using Value = typename Load::Value;
    using Key = std::make_unsigned_t<Value>;
    constexpr Key kFlip = std::is_signed_v<Value> ? kTopBit<Key> : Key{0};
    Int128 sum = 0;
    if (of_absolute) {
      const auto middle = select_middle<Raw>(tensor, LoadIntMagnitude<Load>{});
      sum = static_cast<Int128>(middle.lower) + static_cast<Int128>(middle.upper);
    } else {
      const auto key_of = [&](Raw raw) { return static_cast<Key>(static_cast<Key>(load(raw)) ^ kFlip); };
      const auto middle = select_middle<Raw>(tensor, key_of);
      sum = static_cast<Int128>(static_cast<Value>(middle.lower ^ kFlip)) +
            static_cast<Int128>(static_cast<Value>(middle.upper ^ kFlip));
    }
    return static_cast<double>(sum) / 2;  // exact: the sum of two 64-bit integers, one rounding
  });
}

}  // namespace tornasole::reduce
