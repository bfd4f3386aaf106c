#include <algorithm>
#include <cmath>
#include <limits>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/element_values.h"
#include "reduce/histogram.h"

namespace tornasole::reduce {
namespace {

// Calls function(const double*, count) for every block of elements, as doubles.
template <typename Function>
void for_each_value_block(const TensorView& tensor, const Function& function) {
  with_value_load(tensor.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    for_each_block<Raw>(tensor, ElementOrder::kAny, [&](const Raw* raw, std::size_t size) {
      double x[kBlockElements];
      for (std::size_t i = 0; i < size; ++i) x[i] = load(raw[i]);
      function(x, size);
      return true;
    });
  });
}

std::optional<ValueRange> finite_range(const TensorView& tensor) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ValueRange range{kInfinity, -kInfinity};
  for_each_value_block(tensor, [&](const double* x, std::size_t size) {
    double low[kLanes], high[kLanes];
    std::ranges::fill(low, range.low);
    std::ranges::fill(high, range.high);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t lane = i % kLanes;
      const bool is_finite = std::fabs(x[i]) < kInfinity;
      const double least = is_finite ? x[i] : kInfinity;
      const double most = is_finite ? x[i] : -kInfinity;
      low[lane] = least < low[lane] ? least : low[lane];
      high[lane] = most > high[lane] ? most : high[lane];
    }
    range = {*std::ranges::min_element(low), *std::ranges::max_element(high)};
  });
  if (range.low > range.high) return std::nullopt;
  return range;
}

Result<ValueRange> choose_range(const TensorView& tensor, std::optional<ValueRange> asked) {
  ValueRange range{0, 1};
  if (asked) {
    if (!std::isfinite(asked->low) || !std::isfinite(asked->high) || asked->low > asked->high) {
      return invalid_error("histogram over the range {} to {}: not allowed; allowed: two finite numbers in order",
                           asked->low, asked->high);
    }
    range = *asked;
  } else if (const auto found = finite_range(tensor)) {
    range = *found;
  }
  if (range.low == range.high) {
    range.low -= 0.5;
    range.high += 0.5;
    // Beside a large number a half is nothing; the neighbours are the narrowest range there is.
    if (range.low == range.high) {
      range.low = std::nextafter(range.low, std::numeric_limits<double>::lowest());
      range.high = std::nextafter(range.high, std::numeric_limits<double>::max());
    }
  }
  return range;
}

std::vector<double> make_edges(ValueRange range, std::size_t bins) {
  const auto parts = static_cast<double>(bins);
  const double width = range.high - range.low;
  const double step = std::isfinite(width) ? width / parts : range.high / parts - range.low / parts;
  std::vector<double> edges(bins + 1);
  for (std::size_t i = 0; i <= bins; ++i) edges[i] = static_cast<double>(i) * step + range.low;
  edges.back() = range.high;
  // A rounding error of the last steps must not put an edge beyond the end.
  for (double& edge : edges) edge = std::min(edge, range.high);
  return edges;
}

class BinCounter {
 public:
  explicit BinCounter(LinearHistogram* histogram)
      : outliers_(histogram->outliers),
        edges_(histogram->edges),
        counts_(histogram->counts.data()),
        low_(edges_.front()),
        high_(edges_.back()),
        bins_(histogram->counts.size()),
        scale_(static_cast<double>(bins_) / (high_ - low_)),
        is_scaled_(std::isfinite(scale_) && scale_ > 0) {}

  void count(const double* x, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      if (x[i] >= low_ && x[i] <= high_) [[likely]] {
        ++counts_[bin_of(x[i])];
      } else {
        count_outside(x[i]);
      }
    }
  }

 private:
  // An estimate, put right by the edges themselves: they alone say where a bin ends.
  std::size_t bin_of(double x) const {
    const double* edges = edges_.data();
    if (is_scaled_) [[likely]] {
      const auto bin = std::min(static_cast<std::size_t>((x - low_) * scale_), bins_ - 1);
      if (x >= edges[bin] && (x < edges[bin + 1] || bin + 1 == bins_)) [[likely]]
        return bin;
    }
    const auto after = std::upper_bound(edges_.begin(), edges_.end(), x);
    return std::min(static_cast<std::size_t>(after - edges_.begin()) - 1, bins_ - 1);
  }

  void count_outside(double x) {
    if (std::isnan(x)) {
      ++outliers_.nan;
    } else if (std::isinf(x)) {
      ++(x > 0 ? outliers_.pos_inf : outliers_.neg_inf);
    } else {
      ++(x > high_ ? outliers_.above : outliers_.below);
    }
  }

  Outliers& outliers_;
  const std::vector<double>& edges_;
  std::int64_t* const counts_;
  const double low_;
  const double high_;
  const std::size_t bins_;
  const double scale_;
  const bool is_scaled_;  // the scale neither overflows nor vanishes
};

}  // namespace

Result<LinearHistogram> linear_histogram(const TensorView& tensor, std::int64_t bins, std::optional<ValueRange> range) {
  TORNASOLE_CHECK(check_real_elements(tensor, "histogram"));
  if (bins < 1 || bins > kMaxBins) {
    return invalid_error("histogram with {} bins: not allowed; allowed: 1 to {}", bins, kMaxBins);
  }
  TORNASOLE_TRY(const ValueRange chosen, choose_range(tensor, range));
  LinearHistogram histogram;
  histogram.edges = make_edges(chosen, static_cast<std::size_t>(bins));
  histogram.counts.resize(static_cast<std::size_t>(bins));
  BinCounter counter(&histogram);
  for_each_value_block(tensor, [&](const double* x, std::size_t size) { counter.count(x, size); });
  return histogram;
}

}  // namespace tornasole::reduce
