// Quantiles by selection. Floats go by the classes of select_floats.h where these serve. Otherwise elements are mapped
// to unsigned keys in the same order, of the width of the element.
//
//   few elements:  copy the keys, std::nth_element for each rank.
//   many elements: no copy; count the keys by their upper 11 bits, then, within the classes that hold a wanted rank, by
//                  the next 11 bits, and so on. Ten ranks need at most ten classes at a time, whatever the size.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "reduce/blocks.h"
#include "reduce/derived.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"
#include "reduce/select_floats.h"

namespace tornasole::reduce {
namespace {

constexpr std::array<double, 5> kWanted = {0.01, 0.05, 0.50, 0.95, 0.99};
constexpr std::int64_t kFewElements = std::int64_t{1} << 16;
constexpr int kDigitBits = 11;

// The two neighbours of a quantile, by rank, and where between them it lies.
struct Place {
  std::int64_t lower = 0, upper = 0;
  double fraction = 0;
};
std::array<Place, 5> places_for(std::int64_t count) {
  std::array<Place, 5> places;
  for (std::size_t i = 0; i < kWanted.size(); ++i) {
    const double position = static_cast<double>(count - 1) * kWanted[i];
    const auto lower = std::min(static_cast<std::int64_t>(position), count - 1);
    places[i] = {lower, std::min(lower + 1, count - 1), position - static_cast<double>(lower)};
  }
  return places;
}
std::vector<std::int64_t> ranks_of(const std::array<Place, 5>& places) {
  std::vector<std::int64_t> ranks;
  for (const Place& place : places) ranks.insert(ranks.end(), {place.lower, place.upper});
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

template <std::size_t kSize>
using UnsignedOf = std::conditional_t<
    kSize == 1, std::uint8_t,
    std::conditional_t<kSize == 2, std::uint16_t, std::conditional_t<kSize == 4, std::uint32_t, std::uint64_t>>>;

// The order of a type's elements as that of unsigned keys.
template <typename Load, bool kIsFloat, bool kIsSigned>
struct Order {
  using Raw = typename Load::Raw;
  using Key = UnsignedOf<sizeof(Raw)>;
  static constexpr Key kTop = static_cast<Key>(Key{1} << (std::numeric_limits<Key>::digits - 1));
  static Key key_of(Raw raw) noexcept {
    const auto bits = std::bit_cast<Key>(raw);
    if constexpr (!kIsFloat) return kIsSigned ? static_cast<Key>(bits ^ kTop) : bits;
    return (bits & kTop) != 0 ? static_cast<Key>(~bits) : static_cast<Key>(bits | kTop);
  }
  static double value_of(Key key) noexcept {
    Key bits = key;
    if constexpr (kIsFloat) {
      bits = (key & kTop) != 0 ? static_cast<Key>(key & static_cast<Key>(~kTop)) : static_cast<Key>(~key);
    } else if (kIsSigned) {
      bits = static_cast<Key>(key ^ kTop);
    }
    return Load{}(std::bit_cast<Raw>(bits));
  }
};

// Bools of any byte count as 0 and 1, so they are counted and not ordered.
template <typename Function>
auto with_order(DType dtype, const Function& function) {
  if (dtype_is_inexact(dtype)) {
    return with_load(dtype, [&](auto load) {
      using Load = decltype(load);
      // Never asked of complex types; their loads are instantiated all the same.
      if constexpr (sizeof(typename Load::Raw) <= 8 && std::is_arithmetic_v<typename Load::Raw>) {
        return function(Order<Load, true, true>{});
      } else {
        return function(Order<LoadFloat32, true, true>{});
      }
    });
  }
  return with_int_load(dtype, [&](auto load) {
    using Load = decltype(load);
    return function(Order<LoadIntValue<Load>, false, std::is_signed_v<typename Load::Raw>>{});
  });
}

template <typename O>
std::vector<typename O::Key> take_keys(const TensorView& tensor) {
  using Raw = typename O::Raw;
  std::vector<typename O::Key> keys;
  keys.reserve(static_cast<std::size_t>(tensor.element_count()));
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) keys.push_back(O::key_of(x[i]));
    return true;
  });
  return keys;
}

