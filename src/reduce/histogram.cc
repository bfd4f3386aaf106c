// The buckets of TensorBoard's histograms.
//
// The edges grow by a tenth each, so a sixteenth of an octave holds at most one of them. A table over the exponent and
// the upper 4 bits of the mantissa says which bucket such a cell begins in and where the next one starts; one
// comparison of bits decides. Bits of magnitudes are in the order of the magnitudes.
//
//   x >= 0: buckets are closed below, so the bucket is the number of edges e with bits(x) >= bits(e).
//   x < 0:  buckets are closed below, which is open towards zero: the number of e with bits(-x) - 1 >= bits(e). For
//           floats the two are one: no edge is a float.

#include "reduce/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/element_values.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {
namespace {

constexpr double kSmallest = 1e-12;
constexpr double kLimit = 1e20;
constexpr double kGrowth = 1.1;
constexpr std::size_t kPositiveEdges = 774;
constexpr std::size_t kEdges = 2 * kPositiveEdges + 1;
constexpr std::size_t kBuckets = kEdges - 1;
constexpr std::size_t kZeroBucket = kPositiveEdges;  // begins at 0

constexpr std::array<double, kPositiveEdges> make_positive_edges() {
  std::array<double, kPositiveEdges> edges{};
  std::size_t count = 0;
  for (double v = kSmallest; v < kLimit; v *= kGrowth) edges[count++] = v;
  return edges;
}
constexpr std::array<double, kPositiveEdges> kPositive = make_positive_edges();
static_assert(kPositive.back() > 0 && kPositive.back() * kGrowth >= kLimit);

constexpr std::array<double, kEdges> make_edges() {
  std::array<double, kEdges> edges{};
  for (std::size_t i = 0; i < kPositiveEdges; ++i) {
    edges[kPositiveEdges - 1 - i] = -kPositive[i];
    edges[kPositiveEdges + 1 + i] = kPositive[i];
  }
  return edges;
}
constexpr std::array<double, kEdges> kAllEdges = make_edges();

// ---- the tables

struct DoubleBits {
  using Float = double;
  using Bits = std::uint64_t;
  static constexpr int kCellShift = 48;
  static constexpr bool kHasEdges = true;  // an element may be equal to an edge
  static constexpr Bits next_of(double edge) noexcept { return std::bit_cast<Bits>(edge); }
};
struct SingleBits {
  using Float = float;
  using Bits = std::uint32_t;
  static constexpr int kCellShift = 19;
  static constexpr bool kHasEdges = false;
  // The smallest float that is not less than the edge.
  static constexpr Bits next_of(double edge) noexcept {
    const auto nearest = static_cast<float>(edge);
    const auto bits = std::bit_cast<Bits>(nearest);
    return static_cast<double>(nearest) < edge ? bits + 1 : bits;
  }
};
static_assert(std::ranges::none_of(kPositive, [](double e) { return static_cast<double>(static_cast<float>(e)) == e; }),
              "no edge is a float");

template <typename Type>
struct CellTable {
  using Bits = typename Type::Bits;
  struct Cell {
    Bits next = std::numeric_limits<Bits>::max();  // the edge inside the cell; beyond all magnitudes if there is none
    Bits edges = 0;                                // before the cell
  };
  static constexpr Bits kBefore = (Type::next_of(kPositive.front()) >> Type::kCellShift) - 1;
  static constexpr Bits kAfter = (Type::next_of(kPositive.back()) >> Type::kCellShift) + 1;
  // One cell for everything before the first edge, one for everything after the last.
  Cell cells[kAfter - kBefore + 1];

