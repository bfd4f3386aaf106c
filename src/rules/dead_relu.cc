// DeadRelu: too many rectifiers of a layer never switch on.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_choice.h"
#include "rules/unit_counts.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"tensor_regex", ParameterType::kList, ".*relu_output", "Patterns for the names of outputs of rectifiers"},
    Parameter{"threshold_inactivity", ParameterType::kNumber, "1.0",
              "A rectifier that is above zero in a smaller percentage of the samples is dead"},
    Parameter{"threshold_layer", ParameterType::kNumber, "50.0", "The percentage of dead rectifiers a layer may have"},
    kCollectionNames,
    Parameter{"unit", ParameterType::kText, "element",
              "What a rectifier is: an element of a sample, or a channel (axis 1)"},
    Parameter{"min_samples", ParameterType::kInteger, "1", "Tensors with fewer samples are not looked at"},
};

class DeadRelu final : public Rule {
 public:
  explicit DeadRelu(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        inactivity_(arguments.number("threshold_inactivity")),
        layer_(arguments.number("threshold_layer")),
        unit_(arguments.text("unit") == "channel" ? UnitKind::kChannel : UnitKind::kElement),
        min_samples_(arguments.integer("min_samples")) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* output : step.tensors()) {
      const Tensor* value = numeric_value(*output, findings);
      if (value == nullptr) continue;
      const UnitLayout layout = unit_layout(value->shape(), unit_);
      if (layout.samples < min_samples_) {
        findings.skip("too few samples");
        continue;
      }
      findings.count_datapoint();
      const auto active = count_by_unit(*value, layout, [](double x) { return x > 0; });
      const double dead = inactive_percent(active, layout, inactivity_);
      if (dead > layer_) {
        findings.add(output, dead, layer_,
                     fmt::format("{}: {:g} % of {} rectifiers are dead, more than {:g} %", printable(output->name),
                                 dead, layout.units, layer_));
      }
    }
  }

  void reset() override {}

 private:
  TensorChoice choice_;
  double inactivity_, layer_;
  UnitKind unit_;
  std::int64_t min_samples_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 2> kUnits = {"element", "channel"};
  TORNASOLE_CHECK(check_word("DeadRelu", arguments, "unit", kUnits));
  return std::unique_ptr<Rule>(std::make_unique<DeadRelu>(arguments));
}

}  // namespace

const RuleType kDeadRelu = {
    .name = "DeadRelu",
    .group = "deep learning",
    .summary = "Too many rectifiers of a layer never switch on: they pass on nothing and do not learn.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
