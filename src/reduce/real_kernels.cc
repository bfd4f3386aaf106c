// Floating-point tensors, worked in float64, in one read.
//
//   1. The tensor is cut into chunks, a chunk into blocks that stay in the first cache. Chunks are summed apart and put
//      together in order, so that the number of threads changes nothing.
//   2. A block is a run of floats or doubles: narrower types and moduli are converted into a buffer first.
//   3. Per block: sums, extremes and zeros in one loop. The squared distances from the mean follow from the sums where
//      that loses nothing; where the mean is far larger than the spread, a second loop over the block measures them.
//   4. Where the largest magnitude says that squares or sums of float64 elements may overflow or vanish, the tensor is
//      read again, times a power of two, which is exact; only such tensors pay for it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "reduce/accumulate.h"
#include "reduce/block_moments.h"
#include "reduce/blocks.h"
#include "reduce/kernels.h"
#include "reduce/loads.h"
#include "reduce/products.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::size_t kChunkBlocks = 128;
constexpr std::size_t kChunkElements = kChunkBlocks * kBlockElements;

// Between these magnitudes the sum of 2^40 squares is neither infinite nor loses bits of its larger terms.
constexpr int kSmallestSafeExponent = -400;
constexpr int kLargestSafeExponent = 480;

// The power of two that brings a largest magnitude near 1; 0 if it is fine as it is.
int scaling_exponent(double largest) noexcept {
  if (largest == 0) return 0;
  const int exponent = std::ilogb(largest);
  if (exponent >= kSmallestSafeExponent && exponent <= kLargestSafeExponent) return 0;
  return std::max(exponent, -1000);  // 2^1000 is still a double
}

// What is known of the elements read so far.
class Chunk {
 public:
  explicit Chunk(const RealNeeds& needs) noexcept : needs_(needs), kernels_(&vector_kernels()) {}

  // False if nothing that follows can matter any more.
  template <typename T>
  bool take(const T* x, std::size_t count) noexcept {
    BlockSums block;
    const bool has_extremes = summarize_block(x, count, &block);
    const double abs_total = total_of(block.abs_sum);
    const double squares = total_of(block.squares);
    if (!std::isfinite(abs_total)) count_non_finite(x, count);
    if (has_extremes) {
      min_ = std::min(min_, block.min);
      max_ = std::max(max_, block.max);
      abs_min_ = std::min(abs_min_, block.abs_min);
      zeros_ += static_cast<std::int64_t>(block.zeros);
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum_.add(block.sum[lane]);
      if (std::is_same_v<T, double> && std::isfinite(block.sum[lane])) sum_.add(block.dropped[lane]);
    }
    abs_sum_.add(abs_total);
    squares_.add(squares);
    if (has_non_finite()) return needs_.counts || nan_ == 0;
    if (needs_.variance) add_block(moments_, *kernels_, x, count, {total_of(block.sum), squares, false});
    if (needs_.abs_variance) add_block(abs_moments_, *kernels_, x, count, {abs_total, squares, true});
    if (needs_.product && zeros_ == 0) multiply(x, count);
    return true;
  }

  void add(Chunk& next) noexcept {
    min_ = std::min(min_, next.min_);
    max_ = std::max(max_, next.max_);
    abs_min_ = std::min(abs_min_, next.abs_min_);
    zeros_ += next.zeros_;
    nan_ += next.nan_;
    positive_infinite_ += next.positive_infinite_;
    negative_infinite_ += next.negative_infinite_;
    sum_.add(next.sum_);
    abs_sum_.add(next.abs_sum_);
    squares_.add(next.squares_);
    moments_.add(next.moments_);
    abs_moments_.add(next.abs_moments_);
    if (needs_.product && zeros_ == 0 && !has_non_finite()) product_.multiply(next.product_);
  }

  bool has_non_finite() const noexcept { return nan_ + positive_infinite_ + negative_infinite_ > 0; }

  void describe(RealSummary& summary) const noexcept {
    summary.zeros = zeros_;
    summary.nan = nan_;
    summary.positive_infinite = positive_infinite_;
    summary.negative_infinite = negative_infinite_;
    // Whether -0 or +0 was met first depends on the width of the registers: of several elements the sign is dropped.
    summary.min = summary.count == 1 ? min_ : min_ + 0.0;
    summary.max = summary.count == 1 ? max_ : max_ + 0.0;
    summary.abs_min = abs_min_;
    summary.abs_max = std::max(std::fabs(min_), std::fabs(max_));
  }
  void describe_sums(RealSummary& summary, int exponent) const noexcept {
    summary.sum = {sum_.value(), exponent};
    summary.abs_sum = {abs_sum_.value(), exponent};
    summary.squares = {squares_.value(), std::int64_t{2} * exponent};
  }
  // Of finite elements.
  Scaled product() noexcept { return zeros_ > 0 ? Scaled{} : product_.value(); }
  double squared_deviations(bool of_absolute) const noexcept {
    return std::max(0.0, (of_absolute ? abs_moments_ : moments_).squares());
  }

