// DormantUnits: units of a layer that are hardly active, measured by the mean activity of the layer.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/model_roles.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_states.h"
#include "rules/unit_counts.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    kCollectionNames,
    Parameter{"tensor_regex", ParameterType::kList, kOutputRegex, "Patterns for the names of outputs of layers"},
    Parameter{"tau", ParameterType::kNumber, "0.025",
              "A unit with at most so much of the layer's mean activity is dormant"},
    Parameter{"share", ParameterType::kNumber, "0.5", "The share of dormant units a layer may have"},
    Parameter{"growth", ParameterType::kNumber, "0.2", "Growth of that share since the first step that is too much"},
    Parameter{"unit", ParameterType::kText, "element", "What a unit is: an element of a sample, or a channel (axis 1)"},
};

// The share of the units whose mean magnitude is at most tau of the mean over units.
double dormant_share(const Tensor& value, const UnitLayout& layout, double tau) {
  std::vector<double> sums(static_cast<std::size_t>(layout.units), 0.0);
  for_each_unit_number(value, layout, [&](std::size_t unit, double x) { sums[unit] += std::fabs(x); });
  const auto units = static_cast<double>(sums.size());
  const double limit = tau * std::accumulate(sums.begin(), sums.end(), 0.0) / units;
  // A layer of zeros sleeps as a whole.
  return static_cast<double>(std::ranges::count_if(sums, [&](double sum) { return sum <= limit; })) / units;
}

class DormantUnits final : public Rule {
 public:
  explicit DormantUnits(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        tau_(arguments.number("tau")),
        share_(arguments.number("share")),
        growth_(arguments.number("growth")),
        unit_(arguments.text("unit") == "channel" ? UnitKind::kChannel : UnitKind::kElement) {
    exclude_ = exclude_statistics(choice_.regex);
    if (!arguments.is_given("tensor_regex")) exclude_.emplace_back(kLossRegex);
  }

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections, .regex = choice_.regex, .exclude_regex = exclude_, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* output : step.tensors()) {
      const Tensor* value = numeric_value(*output, findings);
      if (value == nullptr) continue;
      const UnitLayout layout = unit_layout(value->shape(), unit_);
      if (layout.units < 2) {
        findings.skip("one unit");
        continue;
      }
      findings.count_datapoint();
      const double dormant = dormant_share(*value, layout, tau_);
      std::optional<double>& first = first_.of(*output, step.mode());
      if (!first) first = dormant;
      constexpr double kRounding = 1e-9;  // shares are quotients
      if (dormant > share_) {
        findings.add(output, dormant, share_,
                     fmt::format("{}: {:g} of {} units are dormant, more than {:g}", printable(output->name), dormant,
                                 layout.units, share_));
      } else if (dormant - *first >= growth_ - kRounding) {
        findings.add(output, dormant - *first, growth_,
                     fmt::format("{}: the share of dormant units has grown from {:g} to {:g}", printable(output->name),
                                 *first, dormant));
      }
    }
  }

  void reset() override { first_.clear(); }

 private:
  TensorChoice choice_;
  std::vector<std::string> exclude_;
  double tau_, share_, growth_;
  UnitKind unit_;
  TensorStates<std::optional<double>> first_;  // the share at the first step
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 2> kUnits = {"element", "channel"};
  TORNASOLE_CHECK(check_word("DormantUnits", arguments, "unit", kUnits));
  return std::unique_ptr<Rule>(std::make_unique<DormantUnits>(arguments));
}

}  // namespace

const RuleType kDormantUnits = {
    .name = "DormantUnits",
    .group = "detectors",
    .summary = "Many units of a layer are hardly active beside the others: the layer uses less of itself than it has.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
