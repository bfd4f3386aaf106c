// Integers and bools. Sums and extremes are exact; distances from the mean start from exact integer differences, so a
// small spread around a value beyond 2^53 is not lost.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/int_loads.h"
#include "reduce/kernels.h"

namespace tornasole::reduce {
namespace {

// Sums one block. Narrow elements fit 64 bits; of wide ones the halves are summed apart, in loops that vectorise.
template <typename Load>
Int128 sum_block(const typename Load::Raw* x, std::size_t count, const Load& load) noexcept {
  using T = typename Load::Value;
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  if constexpr (sizeof(T) < 8) {
    Wide sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += load(x[i]);
    return static_cast<Int128>(sum);
  } else {
    std::uint64_t low = 0;
    Wide high = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const T value = load(x[i]);
      low += static_cast<std::uint64_t>(value) & 0xFFFFFFFFU;
      high += value >> 32;
    }
    return static_cast<Int128>(high) * (Int128{1} << 32) + static_cast<Int128>(low);
  }
}

template <typename Load>
IntSummary summarize(const TensorView& tensor, const Load& load) {
  using Raw = typename Load::Raw;
  using T = typename Load::Value;
  using U = std::make_unsigned_t<T>;
  const LoadIntMagnitude<Load> magnitude;
  IntSummary summary;
  summary.count = tensor.element_count();
  T min = std::numeric_limits<T>::max(), max = std::numeric_limits<T>::min();
  U abs_min = std::numeric_limits<U>::max(), abs_max = 0;
  CompensatedSum squares;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    // One short loop each: the block stays in the cache, and every loop vectorises.
    for (std::size_t i = 0; i < count; ++i) min = std::min(min, load(x[i]));
    for (std::size_t i = 0; i < count; ++i) max = std::max(max, load(x[i]));
    for (std::size_t i = 0; i < count; ++i) abs_min = std::min(abs_min, magnitude(x[i]));
    for (std::size_t i = 0; i < count; ++i) abs_max = std::max(abs_max, magnitude(x[i]));
    std::uint32_t zeros = 0;
    for (std::size_t i = 0; i < count; ++i) zeros += load(x[i]) == 0 ? 1 : 0;
    summary.zeros += zeros;
    summary.sum += sum_block(x, count, load);
    summary.abs_sum += sum_block(x, count, magnitude);
    Lanes lanes = {};
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(magnitude(x[i]));
      lanes[i % kLanes] += value * value;
    }
    add_lanes(squares, lanes);
    return true;
  });
  summary.min = min;
  summary.max = max;
  summary.abs_min = abs_min;
  summary.abs_max = abs_max;
  summary.squares = squares.value();
  return summary;
}

// x - whole as a double, whatever the signs; only the result is rounded.
template <typename T>
double distance(T x, T whole) noexcept {
  if constexpr (sizeof(T) < 8) {
    return static_cast<double>(static_cast<std::int64_t>(x) - static_cast<std::int64_t>(whole));
  } else {
    const auto up = static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(whole);
    return x >= whole ? static_cast<double>(up) : -static_cast<double>(0 - up);
  }
}

// The mean is whole + fraction, 0 <= fraction < 1; `whole` lies between two elements, so it has their type.
template <typename Load>
double squared_deviations(const TensorView& tensor, const Load& load, Int128 whole, double fraction) {
  using Raw = typename Load::Raw;
  using T = typename Load::Value;
  const auto base = static_cast<T>(whole);
  CompensatedSum deviations;
  CompensatedSum squares;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    Lanes lane_deviations = {};
    Lanes lane_squares = {};
    for (std::size_t i = 0; i < count; ++i) {
      const double deviation = distance<T>(load(x[i]), base) - fraction;
      lane_deviations[i % kLanes] += deviation;
      lane_squares[i % kLanes] += deviation * deviation;
    }
    add_lanes(deviations, lane_deviations);
    add_lanes(squares, lane_squares);
    return true;
  });
  const double off = deviations.value();
  return std::max(0.0, squares.value() - off * off / static_cast<double>(tensor.element_count()));
}

}  // namespace

IntSummary summarize_int(const TensorView& tensor) {
  return with_int_load(tensor.dtype(), [&](const auto& load) { return summarize(tensor, load); });
}

double variance_of_int(const TensorView& tensor, const IntSummary& summary, bool of_absolute) {
  const Int128 sum = of_absolute ? summary.abs_sum : summary.sum;
  Int128 whole = sum / summary.count;
  Int128 rest = sum % summary.count;
  if (rest < 0) {
    whole -= 1;
    rest += summary.count;
  }
  const auto count = static_cast<double>(summary.count);
  const double fraction = static_cast<double>(rest) / count;
  return with_int_load(tensor.dtype(), [&](const auto& load) {
    using Load = std::remove_cvref_t<decltype(load)>;
    return (of_absolute ? squared_deviations(tensor, LoadIntMagnitude<Load>{}, whole, fraction)
                        : squared_deviations(tensor, load, whole, fraction)) /
           count;
  });
}

std::uint64_t product_of_int(const TensorView& tensor, bool of_absolute) {
  return with_int_load(tensor.dtype(), [&](const auto& load) {
    using Raw = typename std::remove_cvref_t<decltype(load)>::Raw;
    std::uint64_t product = 1;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = load(x[i]);
        product *= of_absolute ? std::uint64_t{magnitude_of(value)} : static_cast<std::uint64_t>(value);
      }
      return true;
    });
    return product;
  });
}

}  // namespace tornasole::reduce
