#include "rules/xgboost_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "rules/class_values.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_numeric(const Tensor& tensor) {
  return tensor.dtype() != DType::kString && !reduce::is_complex_dtype(tensor.dtype()) && tensor.element_count() > 0;
}

bool is_whole(double number) { return std::isfinite(number) && std::floor(number) == number; }

bool has_more_than_two(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const auto rest = std::ranges::unique(numbers);
  return numbers.size() - rest.size() > 2;
}

double share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

double f1_of(double precision, double recall) { return share(2 * precision * recall, precision + recall); }

// Equally wide bins over the finite numbers.
std::vector<double> bin_edges(std::span<const double> numbers, std::size_t bins) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    low = std::min(low, number);
    high = std::max(high, number);
  }
  std::vector<double> edges;
  if (low > high) return edges;
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  for (std::size_t i = 0; i <= bins; ++i) {
    const double at = static_cast<double>(i) / static_cast<double>(bins);
    edges.push_back(low * (1 - at) + high * at);
  }
  return edges;
}

std::size_t bin_of(const std::vector<double>& edges, double number) {
  const auto above = std::ranges::upper_bound(edges, number);
  const auto place = static_cast<std::size_t>(std::max<std::ptrdiff_t>(above - edges.begin() - 1, 0));
  return std::min(place, edges.size() - 2);
}

}  // namespace

std::string_view job_kind_name(JobKind kind) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"unknown", "binary", "multiclass", "regression"};
  return kNames[static_cast<std::size_t>(kind)];
}

LabelledPairs make_pairs(const Tensor& labels, const Tensor& predictions) {
  LabelledPairs pairs;
  if (!is_numeric(labels) || !is_numeric(predictions)) return pairs;
  pairs.labels = to_doubles(labels);
  if (has_scores(predictions.shape())) {
    auto classes = argmax_classes(predictions);
    if (!classes) return pairs;
    pairs.predictions = std::move(*classes);
    if (has_scores(labels.shape()) && labels.shape() == predictions.shape()) {
      pairs.labels = *argmax_classes(labels);
    }
    pairs.kind = JobKind::kMultiClass;
  } else {
    pairs.predictions = to_doubles(predictions);
    if (std::ranges::all_of(pairs.labels, [](double label) { return label == 0 || label == 1; })) {
      pairs.kind = JobKind::kBinary;
      pairs.scores = pairs.predictions;
      for (double& prediction : pairs.predictions) prediction = prediction >= 0.5 ? 1 : 0;
    } else {
      const bool is_multi_class = std::ranges::all_of(pairs.labels, is_whole) &&
                                  std::ranges::all_of(pairs.predictions, is_whole) && has_more_than_two(pairs.labels);
      pairs.kind = is_multi_class ? JobKind::kMultiClass : JobKind::kRegression;
    }
  }
  if (pairs.labels.size() != pairs.predictions.size()) return {};
  return pairs;
}

ConfusionTable confusion_table(const LabelledPairs& pairs) {
  ConfusionTable table;
  table.classes = pairs.labels;
  table.classes.insert(table.classes.end(), pairs.predictions.begin(), pairs.predictions.end());
  std::erase_if(table.classes, [](double number) { return std::isnan(number); });
  std::ranges::sort(table.classes);
  const auto rest = std::ranges::unique(table.classes);
  table.classes.erase(rest.begin(), rest.end());
  if (table.classes.size() > kMaxTableClasses) return table;
  table.counts.assign(table.classes.size(), std::vector<std::int64_t>(table.classes.size()));
  const auto place = [&](double number) {
    return static_cast<std::size_t>(std::ranges::lower_bound(table.classes, number) - table.classes.begin());
  };
  for (std::size_t i = 0; i < pairs.labels.size(); ++i) {
    if (std::isnan(pairs.labels[i]) || std::isnan(pairs.predictions[i])) continue;
    ++table.counts[place(pairs.labels[i])][place(pairs.predictions[i])];
    ++table.total;
  }
  return table;
}

std::vector<double> diagonal(const ConfusionTable& table) {
  std::vector<double> shares;
  for (std::size_t i = 0; i < table.counts.size(); ++i) {
    const auto& row = table.counts[i];
    const auto sum = std::accumulate(row.begin(), row.end(), std::int64_t{0});
    shares.push_back(sum == 0 ? kNan : static_cast<double>(row[i]) / static_cast<double>(sum));
  }
  return shares;
}