 private:
  // Whether more than the sums was found: of doubles always, since their sums may have to be scaled.
  bool summarize_block(const float* x, std::size_t count, BlockSums* block) const noexcept {
    (needs_.extremes ? kernels_->summarize_floats : kernels_->sum_floats)(x, count, block);
    return needs_.extremes;
  }
  bool summarize_block(const double* x, std::size_t count, BlockSums* block) const noexcept {
    kernels_->summarize_doubles(x, count, block);
    return true;
  }
  template <typename T>
  void count_non_finite(const T* x, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      nan_ += std::isnan(x[i]) ? 1 : 0;
      positive_infinite_ += x[i] == std::numeric_limits<T>::infinity() ? 1 : 0;
      negative_infinite_ += x[i] == -std::numeric_limits<T>::infinity() ? 1 : 0;
    }
  }

  void multiply(const float* x, std::size_t count) noexcept {
    BlockProduct block;
    kernels_->multiply_floats(x, count, &block);
    product_.multiply(block, count);
  }
  void multiply(const double* x, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) product_.multiply(x[i]);
  }

  RealNeeds needs_;
  const VectorKernels* kernels_;
  double min_ = kInfinity, max_ = -kInfinity, abs_min_ = kInfinity;
  std::int64_t zeros_ = 0, nan_ = 0, positive_infinite_ = 0, negative_infinite_ = 0;
  CompensatedSum sum_, abs_sum_, squares_;
  Moments moments_, abs_moments_;
  RunningProduct product_;
};

// The 256 values of an 8-bit float.
template <typename Load>
constexpr std::array<float, 256> make_table() noexcept {
  std::array<float, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(Load{}(static_cast<std::uint8_t>(i)));
  return table;
}

// One block as it lies in memory to a run of floats or doubles, times `factor` where a type needs scaling.
template <typename Load>
bool take_block(Chunk& chunk, const typename Load::Raw* x, std::size_t count, const Load& load, double factor) {
  if constexpr (std::is_same_v<Load, LoadFloat32>) {
    return chunk.take(x, count);
  } else if constexpr (std::is_same_v<Load, LoadFloat16> || std::is_same_v<Load, LoadBfloat16>) {
    alignas(64) float floats[kBlockElements];
    const VectorKernels& kernels = vector_kernels();
    (std::is_same_v<Load, LoadFloat16> ? kernels.widen_halves : kernels.widen_bfloat16s)(x, count, floats);
    return chunk.take(floats, count);
  } else if constexpr (sizeof(typename Load::Raw) == 1) {
    static const std::array<float, 256> table = make_table<Load>();
    alignas(64) float floats[kBlockElements];
    for (std::size_t i = 0; i < count; ++i) floats[i] = table[x[i]];
    return chunk.take(floats, count);
  } else {
    if constexpr (std::is_same_v<Load, LoadFloat64>) {
      if (factor == 1.0) return chunk.take(x, count);
    }
    alignas(64) double doubles[kBlockElements];
    if constexpr (std::is_same_v<Load, LoadModulus64>) {
      vector_kernels().take_moduli(x, count, doubles);
    } else {
      for (std::size_t i = 0; i < count; ++i) doubles[i] = load(x[i]) * factor;
    }
    return chunk.take(doubles, count);
  }
}

// Chunk by chunk over any layout.
template <typename Load>
Chunk read_in_order(const TensorView& tensor, const Load& load, const RealNeeds& needs, double factor) {
  using Raw = typename Load::Raw;
  Chunk all(needs);              // the first chunk, then the sum of those that are finished
  std::optional<Chunk> further;  // the one being read, from the second on
  std::size_t blocks = 0;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
    if (blocks == kChunkBlocks) {
      if (further) all.add(*further);
      further.emplace(needs);
      blocks = 0;
    }
    ++blocks;
    return take_block(further ? *further : all, x, count, load, factor);
  });
  if (further) all.add(*further);
  return all;
}

