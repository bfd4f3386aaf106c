// The buckets of TensorBoard's histograms.
//
// The edges grow by a tenth each, so a sixteenth of an octave holds at most one of them. A table over the upper 15 bits
// of the magnitude (11 of the exponent, 4 of the mantissa) says which bucket such a cell begins in and where the next
// one starts; one comparison of bits decides. Bits of magnitudes are in the order of the magnitudes.
//
//   x >= 0: buckets are closed below, so the bucket is the number of edges e with bits(x) >= bits(e).
//   x < 0:  buckets are closed below, which is open towards zero: the number of e with bits(-x) - 1 >= bits(e).

#include "reduce/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/element_values.h"

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

// ---- the table

constexpr int kCellShift = 48;
constexpr std::uint64_t kFirstCell = std::bit_cast<std::uint64_t>(kSmallest) >> kCellShift;
constexpr std::uint64_t kLastCell = std::bit_cast<std::uint64_t>(kPositive.back()) >> kCellShift;
constexpr std::size_t kCells = kLastCell - kFirstCell + 3;  // one for everything before, one for everything after

struct Cell {
  std::uint64_t next = 0;   // bits of the edge inside the cell; beyond all magnitudes if there is none
  std::uint64_t edges = 0;  // before the cell
};

constexpr std::array<Cell, kCells> make_cells() {
  std::array<Cell, kCells> cells{};
  std::size_t edge = 0;
  for (std::size_t i = 0; i < kCells; ++i) {
    cells[i] = {std::numeric_limits<std::uint64_t>::max(), edge};
    const std::uint64_t number = kFirstCell + i - 1;
    if (i == 0 || edge == kPositiveEdges) continue;
    const auto bits = std::bit_cast<std::uint64_t>(kPositive[edge]);
    if (bits >> kCellShift != number) continue;
    cells[i].next = bits;
    ++edge;
  }
  return cells;
}
constexpr std::array<Cell, kCells> kTable = make_cells();
static_assert(kTable.back().edges == kPositiveEdges, "no cell holds two edges");

// ---- counting

// Several counters a bucket: an increment that waits for the one before it costs more than everything else here.
constexpr std::size_t kCopies = 4;
constexpr std::size_t kOutside = kPositiveEdges;  // number of edges passed by what lies beyond all of them
constexpr std::size_t kSide = kPositiveEdges + 1;

class BucketCounter {
 public:
  void count(const double* x, std::size_t size) {
    std::size_t i = 0;
    for (; i + kCopies <= size; i += kCopies) {
      for (std::size_t copy = 0; copy < kCopies; ++copy) count_one(x[i + copy], copy);
    }
    for (; i < size; ++i) count_one(x[i], 0);
    pending_ += size;
    if (pending_ > std::numeric_limits<std::uint32_t>::max() / 2) flush();
  }

  void write_to(Histogram* histogram) {
    flush();
    const auto first = std::ranges::find_if(totals_, [](std::int64_t n) { return n != 0; });
    histogram->outliers = outliers_;
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
  void count_one(double x, std::size_t copy) {
    const auto is_negative = static_cast<std::uint64_t>(x < 0);
    const std::uint64_t bits = (std::bit_cast<std::uint64_t>(x) & ~(std::uint64_t{1} << 63)) - is_negative;
    const std::uint64_t place = std::clamp<std::uint64_t>(bits >> kCellShift, kFirstCell - 1, kLastCell + 1);
    const Cell& cell = kTable[place - (kFirstCell - 1)];
    const std::uint64_t passed = cell.edges + static_cast<std::uint64_t>(bits >= cell.next);
    if (passed == kOutside) [[unlikely]] {
      count_outside(x);
    } else {
      ++counts_[copy][is_negative * kSide + passed];
    }
  }

  void count_outside(double x) {
    if (std::isnan(x)) {
      ++outliers_.nan;
    } else if (std::isinf(x)) {
      ++(x > 0 ? outliers_.pos_inf : outliers_.neg_inf);
    } else if (x == kPositive.back()) {
      ++totals_[kBuckets - 1];  // the last bucket is closed above
    } else {
      ++(x > 0 ? outliers_.above : outliers_.below);
    }
  }

  void flush() {
    for (auto& copy : counts_) {
      for (std::size_t passed = 0; passed < kPositiveEdges; ++passed) {
        totals_[kZeroBucket + passed] += copy[passed];
        totals_[kZeroBucket - 1 - passed] += copy[kSide + passed];
      }
      copy.fill(0);
    }
    pending_ = 0;
  }

  std::array<std::array<std::uint32_t, 2 * kSide>, kCopies> counts_{};  // by sign, then by edges passed
  std::array<std::int64_t, kBuckets> totals_{};
  Outliers outliers_ = {};
  std::size_t pending_ = 0;
};

// Smallest, largest and sums of what is not NaN.
class Moments {
 public:
  void add(const double* x, std::size_t size) {
    Lanes sum{}, squares{}, low{}, high{};
    low.fill(min_);
    high.fill(max_);
    std::size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double v = x[i + lane];
        sum[lane] += v;
        squares[lane] += v * v;
        low[lane] = v < low[lane] ? v : low[lane];
        high[lane] = v > high[lane] ? v : high[lane];
      }
    }
    for (; i < size; ++i) {
      sum[0] += x[i];
      squares[0] += x[i] * x[i];
      low[0] = std::min(low[0], x[i]);
      high[0] = std::max(high[0], x[i]);
    }
    add_lanes(sum_, sum);
    add_lanes(squares_, squares);
    min_ = *std::ranges::min_element(low);
    max_ = *std::ranges::max_element(high);
  }

  void write_to(Histogram* histogram) const {
    histogram->min = min_;
    histogram->max = max_;
    histogram->sum = sum_.value();
    histogram->sum_squares = squares_.value();
  }

 private:
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  CompensatedSum sum_, squares_;
};

}  // namespace

std::span<const double> tensorboard_edges() { return kAllEdges; }

Result<Histogram> tensorboard_histogram(const TensorView& tensor) {
  TORNASOLE_CHECK(check_real_elements(tensor, "histogram"));
  BucketCounter counter;
  Moments moments;
  with_value_load(tensor.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* raw, std::size_t size) {
      std::array<double, kBlockElements> x;
      for (std::size_t i = 0; i < size; ++i) x[i] = load(raw[i]);
      counter.count(x.data(), size);
      moments.add(x.data(), size);
      return true;
    });
  });
  Histogram histogram;
  histogram.num = static_cast<double>(tensor.element_count());
  moments.write_to(&histogram);
  counter.write_to(&histogram);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (tensor.element_count() == 0) histogram.min = histogram.max = kNan;
  if (histogram.outliers.nan > 0) {
    histogram.min = histogram.max = histogram.sum = histogram.sum_squares = kNan;
  }
  return histogram;
}

}  // namespace tornasole::reduce
