// ClassImbalance: some classes are sampled far more often than others, or one is mostly mispredicted.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/class_values.h"
#include "rules/scalar_values.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "ClassImbalance";

constexpr std::array kParameters = {
    Parameter{"threshold_imbalance", ParameterType::kNumber, "10",
              "Limit of samples of the largest class / samples of the smallest"},
    Parameter{"threshold_misprediction", ParameterType::kNumber, "0.7",
              "Limit of the share of a class that is mispredicted"},
    Parameter{"samples", ParameterType::kInteger, "500", "How many labels are judged together"},
    Parameter{"argmax", ParameterType::kFlag, "False", "Predictions are scores per class along the last axis"},
    Parameter{"labels_regex", ParameterType::kText, ".*labels", "Pattern for the names of the labels"},
    Parameter{"predictions_regex", ParameterType::kText, ".*predictions", "Pattern for the names of the predictions"},
};

class ClassImbalance final : public Rule {
 public:
  explicit ClassImbalance(const RuleArguments& arguments)
      : labels_regex_(arguments.text("labels_regex")),
        predictions_regex_(arguments.text("predictions_regex")),
        threshold_imbalance_(arguments.number("threshold_imbalance")),
        threshold_misprediction_(arguments.number("threshold_misprediction")),
        samples_(arguments.integer("samples")),
        has_scores_(arguments.flag("argmax")) {}

  std::vector<Need> needs() const override {
    return {{.regex = {labels_regex_}, .exclude_regex = {kDerivedNames}, .value = true},
            {.regex = {predictions_regex_}, .exclude_regex = {kDerivedNames}, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    const auto predictions = by_worker(step.tensors(1));
    for (const auto& [worker, labels] : by_worker(step.tensors(0))) {
      const auto found = predictions.find(worker);
      Window& window = windows_[std::string(worker)];
      count(labels, found == predictions.end() ? Tensors{} : found->second, &window, findings);
      if (window.samples < samples_ || window.classes.empty()) continue;
      judge(worker, window, findings);
      window = {};
    }
  }

  void reset() override { windows_.clear(); }

 private:
  using Tensors = std::vector<const StepTensor*>;
  struct ClassCount {
    std::int64_t labels = 0, mispredicted = 0;
  };
  struct Window {
    std::int64_t samples = 0;
    std::map<double, ClassCount> classes = {};
  };

  void count(const Tensors& label_tensors, const Tensors& prediction_tensors, Window* window,
             Findings& findings) const {
    std::vector<double> predictions;
    std::vector<Shape> score_shapes;
    for (const StepTensor* tensor : prediction_tensors) {
      const Tensor* value = numeric_value(*tensor, findings);
      if (value == nullptr) continue;
      const auto classes = has_scores_ ? argmax_classes(*value) : rounded_classes(*value);
      if (!classes) {
        findings.skip("no class axis");
        continue;
      }
      score_shapes.push_back(value->shape());
      predictions.insert(predictions.end(), classes->begin(), classes->end());
    }
    std::vector<double> labels;
    for (const StepTensor* tensor : label_tensors) {
      const Tensor* value = numeric_value(*tensor, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      const bool is_one_hot = has_scores_ && std::ranges::find(score_shapes, value->shape()) != score_shapes.end();
      const auto classes = is_one_hot ? argmax_classes(*value) : rounded_classes(*value);
      if (classes) labels.insert(labels.end(), classes->begin(), classes->end());
    }
    const bool has_pairs = predictions.size() == labels.size();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (!std::isfinite(labels[i])) {
        findings.skip("label is not finite");
        continue;
      }
      ClassCount& own = window->classes[labels[i] + 0.0];  // + 0.0: no negative zero
      ++window->samples;
      ++own.labels;
      if (has_pairs && predictions[i] != labels[i]) ++own.mispredicted;
    }
  }

  void judge(std::string_view worker, const Window& window, Findings& findings) const {
    const auto by_labels = [](const auto& a, const auto& b) { return a.second.labels < b.second.labels; };
    const auto [smallest, largest] = std::ranges::minmax_element(window.classes, by_labels);
    const double imbalance = window.classes.size() < 2 ? std::numeric_limits<double>::infinity()
                                                       : static_cast<double>(largest->second.labels) /
                                                             static_cast<double>(smallest->second.labels);
    if (window.classes.size() < 2) {
      findings.add(nullptr, imbalance, threshold_imbalance_,
                   fmt::format("{}: all {} labels are of class {}", printable(worker), window.samples, largest->first));
    } else if (imbalance > threshold_imbalance_) {
      findings.add(nullptr, imbalance, threshold_imbalance_,
                   fmt::format("{}: class {} has {} labels and class {} only {}: {:.4g} times as many; limit {:g}",
                               printable(worker), largest->first, largest->second.labels, smallest->first,
                               smallest->second.labels, imbalance, threshold_imbalance_));
    }
    if (window.classes.size() < 2) return;
    for (const auto& [label, own] : window.classes) {
      const double share = static_cast<double>(own.mispredicted) / static_cast<double>(own.labels);
      if (share > threshold_misprediction_) {
        findings.add(nullptr, share, threshold_misprediction_,
                     fmt::format("{}: {} of {} labels of class {} are mispredicted; limit {:g} of them",
                                 printable(worker), own.mispredicted, own.labels, label, threshold_misprediction_));
      }
    }
  }

  std::string labels_regex_, predictions_regex_;
  double threshold_imbalance_, threshold_misprediction_;
  std::int64_t samples_;
  bool has_scores_;
  std::map<std::string, Window, std::less<>> windows_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "samples", 1));
  return std::unique_ptr<Rule>(std::make_unique<ClassImbalance>(arguments));
}

}  // namespace

const RuleType kClassImbalance = {
    .name = kName,
    .group = "universal",
    .summary = "Classes are sampled very unevenly, or one of them is mostly mispredicted.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