template <typename Key>
std::vector<Key> select_among_few(std::vector<Key> keys, const std::vector<std::int64_t>& ranks) {
  std::vector<Key> selected;
  auto begin = keys.begin();
  for (const std::int64_t rank : ranks) {
    const auto nth = keys.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(begin, nth, keys.end());
    selected.push_back(*nth);
    begin = nth;  // ranks ascend, and what lies before is smaller
  }
  return selected;
}

// One class of keys that share their upper bits and hold a wanted rank.
struct KeyClass {
  std::uint64_t prefix = 0;
  std::vector<std::int64_t> ranks = {};  // within the class
  std::vector<std::int64_t> counts = {};
};

// Splits a counted class by its next digit into the classes that hold its ranks.
void split(const KeyClass& whole, int bits, std::vector<KeyClass>* parts) {
  std::int64_t before = 0;
  std::size_t next = 0;
  for (std::size_t digit = 0; digit < whole.counts.size() && next < whole.ranks.size(); ++digit) {
    const std::int64_t after = before + whole.counts[digit];
    KeyClass part{.prefix = (whole.prefix << bits) | digit};
    for (; next < whole.ranks.size() && whole.ranks[next] < after; ++next) {
      part.ranks.push_back(whole.ranks[next] - before);
    }
    if (!part.ranks.empty()) parts->push_back(std::move(part));
    before = after;
  }
}

template <typename O>
void count_first_digit(const TensorView& tensor, int shift, KeyClass* all) {
  using Raw = typename O::Raw;
  constexpr std::size_t kCopies = 4;  // an increment that waits for the one before it is slow
  std::vector<std::uint32_t> copies(kCopies * all->counts.size());
  std::uint32_t* counts[kCopies];
  for (std::size_t c = 0; c < kCopies; ++c) counts[c] = copies.data() + c * all->counts.size();
  std::size_t pending = 0;
  const auto flush = [&] {
    for (std::size_t i = 0; i < copies.size(); ++i) all->counts[i % all->counts.size()] += copies[i];
    std::ranges::fill(copies, 0U);
    pending = 0;
  };
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) ++counts[i % kCopies][static_cast<std::size_t>(O::key_of(x[i])) >> shift];
    pending += size;
    if (pending > std::numeric_limits<std::uint32_t>::max() / 2) flush();
    return true;
  });
  flush();
}

// Counts the keys of each class by the digit above `shift`; `rest` bits are below the prefixes.
template <typename O>
void count_next_digit(const TensorView& tensor, int rest, int shift, std::vector<KeyClass>* classes) {
  using Raw = typename O::Raw;
  constexpr int kTopShift = std::numeric_limits<typename O::Key>::digits - kDigitBits;
  constexpr std::uint8_t kNone = 255;
  const std::uint64_t mask = (std::uint64_t{1} << (rest - shift)) - 1;
  // By the first digit: the first class that has it. Nearly every key is none of ours.
  std::uint8_t first_class[std::size_t{1} << kDigitBits];
  std::ranges::fill(first_class, kNone);
  for (std::size_t c = classes->size(); c-- > 0;) {
    first_class[(*classes)[c].prefix >> (kTopShift - rest)] = static_cast<std::uint8_t>(c);
  }
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t key = O::key_of(x[i]);
      const std::uint8_t first = first_class[key >> kTopShift];
      if (first == kNone) [[likely]]
        continue;
      const std::uint64_t prefix = key >> rest;
      for (std::size_t c = first; c < classes->size() && (*classes)[c].prefix <= prefix; ++c) {
        if ((*classes)[c].prefix == prefix) ++(*classes)[c].counts[(key >> shift) & mask];
      }
    }
    return true;
  });
}