ClassScores class_scores(const ConfusionTable& table) {
  ClassScores scores;
  double right = 0;
  for (std::size_t i = 0; i < table.counts.size(); ++i) {
    double predicted = 0;
    std::int64_t support = 0;
    for (std::size_t j = 0; j < table.counts.size(); ++j) {
      predicted += static_cast<double>(table.counts[j][i]);
      support += table.counts[i][j];
    }
    const auto hits = static_cast<double>(table.counts[i][i]);
    right += hits;
    ClassScore score{.precision = share(hits, predicted), .recall = share(hits, static_cast<double>(support))};
    score.f1 = f1_of(score.precision, score.recall);
    score.support = support;
    scores.by_class.push_back(score);
  }
  const auto total = static_cast<double>(table.total);
  const auto count = static_cast<double>(scores.by_class.size());
  for (const ClassScore& score : scores.by_class) {
    const double weight = share(static_cast<double>(score.support), total);
    scores.macro.precision += share(score.precision, count);
    scores.macro.recall += share(score.recall, count);
    scores.macro.f1 += share(score.f1, count);
    scores.weighted.precision += weight * score.precision;
    scores.weighted.recall += weight * score.recall;
    scores.weighted.f1 += weight * score.f1;
  }
  // Each sample has one label and one prediction, so all three are the share that is right.
  scores.micro.precision = scores.micro.recall = scores.micro.f1 = share(right, total);
  for (ClassScore* mean : {&scores.micro, &scores.macro, &scores.weighted}) mean->support = table.total;
  return scores;
}

RocCurve roc_curve(const LabelledPairs& pairs) {
  std::vector<std::size_t> order;
  double positives = 0;
  for (std::size_t i = 0; i < pairs.scores.size(); ++i) {
    if (std::isnan(pairs.scores[i])) continue;
    order.push_back(i);
    positives += pairs.labels[i];
  }
  const double negatives = static_cast<double>(order.size()) - positives;
  RocCurve curve;
  if (positives == 0 || negatives == 0) return curve;
  std::ranges::sort(order, std::greater(), [&](std::size_t i) { return pairs.scores[i]; });
  double hits = 0;
  double alarms = 0;
  curve.points.emplace_back(0, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    (pairs.labels[order[i]] == 1 ? hits : alarms) += 1;
    // Equal scores cannot be told apart: they are one point.
    if (i + 1 < order.size() && pairs.scores[order[i]] == pairs.scores[order[i + 1]]) continue;
    const std::pair<double, double> point(alarms / negatives, hits / positives);
    curve.area += (point.first - curve.points.back().first) * (point.second + curve.points.back().second) / 2;
    curve.points.push_back(point);
  }
  return curve;
}

Distribution distribution(std::span<const double> numbers, std::size_t bins) {
  Distribution result{.edges = bin_edges(numbers, bins)};
  if (result.edges.empty()) {
    result.not_finite = static_cast<std::int64_t>(numbers.size());
    return result;
  }
  result.counts.assign(bins, 0);
  double count = 0;
  double squares = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) {
      ++result.not_finite;
      continue;
    }
    ++result.counts[bin_of(result.edges, number)];
    ++count;
    const double from_mean = number - result.mean;
    result.mean += from_mean / count;
    squares += from_mean * (number - result.mean);
  }
  result.deviation = std::sqrt(squares / count);
  return result;
}

std::vector<double> residuals(const LabelledPairs& pairs) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < pairs.labels.size(); ++i) numbers.push_back(pairs.labels[i] - pairs.predictions[i]);
  return numbers;
}

std::size_t label_bins(const LabelledPairs& pairs) {
  if (pairs.kind == JobKind::kRegression) return kResidualBins;
  std::vector<double> classes = pairs.labels;
  std::ranges::sort(classes);
  const auto rest = std::ranges::unique(classes);
  return std::clamp<std::size_t>(classes.size() - rest.size(), 1, kResidualBins);
}

BinnedErrors binned_errors(const LabelledPairs& pairs) {
  constexpr std::size_t kBins = 10;
  BinnedErrors result{.edges = bin_edges(pairs.labels, kBins)};
  if (result.edges.empty()) return result;
  std::array<double, kBins> sums{};
  std::array<double, kBins> counts{};
  for (std::size_t i = 0; i < pairs.labels.size(); ++i) {
    const double error = std::fabs(pairs.labels[i] - pairs.predictions[i]);
    if (!std::isfinite(error)) continue;
    const std::size_t bin = bin_of(result.edges, pairs.labels[i]);
    sums[bin] += error;
    ++counts[bin];
  }
  for (std::size_t i = 0; i < kBins; ++i) result.mean_errors.push_back(counts[i] == 0 ? kNan : sums[i] / counts[i]);
  return result;
}

}  // namespace tornasole::rules
