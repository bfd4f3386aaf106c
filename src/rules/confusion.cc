// Confusion: in a confusion matrix, too much lies beside the diagonal.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/class_values.h"
#include "rules/rule_errors.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "Confusion";

constexpr std::array kParameters = {
    Parameter{"category_no", ParameterType::kInteger, "", "Number of categories; without: as many as there are"},
    Parameter{"labels", ParameterType::kText, "labels", "Name of the tensor with the labels"},
    Parameter{"predictions", ParameterType::kText, "predictions", "Name of the tensor with the predictions"},
    Parameter{"labels_collection", ParameterType::kText, "labels",
              "Where there is no tensor of that name: the first of this collection"},
    Parameter{"predictions_collection", ParameterType::kText, "predictions",
              "Where there is no tensor of that name: the first of this collection"},
    Parameter{"min_diag", ParameterType::kNumber, "0.9", "Least share of a prediction that is right"},
    Parameter{"max_off_diag", ParameterType::kNumber, "0.1",
              "Largest share of a prediction that is of one other category"},
};

class Confusion final : public Rule {
 public:
  explicit Confusion(const RuleArguments& arguments)
      : labels_{std::string(arguments.text("labels")), std::string(arguments.text("labels_collection"))},
        predictions_{std::string(arguments.text("predictions")), std::string(arguments.text("predictions_collection"))},
        min_diag_(arguments.number("min_diag")),
        max_off_diag_(arguments.number("max_off_diag")) {
    if (arguments.has("category_no")) category_count_ = static_cast<double>(arguments.integer("category_no"));
  }

  std::vector<Need> needs() const override { return {labels_.need(), predictions_.need()}; }

  void look_at(const StepView& step, Findings& findings) override {
    const auto predictions = by_worker(step.tensors(1));
    for (const auto& [worker, labels] : by_worker(step.tensors(0))) {
      const auto found = predictions.find(worker);
      const StepTensor* label = labels_.choose(step.trial(), labels);
      const StepTensor* prediction =
          found == predictions.end() ? nullptr : predictions_.choose(step.trial(), found->second);
      if (label == nullptr || prediction == nullptr) {
        findings.skip("labels or predictions are missing");
        continue;
      }
      look_at_pair(*label, *prediction, findings);
    }
  }

  void reset() override {}

 private:
  struct Column {
    std::int64_t sum = 0;
    std::map<double, std::int64_t> labels = {};
  };

  void look_at_pair(const StepTensor& label, const StepTensor& prediction, Findings& findings) const {
    const Tensor* label_value = numeric_value(label, findings);
    const Tensor* prediction_value = numeric_value(prediction, findings);
    if (label_value == nullptr || prediction_value == nullptr) return;
    const auto labels = classes_of(*label_value);
    const auto predictions = classes_of(*prediction_value);
    if (!labels || !predictions) {
      findings.skip("too many classes");
      return;
    }
    if (labels->size() != predictions->size()) {
      findings.fail(insufficient_error(kName, "{} has {} samples and {} has {}; both must have as many",
                                       printable(label.name), labels->size(), printable(prediction.name),
                                       predictions->size()));
      return;
    }
    std::map<double, Column> columns;
    for (std::size_t i = 0; i < labels->size(); ++i) {
      for (const double category : {(*labels)[i], (*predictions)[i]}) {
        if (category >= 0 && category < category_count_) continue;
        findings.fail(insufficient_error(kName, "{} and {}: category {} is none of 0 to {}", printable(label.name),
                                         printable(prediction.name), category, category_count_ - 1));
        return;
      }
      Column& column = columns[(*predictions)[i]];
      ++column.sum;
      ++column.labels[(*labels)[i]];
    }
    findings.count_datapoint();
    for (const auto& [category, column] : columns) look_at_column(prediction, category, column, findings);
  }

  static std::optional<std::vector<double>> classes_of(const Tensor& value) {
    if (has_scores(value.shape())) return argmax_classes(value);
    return rounded_classes(value);
  }

  void look_at_column(const StepTensor& prediction, double category, const Column& column, Findings& findings) const {
    const auto share = [&](std::int64_t count) { return static_cast<double>(count) / static_cast<double>(column.sum); };
    const auto right = column.labels.find(category);
    const double diagonal = right == column.labels.end() ? 0 : share(right->second);
    if (diagonal < min_diag_) {
      findings.add(&prediction, diagonal, min_diag_,
                   fmt::format("of {} samples predicted as {} a share of {:.4g} is right; it should be at least {:g}",
                               column.sum, category, diagonal, min_diag_));
    }
    for (const auto& [label, count] : column.labels) {
      if (label == category || !(share(count) > max_off_diag_)) continue;
      findings.add(&prediction, share(count), max_off_diag_,
                   fmt::format("of {} samples predicted as {} a share of {:.4g} is {}; it should be at most {:g}",
                               column.sum, category, share(count), label, max_off_diag_));
    }
  }

  NamedChoice labels_, predictions_;
  double category_count_ = INFINITY;
  double min_diag_, max_off_diag_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "category_no", 2));
  TORNASOLE_CHECK(check_range(kName, arguments, "min_diag", 0, 1));
  TORNASOLE_CHECK(check_range(kName, arguments, "max_off_diag", 0, 1));
  return std::unique_ptr<Rule>(std::make_unique<Confusion>(arguments));
}

}  // namespace

const RuleType kConfusion = {.name = kName,
                             .group = "XGBoost",
                             .summary = "Predictions of a category are too often of another one.",
                             .parameters = kParameters,
                             .make = make};

}  // namespace tornasole::rules
