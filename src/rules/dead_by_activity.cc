// DeadByActivity: units whose activity is nothing, by its 95th percentile or by its sign.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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
    kCollectionNames,
    Parameter{"tensor_regex", ParameterType::kList, ".*relu_output",
              "Patterns for the names of outputs of activations"},
    Parameter{"method", ParameterType::kText, "percentile",
              "percentile: a unit is dead if the 95th percentile of its magnitude is below eps; sign: the share of "
              "outputs that are not above zero"},
    Parameter{"eps", ParameterType::kNumber, "1e-5", "percentile: below this a unit is dead"},
    Parameter{"share", ParameterType::kNumber, "0.5", "percentile: the share of dead units a layer may have"},
    Parameter{"inactive", ParameterType::kNumber, "0.7", "sign: the share from which a layer is dead"},
};
constexpr double kPercentile = 0.95;

double dead_share(const Tensor& value, double eps) {
  const UnitLayout layout = unit_layout(value.shape(), UnitKind::kElement);
  std::vector<std::vector<double>> units(static_cast<std::size_t>(layout.units));
  for_each_unit_number(value, layout, [&](std::size_t unit, double x) { units[unit].push_back(std::fabs(x)); });
  const auto dead = std::ranges::count_if(units, [&](auto& unit) { return quantile(unit, kPercentile) < eps; });
  return static_cast<double>(dead) / static_cast<double>(units.size());
}

double inactive_share(const Tensor& value) {
  std::int64_t inactive = 0;
  for_each_number(value, [&](double x) {
    if (x <= 0) ++inactive;
    return true;
  });
  return static_cast<double>(inactive) / static_cast<double>(value.element_count());
}

class DeadByActivity final : public Rule {
 public:
  explicit DeadByActivity(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        by_sign_(arguments.text("method") == "sign"),
        eps_(arguments.number("eps")),
        share_(arguments.number("share")),
        inactive_(arguments.number("inactive")) {}

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
      findings.count_datapoint();
      if (by_sign_) {
        const double inactive = inactive_share(*value);
        if (inactive < inactive_) continue;
        findings.add(output, inactive, inactive_,
                     fmt::format("{}: {:g} of the outputs are not above zero", printable(output->name), inactive));
      } else {
        const double dead = dead_share(*value, eps_);
        if (dead <= share_) continue;
        findings.add(output, dead, share_,
                     fmt::format("{}: {:g} of the units are dead", printable(output->name), dead));
      }
    }
  }

  void reset() override {}

 private:
  TensorChoice choice_;
  bool by_sign_;
  double eps_, share_, inactive_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 2> kMethods = {"percentile", "sign"};
  TORNASOLE_CHECK(check_word("DeadByActivity", arguments, "method", kMethods));
  return std::unique_ptr<Rule>(std::make_unique<DeadByActivity>(arguments));
}

}  // namespace

const RuleType kDeadByActivity = {.name = "DeadByActivity",
                                  .group = "detectors",
                                  .summary = "Most units of a layer show no activity.",
                                  .parameters = kParameters,
                                  .make = make};

}  // namespace tornasole::rules
