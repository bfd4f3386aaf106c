// Integers and bools, in one read. Sums and extremes are exact.
//
//   1. A block whose elements all fit a double is widened, and the loops for doubles do the work: sums of at most 2^11
//      such numbers below 2^42 are exact, and so are their extremes. That is every block of a type of 32 bits or less.
//   2. Where sums of doubles could round, sums are taken again in 128 bits; where elements could, everything is, and
//      distances from the mean start from exact integer differences.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reduce/accumulate.h"
#include "reduce/block_moments.h"
#include "reduce/blocks.h"
#include "reduce/int_loads.h"
#include "reduce/kernels.h"
#include "reduce/vector_kernels.h"

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

// Floor and remainder: the mean is whole + fraction, 0 <= fraction < 1.
struct ExactMean {
  Int128 whole;
  double fraction;
  ExactMean(Int128 sum, std::size_t count) noexcept : whole(sum / static_cast<Int128>(count)) {
    Int128 rest = sum % static_cast<Int128>(count);
    if (rest < 0) {
      whole -= 1;
      rest += static_cast<Int128>(count);
    }
    fraction = static_cast<double>(rest) / static_cast<double>(count);
  }
};

template <typename Load>
class IntReader {
 public:
  using Raw = typename Load::Raw;
  using T = typename Load::Value;
  using U = std::make_unsigned_t<T>;

  IntReader(DType dtype, const IntNeeds& needs) noexcept : dtype_(dtype), needs_(needs), kernels_(vector_kernels()) {}

  void take(const Raw* x, std::size_t count) noexcept {
    alignas(64) double doubles[kBlockElements];
    if (kernels_.widen_integers(dtype_, x, count, doubles)) {
      take_doubles(x, doubles, count);
    } else {
      take_exactly(x, count);
    }
  }

  void describe(IntSummary& summary) const noexcept {
    summary.zeros = zeros_;
    summary.min = min_;
    summary.max = max_;
    summary.abs_min = abs_min_;
    summary.abs_max = abs_max_;
    summary.sum = sum_;
    summary.abs_sum = abs_sum_;
    summary.squares = squares_.value();
    const auto count = static_cast<double>(summary.count);
    summary.variance = std::max(0.0, moments_.squares()) / count;
    summary.abs_variance = std::max(0.0, abs_moments_.squares()) / count;
  }

 private:
  void take_doubles(const Raw* x, const double* doubles, std::size_t count) noexcept {
    BlockSums block;
    kernels_.summarize_doubles(doubles, count, &block);
    min_ = std::min(min_, static_cast<T>(block.min));
    max_ = std::max(max_, static_cast<T>(block.max));
    abs_min_ = std::min(abs_min_, static_cast<U>(block.abs_min));
    abs_max_ = std::max(abs_max_, static_cast<U>(std::max(std::fabs(block.min), std::fabs(block.max))));
    zeros_ += static_cast<std::int64_t>(block.zeros);
    const double sum = total_of(block.sum), abs_sum = total_of(block.abs_sum), squares = total_of(block.squares);
    // The sum of magnitudes bounds every sum on the way.
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (abs_sum < kExact) {
      sum_ += static_cast<Int128>(static_cast<std::int64_t>(sum));
      abs_sum_ += static_cast<Int128>(static_cast<std::int64_t>(abs_sum));
    } else {
      sum_ += sum_block(x, count, Load{});
      abs_sum_ += sum_block(x, count, LoadIntMagnitude<Load>{});
    }
    squares_.add(squares);
    if (needs_.variance) add_block(moments_, kernels_, doubles, count, {sum, squares, false});
    if (needs_.abs_variance) add_block(abs_moments_, kernels_, doubles, count, {abs_sum, squares, true});
  }

