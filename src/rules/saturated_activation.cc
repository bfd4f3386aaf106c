// SaturatedActivation: inputs of tanh or sigmoid lie where the function is flat.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_choice.h"
#include "rules/unit_counts.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    kCollectionNames,
    Parameter{"tensor_regex", ParameterType::kList, ".*tanh_input|.*sigmoid_input",
              "Patterns for the names of the inputs of activations"},
    Parameter{"threshold_tanh_min", ParameterType::kNumber, "-9.4999", "Below this tanh is flat"},
    Parameter{"threshold_tanh_max", ParameterType::kNumber, "9.4999", "Above this tanh is flat"},
    Parameter{"threshold_sigmoid_min", ParameterType::kNumber, "-23", "Below this the sigmoid is flat"},
    Parameter{"threshold_sigmoid_max", ParameterType::kNumber, "16.99999", "Above this the sigmoid is flat"},
    Parameter{"threshold_inactivity", ParameterType::kNumber, "1.0",
              "A unit with a smaller percentage of inputs between the bounds is saturated"},
    Parameter{"threshold_layer", ParameterType::kNumber, "50.0", "The percentage of saturated units a layer may have"},
};

// Without case.
bool contains(std::string_view name, std::string_view word) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return !std::ranges::search(name, word, same).empty();
}

class SaturatedActivation final : public Rule {
 public:
  explicit SaturatedActivation(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        tanh_{arguments.number("threshold_tanh_min"), arguments.number("threshold_tanh_max")},
        sigmoid_{arguments.number("threshold_sigmoid_min"), arguments.number("threshold_sigmoid_max")},
        inactivity_(arguments.number("threshold_inactivity")),
        layer_(arguments.number("threshold_layer")) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* input : step.tensors()) {
      const Bounds* bounds = bounds_for(input->name);
      if (bounds == nullptr) {
        findings.skip("neither tanh nor sigmoid");
        continue;
      }
      const Tensor* value = numeric_value(*input, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      const UnitLayout layout = unit_layout(value->shape(), UnitKind::kElement);
      const auto active = count_by_unit(*value, layout, [&](double x) { return bounds->low < x && x < bounds->high; });
      const double saturated = inactive_percent(active, layout, inactivity_);
      if (saturated > layer_) {
        findings.add(input, saturated, layer_,
                     fmt::format("{}: {:g} % of the units get inputs outside {:g} to {:g}, more than {:g} %",
                                 printable(input->name), saturated, bounds->low, bounds->high, layer_));
      }
    }
  }

  void reset() override {}

 private:
  struct Bounds {
    double low, high;
  };
  const Bounds* bounds_for(std::string_view name) const {
    if (contains(name, "tanh")) return &tanh_;
    return contains(name, "sigmoid") ? &sigmoid_ : nullptr;
  }

  TensorChoice choice_;
  Bounds tanh_, sigmoid_;
  double inactivity_, layer_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  return std::unique_ptr<Rule>(std::make_unique<SaturatedActivation>(arguments));
}

}  // namespace

const RuleType kSaturatedActivation = {
    .name = "SaturatedActivation",
    .group = "deep learning",
    .summary = "Inputs of tanh or sigmoid lie where the derivative is nearly zero: the units before them do not learn.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