// The keys with these ranks, in their order.
template <typename O>
std::vector<typename O::Key> select_among_many(const TensorView& tensor, const std::vector<std::int64_t>& ranks) {
  using Key = typename O::Key;
  constexpr int kBits = std::numeric_limits<Key>::digits;
  std::vector<KeyClass> classes = {{.ranks = ranks}};
  for (int rest = kBits; rest > 0;) {
    const int bits = std::min(rest, kDigitBits);
    const int shift = rest - bits;
    for (KeyClass& one : classes) one.counts.assign(std::size_t{1} << bits, 0);
    if (rest == kBits) {
      count_first_digit<O>(tensor, shift, &classes.front());
    } else if constexpr (kBits > kDigitBits) {
      count_next_digit<O>(tensor, rest, shift, &classes);
    }
    std::vector<KeyClass> parts;
    for (const KeyClass& one : classes) split(one, bits, &parts);
    classes = std::move(parts);
    rest = shift;
  }
  std::vector<Key> selected;
  for (const KeyClass& one : classes) selected.insert(selected.end(), one.ranks.size(), static_cast<Key>(one.prefix));
  return selected;
}

double interpolate(double lower, double upper, double fraction) {
  if (lower == upper || fraction == 0) return lower;
  const double step = upper - lower;
  // From the nearer end, so that the end itself comes out exactly. Halves, where the step overflows.
  if (std::isinf(step) && std::isfinite(lower) && std::isfinite(upper)) {
    return lower * (1 - fraction) + upper * fraction;
  }
  return fraction < 0.5 ? lower + step * fraction : upper - step * (1 - fraction);
}

template <typename O>
std::vector<double> select_by_keys(const TensorView& tensor, const std::vector<std::int64_t>& ranks) {
  const std::vector<typename O::Key> selected = tensor.element_count() <= kFewElements
                                                    ? select_among_few(take_keys<O>(tensor), ranks)
                                                    : select_among_many<O>(tensor, ranks);
  std::vector<double> values;
  values.reserve(selected.size());
  for (const typename O::Key key : selected) values.push_back(O::value_of(key));
  return values;
}

// `selected` are the values at the ranks.
std::array<float, 5> quantiles_between(const std::array<Place, 5>& places, const std::vector<std::int64_t>& ranks,
                                       const std::vector<double>& selected) {
  const auto value_at = [&](std::int64_t rank) {
    const auto place = std::ranges::lower_bound(ranks, rank) - ranks.begin();
    return selected[static_cast<std::size_t>(place)];
  };
  std::array<float, 5> values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = to_float(interpolate(value_at(places[i].lower), value_at(places[i].upper), places[i].fraction));
  }
  return values;
}

}  // namespace

Result<Tensor> quantiles(const TensorView& tensor) {
  TORNASOLE_CHECK(check_real_elements(tensor, "quantiles"));
  std::array<float, 5> values;
  values.fill(std::numeric_limits<float>::quiet_NaN());
  if (tensor.element_count() == 0) return make_tensor<float>(values, Shape{5});
  const std::array<Place, 5> places = places_for(tensor.element_count());
  const std::vector<std::int64_t> ranks = ranks_of(places);
  if (const auto floats = select_floats(tensor, ranks)) {
    values = quantiles_between(places, ranks, {floats->begin(), floats->end()});
    return make_tensor<float>(values, Shape{5});
  }
  TORNASOLE_TRY(const Tensor counted, counts(tensor));
  const bool has_nan = counted.values<std::int64_t>()[2] > 0;
  if (!has_nan) {
    with_order(tensor.dtype(), [&](auto order) {
      values = quantiles_between(places, ranks, select_by_keys<decltype(order)>(tensor, ranks));
    });
  }
  return make_tensor<float>(values, Shape{5});
}

}  // namespace tornasole::reduce
