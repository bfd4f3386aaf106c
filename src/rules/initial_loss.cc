// InitialLoss: the first loss of a classifier is not that of a model that knows nothing.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/class_values.h"
#include "rules/loss_series.h"
#include "rules/tensor_numbers.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "InitialLoss";
enum : std::size_t { kLosses, kLabels, kPredictions };

constexpr std::array kParameters = {
    kLossCollections,
    kTensorRegex,
    Parameter{"classes", ParameterType::kInteger, "", "Number of classes; without: from predictions, else from labels"},
    Parameter{"dev", ParameterType::kNumber, "0.5", "Limit of |loss - ln(classes)| / ln(classes)"},
    Parameter{"labels_regex", ParameterType::kText, ".*labels|CrossEntropyLoss_input_1",
              "Pattern for the names of the labels"},
    Parameter{"predictions_regex", ParameterType::kText, ".*predictions|.*logits|CrossEntropyLoss_input_0",
              "Pattern for the names of the scores per class"},
};

class InitialLoss final : public Rule {
 public:
  explicit InitialLoss(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        labels_regex_(arguments.text("labels_regex")),
        predictions_regex_(arguments.text("predictions_regex")),
        deviation_(arguments.number("dev")) {
    if (arguments.has("classes")) classes_ = static_cast<double>(arguments.integer("classes"));
  }

  std::vector<Need> needs() const override {
    return {scalar_need(choice_.collections, choice_.regex),
            {.regex = {labels_regex_}, .exclude_regex = {kDerivedNames}, .value = true},
            {.regex = {predictions_regex_}, .exclude_regex = {kDerivedNames}, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    for (const auto& [worker, losses] : by_worker(step.tensors(kLosses))) {
      if (!judged_.emplace(worker).second) continue;
      const double classes = classes_.value_or(count_classes(step, worker, findings));
      if (classes < 2) {
        findings.skip("number of classes is not known");
        continue;
      }
      for (const StepTensor* loss : losses) judge(*loss, classes, findings);
    }
  }

  void reset() override { judged_.clear(); }

 private:
  void judge(const StepTensor& loss, double classes, Findings& findings) const {
    const auto value = scalar_value(loss, findings);
    if (!value) return;
    findings.count_datapoint();
    const double expected = std::log(classes);
    const double deviation = std::fabs(*value - expected) / expected;
    if (!(deviation > deviation_)) return;
    findings.add(&loss, deviation, deviation_,
                 fmt::format("{}: the first loss is {:g}; of {} classes, knowing nothing costs {:.4g}",
                             printable(loss.name), *value, classes, expected));
  }

  static const Tensor* first_value(const StepView& step, std::size_t need, std::string_view worker,
                                   Findings& findings) {
    for (const StepTensor* tensor : step.tensors(need)) {
      if (tensor->worker == worker) return numeric_value(*tensor, findings);
    }
    return nullptr;
  }

  // A batch need not have all classes among its labels, but scores do.
  static double count_classes(const StepView& step, std::string_view worker, Findings& findings) {
    const Tensor* scores = first_value(step, kPredictions, worker, findings);
    if (scores != nullptr && has_scores(scores->shape())) {
      return static_cast<double>(scores->shape()[scores->shape().rank() - 1]);
    }
    const Tensor* labels = first_value(step, kLabels, worker, findings);
    if (labels == nullptr) return 0;
    if (has_scores(labels->shape())) return static_cast<double>(labels->shape()[labels->shape().rank() - 1]);
    double largest = -1;
    for (const double label : rounded_classes(*labels)) largest = std::max(largest, label);
    return largest + 1;
  }

  TensorChoice choice_;
  std::string labels_regex_, predictions_regex_;
  double deviation_;
  std::optional<double> classes_ = {};
  std::set<std::string, std::less<>> judged_;  // workers
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "classes", 2));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "dev", 0));
  return std::unique_ptr<Rule>(std::make_unique<InitialLoss>(arguments));
}

}  // namespace

const RuleType kInitialLoss = {
    .name = kName,
    .group = "detectors",
    .summary = "The first loss is not that of a classifier that knows nothing: loss, scale or labels are off.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
