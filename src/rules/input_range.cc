// InputRange: inputs are not what a network likes to see.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/scalar_values.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "InputRange";

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "inputs", "Collections with the inputs"},
    kTensorRegex,
    Parameter{"low", ParameterType::kNumber, "-1", "Inputs should not be lower"},
    Parameter{"high", ParameterType::kNumber, "1", "Inputs should not be higher"},
};

// Of a table with several rows: columns in which all numbers are the same.
std::int64_t constant_columns(const Shape& shape, const std::vector<double>& numbers) {
  if (shape.rank() != 2 || shape[0] < 2) return 0;
  const auto columns = static_cast<std::size_t>(shape[1]);
  std::int64_t constant = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    bool is_constant = true;
    for (std::size_t at = column; at < numbers.size(); at += columns) {
      is_constant = is_constant && numbers[at] == numbers[column];
    }
    if (is_constant) ++constant;
  }
  return constant;
}

class InputRange final : public Rule {
 public:
  explicit InputRange(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)), low_(arguments.number("low")), high_(arguments.number("high")) {}

  std::vector<Need> needs() const override {
    return {
        {.collections = choice_.collections, .regex = choice_.regex, .exclude_regex = {kDerivedNames}, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* input : step.tensors()) {
      const Tensor* value = numeric_value(*input, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      look_at_input(*input, *value, findings);
    }
  }

  void reset() override {}

 private:
  void look_at_input(const StepTensor& input, const Tensor& value, Findings& findings) const {
    const std::string name = printable(input.name);
    const std::vector<double> numbers = to_doubles(value);
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -lowest;
    std::int64_t nan = 0;
    for (const double number : numbers) {
      if (std::isnan(number)) ++nan;
      lowest = std::min(lowest, number);  // NaN never is
      highest = std::max(highest, number);
    }
    if (nan > 0) {
      findings.add(&input, static_cast<double>(nan), 0, fmt::format("{}: {} of {} are NaN", name, nan, numbers.size()));
    }
    if (!dtype_is_inexact(value.dtype())) {
      findings.add(&input, {}, {}, fmt::format("{}: {}, not floating point", name, dtype_name(value.dtype())));
    }
    if (lowest < low_ || highest > high_) {
      const bool is_low = lowest < low_;
      findings.add(
          &input, is_low ? lowest : highest, is_low ? low_ : high_,
          fmt::format("{}: from {:g} to {:g}; it should lie in [{:g}, {:g}]", name, lowest, highest, low_, high_));
    }
    if (const std::int64_t constant = constant_columns(value.shape(), numbers); constant > 0) {
      findings.add(&input, static_cast<double>(constant), 0,
                   fmt::format("{}: {} of {} columns are constant", name, constant, value.shape()[1]));
    }
  }

  TensorChoice choice_;
  double low_, high_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "high", arguments.number("low")));
  return std::unique_ptr<Rule>(std::make_unique<InputRange>(arguments));
}

}  // namespace

const RuleType kInputRange = {.name = kName,
                              .group = "detectors",
                              .summary = "Inputs are not scaled, not floating point, constant or NaN.",
                              .parameters = kParameters,
                              .make = make};

}  // namespace tornasole::rules
