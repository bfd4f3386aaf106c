// SaturationHistogram: the outputs of a bounded activation pile up at its bounds, or its inputs lie far from zero.

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
    Parameter{"tensor_regex", ParameterType::kList, "",
              "Patterns for the names; else the outputs (inputs) of tanh and sigmoid"},
    Parameter{"method", ParameterType::kText, "outputs",
              "outputs: a histogram of each unit's outputs; inputs: the share of inputs beyond a limit"},
    Parameter{"rho", ParameterType::kNumber, "0.85", "outputs: a unit with a larger measure is saturated"},
    Parameter{"share", ParameterType::kNumber, "0.5", "The share of saturated units, or of inputs, a layer may have"},
    Parameter{"limit", ParameterType::kNumber, "5", "inputs: beyond this on either side"},
    Parameter{"low", ParameterType::kNumber, "", "outputs: the lower bound; else -1 for tanh and 0 for sigmoid"},
    Parameter{"high", ParameterType::kNumber, "", "outputs: the upper bound; else 1"},
};
constexpr std::size_t kBins = 50;

// Counts and sums of one unit's outputs, scaled to 0 ... 1, by bins of equal width.
struct Histogram {
  std::array<std::int64_t, kBins> counts = {};
  std::array<double, kBins> sums = {};

  void add(double x) {
    const auto bin = std::min(static_cast<std::size_t>(x * static_cast<double>(kBins)), kBins - 1);
    ++counts[bin];
    sums[bin] += x;
  }
  // 1 if all outputs are at the bounds, 0 if all are in the middle.
  double rho() const {
    double weighted = 0;
    std::int64_t total = 0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      if (counts[bin] == 0) continue;
      const auto count = static_cast<double>(counts[bin]);
      weighted += count * std::fabs(2 * sums[bin] / count - 1);
      total += counts[bin];
    }
    return weighted / static_cast<double>(total);  // of none: NaN
  }
};

class SaturationHistogram final : public Rule {
 public:
  explicit SaturationHistogram(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        of_inputs_(arguments.text("method") == "inputs"),
        rho_(arguments.number("rho")),
        share_(arguments.number("share")),
        limit_(arguments.number("limit")) {
    if (arguments.has("low")) low_ = arguments.number("low");
    if (arguments.has("high")) high_ = arguments.number("high");
    if (choice_.collections.empty() && choice_.regex.empty()) {
      choice_.regex = {of_inputs_ ? "([Tt]anh|[Ss]igmoid).*_input" : "([Tt]anh|[Ss]igmoid).*_output"};
    }
  }

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors()) {
      const Tensor* value = numeric_value(*tensor, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      const double share = of_inputs_ ? far_share(*value) : saturated_share(*tensor);
      if (share > share_) {
        findings.add(tensor, share, share_,
                     of_inputs_
                         ? fmt::format("{}: {:g} of the inputs are beyond {:g}", printable(tensor->name), share, limit_)
                         : fmt::format("{}: {:g} of the units are saturated", printable(tensor->name), share));
      }
    }
  }

  void reset() override {}

 private:
  double far_share(const Tensor& value) const {
    std::int64_t far = 0;
    for_each_number(value, [&](double x) {
      if (std::fabs(x) > limit_) ++far;
      return true;
    });
    return static_cast<double>(far) / static_cast<double>(value.element_count());
  }

  double saturated_share(const StepTensor& tensor) const {
    const bool is_tanh = tensor.name.find("anh") != std::string_view::npos;
    const double low = low_.value_or(is_tanh ? -1 : 0);
    const double width = high_.value_or(1) - low;
    const UnitLayout layout = unit_layout(tensor.value->shape(), UnitKind::kElement);
    std::vector<Histogram> units(static_cast<std::size_t>(layout.units));
    for_each_unit_number(*tensor.value, layout, [&](std::size_t unit, double x) {
      if (!std::isnan(x)) units[unit].add(std::clamp((x - low) / width, 0.0, 1.0));
    });
    const auto saturated = std::ranges::count_if(units, [&](const Histogram& unit) { return unit.rho() > rho_; });
    return static_cast<double>(saturated) / static_cast<double>(units.size());
  }

  TensorChoice choice_;
  bool of_inputs_;
  double rho_, share_, limit_;
  std::optional<double> low_, high_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 2> kMethods = {"outputs", "inputs"};
  TORNASOLE_CHECK(check_word("SaturationHistogram", arguments, "method", kMethods));
  const double low = arguments.has("low") ? arguments.number("low") : 0;
  if (arguments.has("low") != arguments.has("high") || (arguments.has("low") && !(low < arguments.number("high")))) {
    return invalid_error("rule SaturationHistogram: low is \"{}\" and high is \"{}\"; both or none, low below high",
                         printable(arguments.text("low")), printable(arguments.text("high")));
  }
  return std::unique_ptr<Rule>(std::make_unique<SaturationHistogram>(arguments));
}

}  // namespace

const RuleType kSaturationHistogram = {.name = "SaturationHistogram",
                                       .group = "detectors",
                                       .summary = "The outputs of a bounded activation pile up at its bounds.",
                                       .parameters = kParameters,
                                       .make = make};

}  // namespace tornasole::rules
