// CreateXgboostReport: never meets a condition; writes a report about a training of boosted trees.

#include <fmt/format.h>

#include "rules/builtin_rules.h"
#include "rules/class_values.h"
#include "rules/scalar_values.h"
#include "rules/tensor_numbers.h"
#include "rules/xgboost_report.h"

namespace tornasole::rules {
namespace {

enum : std::size_t { kHyperparameters, kMetrics, kImportances, kLabels, kPredictions };
constexpr std::string_view kHyperparameterNames = "hyperparameters/";
constexpr std::string_view kImportanceNames = "feature_importance/";

std::string value_text(const Tensor& value) {
  if (value.dtype() == DType::kString) return value.texts().empty() ? "" : value.texts()[0];
  if (value.element_count() != 1 || reduce::is_complex_dtype(value.dtype())) return value.shape().to_string();
  const double number = to_doubles(value)[0];
  if (value.dtype() == DType::kBool) return number == 0 ? "False" : "True";
  return fmt::format("{}", number);
}

std::string_view without(std::string_view name, std::string_view start) {
  return name.starts_with(start) ? name.substr(start.size()) : name;
}

class CreateXgboostReport final : public Rule {
 public:
  std::vector<Need> needs() const override {
    return {{.collections = {"hyperparameters"}, .value = true},
            scalar_need({"metrics", "losses"}, {}),
            scalar_need({"feature_importance"}, {}),
            labels_.need(),
            predictions_.need()};
  }

  // What several workers saved is alike: the first in the order of names speaks for all.
  void look_at(const StepView& step, Findings& findings) override {
    report_.trial = step.trial().name();
    report_.last_step = step.global_step().number;
    for (const StepTensor* tensor : first_worker(step, kHyperparameters)) {
      if (tensor->value != nullptr) {
        const auto name = std::string(without(tensor->name, kHyperparameterNames));
        report_.hyperparameters.try_emplace(name, value_text(*tensor->value));
      }
    }
    for (const StepTensor* tensor : first_worker(step, kMetrics)) {
      if (const auto value = scalar_value(*tensor, findings)) {
        findings.count_datapoint();
        report_.metrics[std::string(tensor->name)].emplace_back(report_.last_step, *value);
      }
    }
    note_importances(step, findings);
    note_pairs(step);
  }

  std::map<std::string, std::string> files() const override {
    return {{"xgboost_report.json", report_.to_json()}, {"xgboost_report.html", xgboost_page(report_)}};
  }

  std::map<std::string, std::string> details() const override {
    return {{"kind", fmt::format("\"{}\"", job_kind_name(report_.pairs.kind))}};
  }

  void reset() override { report_ = {}; }

 private:
  static std::vector<const StepTensor*> first_worker(const StepView& step, std::size_t need) {
    auto groups = by_worker(step.tensors(need));
    return groups.empty() ? std::vector<const StepTensor*>() : std::move(groups.begin()->second);
  }

  // The newest step has all features that are used so far.
  void note_importances(const StepView& step, Findings& findings) {
    std::map<std::string, std::map<std::string, double>> newest;
    for (const StepTensor* tensor : first_worker(step, kImportances)) {
      const std::string_view name = without(tensor->name, kImportanceNames);
      const std::size_t slash = name.find('/');
      if (slash == std::string_view::npos) continue;
      if (const auto value = scalar_value(*tensor, findings)) {
        newest[std::string(name.substr(0, slash))][std::string(name.substr(slash + 1))] = *value;
      }
    }
    for (auto& [kind, features] : newest) report_.importances[kind] = std::move(features);
  }

  void note_pairs(const StepView& step) {
    const StepTensor* label = labels_.choose(step.trial(), first_worker(step, kLabels));
    const StepTensor* prediction = predictions_.choose(step.trial(), first_worker(step, kPredictions));
    if (label == nullptr || prediction == nullptr || label->value == nullptr || prediction->value == nullptr) return;
    LabelledPairs pairs = make_pairs(*label->value, *prediction->value);
    if (pairs.kind == JobKind::kUnknown) return;
    if (pairs.kind == JobKind::kRegression) {
      report_.errors.emplace_back(report_.last_step, binned_errors(pairs));
    } else {
      const ConfusionTable table = confusion_table(pairs);
      const std::vector<double> shares = diagonal(table);
      std::vector<std::pair<double, double>> by_class;
      for (std::size_t i = 0; i < shares.size(); ++i) by_class.emplace_back(table.classes[i], shares[i]);
      report_.diagonals.emplace_back(report_.last_step, std::move(by_class));
    }
    report_.pairs = std::move(pairs);
  }

  NamedChoice labels_ = {"labels", "labels"};
  NamedChoice predictions_ = {"predictions", "predictions"};
  XgboostReport report_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& /*arguments*/, const RuleContext& /*context*/) {
  return std::unique_ptr<Rule>(std::make_unique<CreateXgboostReport>());
}

}  // namespace

const RuleType kCreateXgboostReport = {.name = "CreateXgboostReport",
                                       .group = "XGBoost",
                                       .summary = "Never meets a condition: writes a report about the training.",
                                       .parameters = {},
                                       .make = make};

}  // namespace tornasole::rules