  constexpr CellTable() noexcept : cells{} {
    std::size_t edge = 0;
    for (Bits number = kBefore; number <= kAfter; ++number) {
      Cell& cell = cells[number - kBefore];
      cell.edges = static_cast<Bits>(edge);
      if (edge == kPositiveEdges || Type::next_of(kPositive[edge]) >> Type::kCellShift != number) continue;
      cell.next = Type::next_of(kPositive[edge++]);
    }
  }
};
template <typename Type>
constexpr CellTable<Type> kTable;
static_assert(std::ranges::rbegin(kTable<DoubleBits>.cells)->edges == kPositiveEdges, "no cell holds two edges");
static_assert(std::ranges::rbegin(kTable<SingleBits>.cells)->edges == kPositiveEdges, "no cell holds two edges");

// ---- counting

// Several counters a bucket: an increment that waits for the one before it costs more than everything else here.
constexpr std::size_t kCopies = 4;
constexpr std::size_t kOutside = kPositiveEdges;  // number of edges passed by what lies beyond all of them
constexpr std::size_t kSide = kPositiveEdges + 1;

class BucketCounter {
 public:
  template <typename Type>
  void count(const typename Type::Float* x, std::size_t size) {
    std::size_t i = 0;
    for (; i + kCopies <= size; i += kCopies) {
      for (std::size_t copy = 0; copy < kCopies; ++copy) ++counts_[copy][slot_of<Type>(x[i + copy])];
    }
    for (; i < size; ++i) ++counts_[0][slot_of<Type>(x[i])];
    pending_ += size;
    if (has_outside()) count_outside(x, size);
    if (pending_ > std::numeric_limits<std::uint32_t>::max() / 2) flush();
  }

  void write_to(Histogram* histogram) {
    flush();
    histogram->outliers = outliers_;
    const auto first = std::ranges::find_if(totals_, [](std::int64_t n) { return n != 0; });
    if (first == totals_.end()) return;
    const auto f = static_cast<std::size_t>(first - totals_.begin());
    std::size_t l = kBuckets - 1;
    while (totals_[l] == 0) --l;
    histogram->bucket_limit.assign(kAllEdges.begin() + static_cast<std::ptrdiff_t>(f),
                                   kAllEdges.begin() + static_cast<std::ptrdiff_t>(l + 2));
    histogram->bucket.push_back(0);
    for (std::size_t i = f; i <= l; ++i) histogram->bucket.push_back(static_cast<double>(totals_[i]));
  }

 private:
  // The number of edges passed, of the side of the sign. Without a branch.
  template <typename Type>
  static std::size_t slot_of(typename Type::Float x) noexcept {
    using Bits = typename Type::Bits;
    constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
    const auto all = std::bit_cast<Bits>(x);
    const Bits is_negative = all > kSign ? 1 : 0;  // a zero with a sign is a zero
    const Bits bits = Type::kHasEdges ? (all & ~kSign) - is_negative : all & ~kSign;
    using Table = CellTable<Type>;
    const Bits number = std::clamp(static_cast<Bits>(bits >> Type::kCellShift), Table::kBefore, Table::kAfter);
    const auto& cell = kTable<Type>.cells[number - Table::kBefore];
    return is_negative * kSide + cell.edges + static_cast<std::size_t>(bits >= cell.next);
  }

  bool has_outside() const noexcept {
    std::uint32_t any = 0;
    for (const auto& copy : counts_) any |= copy[kOutside] | copy[kSide + kOutside];
    return any != 0;
  }
  // Seldom: looks at the block again for what none of its buckets took.
  template <typename Float>
  void count_outside(const Float* x, std::size_t size) {
    for (auto& copy : counts_) copy[kOutside] = copy[kSide + kOutside] = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto value = static_cast<double>(x[i]);
      if (std::isnan(value)) {
        ++outliers_.nan;
      } else if (std::isinf(value)) {
        ++(value > 0 ? outliers_.pos_inf : outliers_.neg_inf);
      } else if (value == kPositive.back()) {
        ++totals_[kBuckets - 1];  // the last bucket is closed above
      } else if (std::fabs(value) > kPositive.back()) {
        ++(value > 0 ? outliers_.above : outliers_.below);
      }
    }
  }

  void flush() {
    for (auto& copy : counts_) {
      for (std::size_t passed = 0; passed < kPositiveEdges; ++passed) {
        totals_[kZeroBucket + passed] += copy[passed];
        totals_[kZeroBucket - 1 - passed] += copy[kSide + passed];
      }
      std::ranges::fill(copy, 0U);
    }
    pending_ = 0;
  }

  std::uint32_t counts_[kCopies][2 * kSide] = {};  // by sign, then by edges passed
  std::array<std::int64_t, kBuckets> totals_{};
  Outliers outliers_ = {};
  std::size_t pending_ = 0;
};

