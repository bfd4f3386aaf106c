#include "rules/check/tensor_row.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "rules/check/number_windows.h"
#include "rules/effective_rank.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kKeptActivity = 8;
constexpr std::size_t kKeptPairs = 64;

// The derivative of a bounded activation, averaged over its elements and relative to its largest value, by its output:
// 1 - x^2 of tanh, 4 x (1 - x) of the sigmoid.
double mean_derivative(const TensorRole& role, const Row& row) {
  const double count = row[static_cast<std::size_t>(Column::kCount)];
  const double l2 = row[static_cast<std::size_t>(Column::kL2)];
  const double square = l2 * l2 / count;
  if (role.layer_class.find("tanh") != std::string::npos) return 1 - square;
  return 4 * (row[static_cast<std::size_t>(Column::kMean)] - square);
}

bool is_bounded(const TensorRole& role) {
  if (role.role != Role::kLayerOutput) return false;
  for (const char* other : {"hard", "logsigmoid", "tanhshrink"}) {
    if (role.layer_class.find(other) != std::string::npos) return false;
  }
  return role.layer_class.find("tanh") != std::string::npos || role.layer_class.find("sigmoid") != std::string::npos;
}

}  // namespace

bool is(const Tensor* tensor, DType dtype, std::size_t least) {
  return tensor != nullptr && tensor->dtype() == dtype && tensor->element_count() >= static_cast<std::int64_t>(least);
}

void note_stats(const Stats& stats, Row* row) {
  constexpr std::pair<Stat, Column> kPairs[] = {{Stat::kMean, Column::kMean},       {Stat::kStd, Column::kStd},
                                                {Stat::kMin, Column::kMin},         {Stat::kMax, Column::kMax},
                                                {Stat::kAbsMean, Column::kAbsMean}, {Stat::kL2, Column::kL2},
                                                {Stat::kCount, Column::kCount},     {Stat::kZeros, Column::kZeros},
                                                {Stat::kNan, Column::kNan},         {Stat::kInf, Column::kInf}};
  for (const auto& [stat, column] : kPairs) {
    if (const auto number = stats[stat]) set(row, column, *number);
  }
}

void note_counts(const Tensor* counts, Row* row) {
  if (!is(counts, DType::kInt64, 5)) return;
  const auto numbers = elements<std::int64_t>(*counts);
  set(row, Column::kCount, static_cast<double>(numbers[0]));
  set(row, Column::kZeros, static_cast<double>(numbers[1]));
  set(row, Column::kNan, static_cast<double>(numbers[2]));
  set(row, Column::kInf, static_cast<double>(numbers[3] + numbers[4]));
}

// Where nobody counted, a stored reduction that is not finite tells that an element is not, and of a value its mean.
void note_bad_reductions(const StepTensor& tensor, Row* row) {
  if (knows(*row, Column::kNan)) return;
  if (const auto mean = tensor.stats[Stat::kMean]; mean && !std::isfinite(*mean)) {
    set(row, std::isnan(*mean) ? Column::kNan : Column::kInf, 1);
  }
  for (const auto& [reduction, number] : tensor.reductions) {
    if (std::isnan(number)) set(row, Column::kNan, 1);
    if (std::isinf(number)) set(row, Column::kInf, 1);
  }
}

void note_quantiles(const Tensor* quantiles, Row* row) {
  if (!is(quantiles, DType::kFloat32, 5)) return;
  const auto numbers = elements<float>(*quantiles);
  constexpr Column kColumns[] = {Column::kQ1, Column::kQ5, Column::kQ50, Column::kQ95, Column::kQ99};
  for (std::size_t i = 0; i < 5; ++i) set(row, kColumns[i], numbers[i]);
}

void note_activity(const Tensor* activity, Row* row, std::vector<std::vector<float>>* kept) {
  if (!is(activity, DType::kFloat32, 1)) return;
  const auto shares = elements<float>(*activity);
  double sum = 0;
  std::size_t active = 0;
  for (const float share : shares) {
    sum += share;
    active += share > 0 ? 1U : 0U;
  }
  const auto units = static_cast<double>(shares.size());
  set(row, Column::kActivity, sum / units);
  set(row, Column::kActiveUnits, static_cast<double>(active) / units);
  if (kept->size() == kKeptActivity || (!kept->empty() && kept->front().size() != shares.size())) {
    kept->erase(kept->begin());
  }
  kept->emplace_back(shares.begin(), shares.end());
}

