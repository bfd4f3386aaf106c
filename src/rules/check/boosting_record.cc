// What a record holds of boosting besides numbers of tensors: trees, hyperparameters, how good predictions are.

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rules/check/run_record.h"
#include "rules/tensor_numbers.h"
#include "rules/xgboost_numbers.h"

namespace tornasole::rules {
namespace {

using Row = std::array<float, kColumnCount>;
void set(Row* row, Column column, double value) {
  (*row)[static_cast<std::size_t>(column)] = static_cast<float>(value);
}

}  // namespace

void Recorder::note_round(std::span<const StepTensor* const> tensors) {
  std::map<std::string_view, const Tensor*> columns;
  bool has_trees = false;
  bool has_set_metrics = false;
  bool has_network = false;
  for (const StepTensor* tensor : tensors) {
    const Role role = roles_->role_of(tensor->name).role;
    const bool is_loss = role == Role::kLoss || role == Role::kValidationLoss;
    has_trees |= role == Role::kTreeTable || role == Role::kImportance;
    has_set_metrics |= is_loss && tensor->name.find('-') != std::string_view::npos;
    has_network |=
        role == Role::kWeight || role == Role::kBias || role == Role::kGradient || role == Role::kLayerOutput;
    if (role == Role::kTreeTable) columns.try_emplace(tensor->name, tensor->value.get());
  }
  // Runs of other writers have no description, but losses that are called "<data set>-<metric>", and nothing else.
  record_.is_boosting |= has_trees || (has_set_metrics && !has_network && roles_->model() == nullptr);
  if (columns.empty()) return;
  const auto shape = tree_shape(columns["trees/ID"], columns["trees/Yes"], columns["trees/No"]);
  if (shape) record_.trees.push_back({static_cast<std::uint32_t>(record_.steps.size() - 1), *shape});
}

void Recorder::note_hyperparameter(const StepTensor& tensor) {
  if (tensor.value == nullptr || tensor.value->element_count() != 1) return;
  const std::string name(tensor.name.substr(tensor.name.find('/') + 1));
  const Tensor& value = *tensor.value;
  if (value.dtype() == DType::kString) {
    const std::string& text = value.texts()[0];
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == 0) record_.hyperparameters.insert_or_assign(name, number);
  } else if (const auto numbers = to_doubles(value); numbers.size() == 1) {
    record_.hyperparameters.insert_or_assign(name, numbers[0]);
  }
}

// Boosting predicts the same data at each round that is saved.
void Recorder::note_quality(History& history, const StepTensor& predictions, std::span<const StepTensor* const> tensors,
                            Row* row) {
  const auto labels = std::ranges::find_if(tensors, [&](const StepTensor* tensor) {
    return tensor->worker == predictions.worker && tensor->value != nullptr &&
           roles_->role_of(tensor->name).role == Role::kLabels;
  });
  if (predictions.value == nullptr) return;
  if (predictions.value->shape().rank() == 1) {
    // One number per sample: the samples lie along the only axis.
    const double mean = (*row)[static_cast<std::size_t>(Column::kMean)];
    const double deviation = (*row)[static_cast<std::size_t>(Column::kStd)];
    const auto samples = static_cast<double>(predictions.value->element_count());
    set(row, Column::kSamples, samples);
    set(row, Column::kSampleVariance,
        deviation == 0 ? 0 : deviation * deviation / (mean * mean + deviation * deviation));
  }
  if (labels == tensors.end()) return;
  const LabelledPairs pairs = make_pairs(*(*labels)->value, *predictions.value);
  if (pairs.labels.empty()) return;
  if (pairs.kind == JobKind::kRegression) {
    const std::vector<double> left = residuals(pairs);
    double residual = 0;
    for (const double one : left) residual += one * one;
    const double deviation = distribution(pairs.labels, 1).deviation;
    if (deviation > 0) {
      set(row, Column::kUnexplained, residual / static_cast<double>(left.size()) / (deviation * deviation));
    }
    return;
  }
  std::size_t wrong = 0;
  double largest = 0;
  for (std::size_t i = 0; i < pairs.labels.size(); ++i) {
    wrong += pairs.labels[i] != pairs.predictions[i] ? 1U : 0U;
    largest = std::max({largest, pairs.labels[i], pairs.predictions[i]});
  }
  set(row, Column::kUnexplained, static_cast<double>(wrong) / static_cast<double>(pairs.labels.size()));
  if (!(largest < static_cast<double>(kMostPairedClasses))) return;
  const auto classes = static_cast<std::size_t>(largest) + 1;
  ClassPairs counts{static_cast<std::uint32_t>(record_.steps.size() - 1), classes,
                    std::vector<std::int64_t>(classes * classes)};
  for (std::size_t i = 0; i < pairs.labels.size(); ++i) {
    if (!(pairs.labels[i] >= 0 && pairs.predictions[i] >= 0)) return;
    ++counts
          .counts[static_cast<std::size_t>(pairs.labels[i]) * classes + static_cast<std::size_t>(pairs.predictions[i])];
  }
  history.class_pairs.push_back(std::move(counts));
}

}  // namespace tornasole::rules
