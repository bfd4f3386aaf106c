#pragma once

// Histograms of all elements of a tensor, shape ignored: over TensorBoard's exponential buckets, and over equal bins.
//
//   in:  TensorView of any real type, contiguous or strided
//   out: counts, and beside them what no bucket took: nothing is dropped silently
//   who: TensorBoard output of capture, queries, rules
//
// kInvalid for complex numbers, strings, and elements without data.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reduce/value_range.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

// Elements that lie in no bucket.
struct Outliers {
  std::int64_t nan = 0;
  std::int64_t pos_inf = 0;
  std::int64_t neg_inf = 0;
  std::int64_t below = 0;  // finite, less than the first edge
  std::int64_t above = 0;  // finite, more than the last edge
  bool operator==(const Outliers&) const = default;
};

// What a HistogramProto holds (docs/format.md 8).
struct Histogram {
  // Of all elements, those in no bucket included: any NaN makes these four NaN. Of no elements: NaN, NaN, 0, 0.
  double min = 0;
  double max = 0;
  double sum = 0;
  double sum_squares = 0;
  double num = 0;  // all elements
  // From the lower edge of the first non-empty bucket to the upper edge of the last; bucket[0] is 0, bucket[i] counts
  // bucket_limit[i-1] <= x < bucket_limit[i]. Both empty if no element fell into a bucket.
  std::vector<double> bucket_limit = {};
  std::vector<double> bucket = {};
  Outliers outliers = {};
};
Result<Histogram> tensorboard_histogram(const TensorView& tensor);
// The same of a tensor that comes in pieces.
class PiecewiseHistogram {
 public:
  PiecewiseHistogram();
  PiecewiseHistogram(PiecewiseHistogram&&) noexcept;
  PiecewiseHistogram& operator=(PiecewiseHistogram&&) noexcept;
  ~PiecewiseHistogram();

  Status add(const TensorView& piece);
  Histogram finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// The 1549 edges: 1e-12 times powers of 1.1 up to 1e20, their negatives, and 0.
std::span<const double> tensorboard_edges();

// counts[i] elements with edges[i] <= x < edges[i+1]; the last bin also x = edges.back().
struct LinearHistogram {
  std::vector<double> edges = {};
  std::vector<std::int64_t> counts = {};
  Outliers outliers = {};
};
inline constexpr std::int64_t kMaxBins = std::int64_t{1} << 20;
// Edges as numpy.histogram places them for doubles. Without a range: from the smallest to the largest finite element; 0
// to 1 if there is none. A range of no width is widened by 0.5 to each side. kInvalid also for bins outside 1..kMaxBins
// and for a range that is not finite or not in order.
Result<LinearHistogram> linear_histogram(const TensorView& tensor, std::int64_t bins,
                                         std::optional<ValueRange> range = {});

}  // namespace tornasole::reduce