void note_across(const Tensor* across, Row* row) {
  if (!is(across, DType::kFloat32, 3) || across->element_count() % 3 != 0) return;
  const auto numbers = elements<float>(*across);
  const std::size_t units = numbers.size() / 3;
  set(row, Column::kUnits, static_cast<double>(units));
  double variance = 0;
  double square = 0;
  std::vector<double> sizes(units);
  for (std::size_t u = 0; u < units; ++u) {
    const double mean = numbers[u];
    variance += std::max(0.0, static_cast<double>(numbers[units + u]) - mean * mean);
    square += numbers[units + u];
    sizes[u] = std::sqrt(static_cast<double>(numbers[units + u]));
  }
  const double largest = units == 0 ? 0 : *std::ranges::max_element(sizes);
  if (const double usual = median(std::move(sizes)); usual > 0) set(row, Column::kUnitSpread, largest / usual);
  // Of a mask of minus infinity nothing is known.
  if (square > 0 && std::isfinite(square)) set(row, Column::kSampleVariance, variance / square);
  const double count = (*row)[static_cast<std::size_t>(Column::kCount)];
  if (count > 0) set(row, Column::kSamples, count / static_cast<double>(units));
}

bool note_shares(const Tensor* across, const Row& row, std::vector<std::int64_t>* pooled) {
  constexpr double kRounding = 1e-3;
  const double samples = row[static_cast<std::size_t>(Column::kSamples)];
  if (!is(across, DType::kFloat32, 3) || across->element_count() % 3 != 0 || !(samples > 1)) return false;
  if (!(row[static_cast<std::size_t>(Column::kMin)] >= 0 && row[static_cast<std::size_t>(Column::kMax)] <= 1)) {
    return false;
  }
  const auto shares = elements<float>(*across).first(static_cast<std::size_t>(across->element_count()) / 3);
  double sum = 0;
  for (const float share : shares) sum += share;
  if (shares.size() < 2 || !(std::fabs(sum - 1) < kRounding)) return false;
  if (pooled->size() < shares.size()) pooled->resize(shares.size());
  for (std::size_t u = 0; u < shares.size(); ++u) (*pooled)[u] += std::llround(shares[u] * samples);
  return true;
}

void note_labels(const Tensor* counts, std::vector<std::int64_t>* pooled) {
  if (!is(counts, DType::kInt64, 1) || counts->shape().rank() != 1) return;
  const auto numbers = elements<std::int64_t>(*counts);
  if (pooled->size() < numbers.size()) pooled->resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) (*pooled)[i] += numbers[i];
}

void note_pairs(const Tensor* pairs, std::uint32_t point, std::vector<ClassPairs>* kept) {
  if (!is(pairs, DType::kInt64, 1) || pairs->shape().rank() != 2 || pairs->shape()[0] > kMostPairedClasses) return;
  const auto numbers = elements<std::int64_t>(*pairs);
  if (kept->size() == kKeptPairs) kept->erase(kept->begin());
  kept->push_back(
      {point, static_cast<std::size_t>(pairs->shape()[0]), std::vector<std::int64_t>(numbers.begin(), numbers.end())});
}

// Rows that start equal stay equal: the units they belong to learn the same.
void note_equal_units(const Tensor& value, Row* row) {
  const Shape& shape = value.shape();
  if (shape.rank() < 2 || shape[0] < 2 || value.bytes().empty()) return;
  const auto rows = static_cast<std::size_t>(shape[0]);
  const std::size_t bytes = value.bytes().size() / rows;
  const auto text = [&](std::size_t r) {
    return std::string_view(reinterpret_cast<const char*>(value.bytes().data()) + r * bytes, bytes);
  };
  std::set<std::string_view> distinct;
  for (std::size_t r = 0; r < rows; ++r) distinct.insert(text(r));
  set(row, Column::kEqualUnits, 1 - static_cast<double>(distinct.size()) / static_cast<double>(rows));
}

// Small matrices have a small rank by themselves.
void note_rank(const Tensor& value, Row* row) {
  constexpr std::int64_t kLeastSide = 8;
  constexpr std::size_t kRows = 64;
  const Shape& shape = value.shape();
  if (shape.rank() != 2 || std::min(shape[0], shape[1]) < kLeastSide) return;
  const std::vector<double> values = singular_values_of(value, kRows);
  if (!values.empty()) set(row, Column::kRank, effective_rank(values) / static_cast<double>(values.size()));
}

void note_saturation(const TensorRole& role, Row* row) {
  if (is_bounded(role)) set(row, Column::kSaturated, 1 - mean_derivative(role, *row));
}

}  // namespace tornasole::rules
