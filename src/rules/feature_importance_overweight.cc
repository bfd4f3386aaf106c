// FeatureImportanceOverweight: a few features carry the whole model.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/class_values.h"
#include "rules/scalar_values.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "FeatureImportanceOverweight";

constexpr std::array kParameters = {
    Parameter{"threshold", ParameterType::kNumber, "0.8", "Limit of the share of the most important features"},
    Parameter{"nfeatures", ParameterType::kInteger, "3", "How many features those are"},
    Parameter{"tensor_regex", ParameterType::kText, ".*feature_importance/weight",
              "Pattern for the names of the importances, one tensor per feature"},
};

class FeatureImportanceOverweight final : public Rule {
 public:
  explicit FeatureImportanceOverweight(const RuleArguments& arguments)
      : regex_(arguments.text("tensor_regex")),
        threshold_(arguments.number("threshold")),
        count_(static_cast<std::size_t>(arguments.integer("nfeatures"))) {}

  std::vector<Need> needs() const override { return {scalar_need({}, {regex_})}; }

  void look_at(const StepView& step, Findings& findings) override {
    for (const auto& [worker, tensors] : by_worker(step.tensors())) {
      std::vector<Feature> features;
      for (const StepTensor* tensor : tensors) {
        if (const auto value = scalar_value(*tensor, findings)) features.push_back({*value, tensor->name});
      }
      look_at_features(worker, std::move(features), findings);
    }
  }

  void reset() override {}

 private:
  struct Feature {
    double importance;
    std::string_view name;
  };

  void look_at_features(std::string_view worker, std::vector<Feature> features, Findings& findings) const {
    const auto sum = [](const auto& begin, const auto& end) {
      return std::accumulate(begin, end, 0.0, [](double so_far, const Feature& f) { return so_far + f.importance; });
    };
    const double total = sum(features.begin(), features.end());
    if (features.size() <= count_ || !(total > 0)) {
      findings.skip("too few features");
      return;
    }
    findings.count_datapoint();
    const auto end = features.begin() + static_cast<std::ptrdiff_t>(count_);
    std::ranges::partial_sort(features, end, std::greater(), &Feature::importance);
    const double share = sum(features.begin(), end) / total;
    if (!(share > threshold_)) return;
    std::string names;
    for (auto feature = features.begin(); feature != end; ++feature) {
      if (!names.empty()) names += ", ";
      names += printable(feature->name);
    }
    findings.add(nullptr, share, threshold_,
                 fmt::format("{}: {} of {} features have a share of {:.4g} of the importance, more than {:g}: {}",
                             printable(worker), count_, features.size(), share, threshold_, names));
  }

  std::string regex_;
  double threshold_;
  std::size_t count_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "nfeatures", 1));
  return std::unique_ptr<Rule>(std::make_unique<FeatureImportanceOverweight>(arguments));
}

}  // namespace

const RuleType kFeatureImportanceOverweight = {.name = kName,
                                               .group = "XGBoost",
                                               .summary = "A few features carry nearly the whole model.",
                                               .parameters = kParameters,
                                               .make = make};

}  // namespace tornasole::rules