  void take_exactly(const Raw* x, std::size_t count) noexcept {
    const Load load;
    const LoadIntMagnitude<Load> magnitude;
    Lanes squares = {};
    for (std::size_t i = 0; i < count; ++i) {
      min_ = std::min(min_, load(x[i]));
      max_ = std::max(max_, load(x[i]));
      abs_min_ = std::min(abs_min_, magnitude(x[i]));
      abs_max_ = std::max(abs_max_, magnitude(x[i]));
      zeros_ += load(x[i]) == 0 ? 1 : 0;
      const auto value = static_cast<double>(magnitude(x[i]));
      squares[i % kLanes] += value * value;
    }
    squares_.add(total_of(squares));
    const Int128 sum = sum_block(x, count, load), abs_sum = sum_block(x, count, magnitude);
    sum_ += sum;
    abs_sum_ += abs_sum;
    if (needs_.variance) add_distances(moments_, x, count, load, ExactMean(sum, count));
    if (needs_.abs_variance) add_distances(abs_moments_, x, count, magnitude, ExactMean(abs_sum, count));
  }

  // `whole` lies between two elements, so it has their type.
  template <typename AnyLoad>
  static void add_distances(Moments& moments, const Raw* x, std::size_t count, const AnyLoad& load,
                            const ExactMean& mean) noexcept {
    using Value = typename AnyLoad::Value;
    const auto base = static_cast<Value>(mean.whole);
    Lanes sums = {}, squares = {};
    for (std::size_t i = 0; i < count; ++i) {
      const double deviation = distance<Value>(load(x[i]), base) - mean.fraction;
      sums[i % kLanes] += deviation;
      squares[i % kLanes] += deviation * deviation;
    }
    const auto n = static_cast<double>(count);
    const double rest = total_of(sums) / n;
    const auto rounded = static_cast<double>(mean.whole);
    const auto lost = static_cast<double>(mean.whole - static_cast<Int128>(rounded));
    moments.add(n, rounded, (lost + mean.fraction) + rest, std::max(0.0, total_of(squares) - total_of(sums) * rest));
  }

  DType dtype_;
  IntNeeds needs_;
  const VectorKernels& kernels_;
  T min_ = std::numeric_limits<T>::max(), max_ = std::numeric_limits<T>::min();
  U abs_min_ = std::numeric_limits<U>::max(), abs_max_ = 0;
  std::int64_t zeros_ = 0;
  Int128 sum_ = 0, abs_sum_ = 0;
  CompensatedSum squares_;
  Moments moments_, abs_moments_;
};

// Modulo 2^64, in lanes so that the multiplications overlap.
template <typename Load>
std::uint64_t product_of(const TensorView& tensor, const Load& load) {
  using Raw = typename Load::Raw;
  std::array<std::uint64_t, kLanes> lanes;
  lanes.fill(1);
  const auto product = [&] {
    std::uint64_t all = 1;
    for (const std::uint64_t lane : lanes) all *= lane;
    return all;
  };
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) lanes[i % kLanes] *= static_cast<std::uint64_t>(load(x[i]));
    return product() != 0;  // sixty-four even factors are zero already
  });
  return product();
}

}  // namespace

IntSummary summarize_int(const TensorView& tensor, const IntNeeds& needs) {
  return with_int_load(tensor.dtype(), [&](const auto& load) {
    using Load = std::remove_cvref_t<decltype(load)>;
    using Raw = typename Load::Raw;
    IntReader<Load> reader(tensor.dtype(), needs);
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      reader.take(x, count);
      return true;
    });
    IntSummary summary;
    summary.count = tensor.element_count();
    reader.describe(summary);
    return summary;
  });
}

std::uint64_t product_of_int(const TensorView& tensor, bool of_absolute) {
  return with_int_load(tensor.dtype(), [&](const auto& load) {
    using Load = std::remove_cvref_t<decltype(load)>;
    return of_absolute ? product_of(tensor, LoadIntMagnitude<Load>{}) : product_of(tensor, load);
  });
}

}  // namespace tornasole::reduce