// Smallest, largest and sums; of no use when an element is NaN.
class Totals {
 public:
  void add(const float* x, std::size_t size) {
    BlockSums block;
    kernels_.summarize_floats(x, size, &block);
    add(block);
  }
  void add(const double* x, std::size_t size) {
    BlockSums block;
    kernels_.summarize_doubles(x, size, &block);
    add(block);
  }

  void write_to(Histogram* histogram) const {
    histogram->min = min_;
    histogram->max = max_;
    histogram->sum = sum_.value();
    histogram->sum_squares = squares_.value();
  }

 private:
  void add(const BlockSums& block) {
    add_lanes(sum_, block.sum);
    add_lanes(squares_, block.squares);
    min_ = std::min(min_, block.min);
    max_ = std::max(max_, block.max);
  }
  const VectorKernels& kernels_ = vector_kernels();
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  CompensatedSum sum_, squares_;
};

// Counts the elements as Type::Float; `convert` makes one of a Raw.
template <typename Type, typename Raw, typename Convert>
void count_elements(const TensorView& tensor, const Convert& convert, BucketCounter* counter, Totals* totals) {
  using Float = typename Type::Float;
  for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* raw, std::size_t size) {
    if constexpr (std::is_same_v<Raw, Float>) {
      counter->count<Type>(raw, size);
      totals->add(raw, size);
    } else {
      Float x[kBlockElements];
      for (std::size_t i = 0; i < size; ++i) x[i] = convert(raw[i]);
      counter->count<Type>(x, size);
      totals->add(x, size);
    }
    return true;
  });
}

void count_all(const TensorView& tensor, BucketCounter* counter, Totals* totals) {
  const auto as_singles = [&](auto raw, const auto& convert) {
    count_elements<SingleBits, decltype(raw)>(tensor, convert, counter, totals);
  };
  switch (tensor.dtype()) {
    case DType::kFloat32: as_singles(float{}, [](float raw) { return raw; }); return;
    case DType::kFloat16: as_singles(std::uint16_t{}, float_from_half); return;
    case DType::kBfloat16: as_singles(std::uint16_t{}, float_from_bfloat16); return;
    case DType::kFloat8E5m2: as_singles(std::uint8_t{}, float_from_e5m2); return;
    case DType::kFloat8E4m3fn: as_singles(std::uint8_t{}, float_from_e4m3fn); return;
    default: break;
  }
  with_value_load(tensor.dtype(), [&](auto load) {
    count_elements<DoubleBits, typename decltype(load)::Raw>(tensor, load, counter, totals);
  });
}

}  // namespace

std::span<const double> tensorboard_edges() { return kAllEdges; }

struct PiecewiseHistogram::State {
  BucketCounter counter = {};
  Totals totals = {};
  std::int64_t elements = 0;

  Status add(const TensorView& piece) {
    TORNASOLE_CHECK(check_real_elements(piece, "histogram"));
    count_all(piece, &counter, &totals);
    elements += piece.element_count();
    return {};
  }
  Histogram finish() {
    Histogram histogram;
    histogram.num = static_cast<double>(elements);
    totals.write_to(&histogram);
    counter.write_to(&histogram);
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    if (elements == 0) histogram.min = histogram.max = kNan;
    if (histogram.outliers.nan > 0) {
      histogram.min = histogram.max = histogram.sum = histogram.sum_squares = kNan;
    }
    return histogram;
  }
};

PiecewiseHistogram::PiecewiseHistogram() : state_(std::make_unique<State>()) {}
PiecewiseHistogram::PiecewiseHistogram(PiecewiseHistogram&&) noexcept = default;
PiecewiseHistogram& PiecewiseHistogram::operator=(PiecewiseHistogram&&) noexcept = default;
PiecewiseHistogram::~PiecewiseHistogram() = default;
Status PiecewiseHistogram::add(const TensorView& piece) { return state_->add(piece); }
Histogram PiecewiseHistogram::finish() { return state_->finish(); }

Result<Histogram> tensorboard_histogram(const TensorView& tensor) {
  PiecewiseHistogram histogram;
  TORNASOLE_CHECK(histogram.add(tensor));
  return histogram.finish();
}

}  // namespace tornasole::reduce
