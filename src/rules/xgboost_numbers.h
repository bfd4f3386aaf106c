#pragma once

// The numbers of a report about boosted trees, from labels and predictions alone.
//
//   in:  labels and predictions of one step
//   out: plain structs, which xgboost_page.cc and the report's JSON print

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/tensor.h"

namespace tornasole::rules {

enum class JobKind : std::uint8_t { kUnknown, kBinary, kMultiClass, kRegression };
// "unknown", "binary", "multiclass", "regression".
std::string_view job_kind_name(JobKind kind) noexcept;

// One step's pairs, as many labels as predictions.
struct LabelledPairs {
  JobKind kind = JobKind::kUnknown;
  std::vector<double> labels = {};
  std::vector<double> predictions = {};  // classes, or numbers of a regression
  std::vector<double> scores = {};       // of a binary job: how sure it is of class 1
};
// Scores per class, or whole labels of more than two values with whole predictions: multi-class. Labels 0 and 1 only:
// binary, of class 1 from a score of 0.5 on. Else regression. Unknown if the tensors do not fit together.
LabelledPairs make_pairs(const Tensor& labels, const Tensor& predictions);

struct ConfusionTable {
  std::vector<double> classes = {};                    // those seen, ascending
  std::vector<std::vector<std::int64_t>> counts = {};  // by label, then by prediction
  std::int64_t total = 0;
};
// Without counts if there are more than kMaxTableClasses.
inline constexpr std::size_t kMaxTableClasses = 500;
ConfusionTable confusion_table(const LabelledPairs& pairs);
// The share of each class that is right; NaN for one without labels.
std::vector<double> diagonal(const ConfusionTable& table);

struct ClassScore {
  double precision = 0, recall = 0, f1 = 0;
  std::int64_t support = 0;
};
struct ClassScores {
  std::vector<ClassScore> by_class = {};
  ClassScore micro = {}, macro = {}, weighted = {};
};
ClassScores class_scores(const ConfusionTable& table);

struct RocCurve {
  std::vector<std::pair<double, double>> points = {};  // false positives, true positives; from (0, 0) to (1, 1)
  double area = 0;
};
// Empty if one of the classes is missing.
RocCurve roc_curve(const LabelledPairs& pairs);

struct Distribution {
  std::vector<double> edges = {};  // one more than counts; equally wide bins, the last with its end
  std::vector<std::int64_t> counts = {};
  double mean = 0, deviation = 0;
  std::int64_t not_finite = 0;  // left out
};
Distribution distribution(std::span<const double> numbers, std::size_t bins);
inline constexpr std::size_t kResidualBins = 30;
// Label - prediction.
std::vector<double> residuals(const LabelledPairs& pairs);
// One bin per class where that is few enough to look at, else 30.
std::size_t label_bins(const LabelledPairs& pairs);

// The mean magnitude of label - prediction in ten equally wide bins of the label; NaN for a bin without labels.
struct BinnedErrors {
  std::vector<double> edges = {};
  std::vector<double> mean_errors = {};
};
BinnedErrors binned_errors(const LabelledPairs& pairs);

}  // namespace tornasole::rules