// The same chunks of one run without gaps, on several threads.
template <typename Load>
Chunk read_in_parallel(const typename Load::Raw* x, std::size_t count, const Load& load, const RealNeeds& needs,
                       double factor, std::size_t threads) {
  std::vector<Chunk> chunks((count + kChunkElements - 1) / kChunkElements, Chunk(needs));
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      const std::size_t end = std::min(count, (i + 1) * kChunkElements);
      for (std::size_t at = i * kChunkElements; at < end; at += kBlockElements) {
        if (!take_block(chunks[i], x + at, std::min(kBlockElements, end - at), load, factor)) break;
      }
    }
  };
  std::vector<std::jthread> helpers;
  helpers.reserve(threads);
  try {
    while (helpers.size() + 1 < std::min(threads, chunks.size())) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had: those there are do the work.
  }
  work();
  helpers.clear();
  for (std::size_t i = 1; i < chunks.size(); ++i) chunks[0].add(chunks[i]);
  return chunks[0];
}

template <typename Load>
Chunk read(const TensorView& tensor, const Load& load, const RealNeeds& needs, double factor, int threads) {
  constexpr std::size_t kWorthThreads = 4 * kChunkElements;
  const auto count = static_cast<std::size_t>(tensor.element_count());
  if (threads > 1 && count >= kWorthThreads) {
    const Layout layout(tensor, ElementOrder::kAny);
    using Raw = typename Load::Raw;
    if (layout.rank() == 1 && layout.stride(0) == sizeof(Raw) && layout.is_aligned(alignof(Raw))) {
      return read_in_parallel(reinterpret_cast<const Raw*>(layout.data()), count, load, needs, factor,
                              static_cast<std::size_t>(threads));
    }
  }
  return read_in_order(tensor, load, needs, factor);
}

// A pass of its own over elements scaled so that their distances neither overflow nor vanish, if they would.
template <typename Load>
Scaled variance_of(const TensorView& tensor, const Load& load, const Chunk& first, const RealSummary& summary,
                   bool of_absolute, int threads) {
  const double smallest = of_absolute ? summary.abs_min : summary.min;
  const double largest = of_absolute ? summary.abs_max : summary.max;
  if (summary.has_infinity()) return {kNan, 0};
  if (smallest == largest) return {0, 0};
  const auto count = static_cast<double>(summary.count);
  // Halved, since the difference of two doubles may overflow. Distinct elements lie at least 2^-53 of their size apart,
  // so what brings their distance near 1 does not make the elements themselves too large.
  const int exponent =
      Load::kNeedsScaling
          ? scaling_exponent(std::max(largest / 2 - smallest / 2, std::numeric_limits<double>::denorm_min()))
          : 0;
  if (exponent == 0) return {first.squared_deviations(of_absolute) / count, 0};
  const RealNeeds needs{.variance = !of_absolute, .abs_variance = of_absolute};
  const Chunk scaled = read(tensor, load, needs, std::ldexp(1.0, -exponent), threads);
  return {scaled.squared_deviations(of_absolute) / count, std::int64_t{2} * exponent};
}

template <typename Load>
RealSummary summarize(const TensorView& tensor, const Load& load, RealNeeds needs, int threads) {
  RealSummary summary;
  summary.count = tensor.element_count();
  needs.extremes |= needs.variance || needs.abs_variance || needs.product || needs.counts || summary.count == 1;
  Chunk all = read(tensor, load, needs, 1.0, threads);
  all.describe(summary);
  if (summary.has_nan()) return summary;
  int exponent = 0;
  if (Load::kNeedsScaling && !summary.has_infinity()) exponent = scaling_exponent(summary.abs_max);
  if (exponent == 0) {
    all.describe_sums(summary, 0);
  } else {
    read(tensor, load, {}, std::ldexp(1.0, -exponent), threads).describe_sums(summary, exponent);
  }
  if (needs.variance) summary.variance = variance_of(tensor, load, all, summary, false, threads);
  if (needs.abs_variance) summary.abs_variance = variance_of(tensor, load, all, summary, true, threads);
  if (needs.product) {
    if (!summary.has_infinity()) {
      summary.product = all.product();
    } else {
      summary.product = {summary.zeros > 0 ? kNan : is_sign_odd(tensor) ? -kInfinity : kInfinity, 0};
    }
  }
  return summary;
}

}  // namespace

RealSummary summarize_real(const TensorView& tensor, const RealNeeds& needs, int threads) {
  return with_load(tensor.dtype(), [&](const auto& load) { return summarize(tensor, load, needs, threads); });
}

bool is_sign_odd(const TensorView& tensor) {
  return with_load(tensor.dtype(), [&](const auto& load) {
    using Raw = typename std::remove_cvref_t<decltype(load)>::Raw;
    bool is_odd = false;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* x, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) is_odd = is_odd != std::signbit(load(x[i]));
      return true;
    });
    return is_odd;
  });
}

}  // namespace tornasole::reduce
