// ConstantOutput: the model gives the same answer whatever it is asked.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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
    Parameter{
        "tensor_regex", ParameterType::kList, "",
        "Patterns for the names of the model's outputs; else those the losses compare with labels, or predictions"},
    Parameter{"input_regex", ParameterType::kList, "",
              "Patterns for the names of the model's inputs; else those of its description and the collection inputs"},
    Parameter{"eps", ParameterType::kNumber, "1e-12",
              "A variance over samples below this part of the mean square is none"},
    Parameter{"patience", ParameterType::kInteger, "3", "For so many steps in a row"},
};

// Mean over outputs of the variance over samples, and the mean square.
struct Spread {
  double variance = 0, mean_square = 0;
};
Spread spread_of(const Tensor& value, const UnitLayout& layout) {
  const auto units = static_cast<std::size_t>(layout.units);
  const auto samples = static_cast<double>(layout.samples);
  std::vector<double> first(units, 0.0);
  std::vector<double> sums(units, 0.0);
  std::vector<double> squares(units, 0.0);
  std::size_t seen = 0;
  double total = 0;
  // Around the first sample: equal samples then differ by exactly nothing.
  for_each_unit_number(value, layout, [&](std::size_t unit, double x) {
    if (seen++ < units) first[unit] = x;
    const double distance = x - first[unit];
    sums[unit] += distance;
    squares[unit] += distance * distance;
    total += x * x;
  });
  Spread spread{.mean_square = total / (samples * static_cast<double>(units))};
  for (std::size_t unit = 0; unit < units; ++unit) {
    const double mean = sums[unit] / samples;
    spread.variance += std::max(squares[unit] / samples - mean * mean, 0.0) / static_cast<double>(units);
  }
  if (std::isnan(total)) spread.variance = spread.mean_square = total;
  return spread;
}

class ConstantOutput final : public Rule {
 public:
  ConstantOutput(const RuleArguments& arguments, const RuleContext& context)
      : outputs_{.exclude_regex = {"^derived/"}, .value = true},
        inputs_{.exclude_regex = {"^derived/"}, .value = true},
        eps_(arguments.number("eps")),
        patience_(arguments.integer("patience")) {
    TensorChoice choice = choose_tensors(arguments);
    outputs_.collections = std::move(choice.collections);
    outputs_.regex = std::move(choice.regex);
    if (outputs_.collections.empty() && outputs_.regex.empty()) {
      outputs_.names = prediction_names(context.base);
      if (outputs_.names.empty()) outputs_.regex = {"predictions"};
    }
    inputs_.regex = arguments.list("input_regex");
    if (inputs_.regex.empty()) {
      inputs_.names = input_names(context.base);
      inputs_.collections = {"inputs"};
    }
  }

  std::vector<Need> needs() const override { return {outputs_, inputs_}; }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* output : step.tensors(0)) {
      const Tensor* value = numeric_value(*output, findings);
      if (value == nullptr) continue;
      const UnitLayout layout = unit_layout(value->shape(), UnitKind::kElement);
      // One sample, and a tensor without samples, are equal to themselves.
      const bool is_column = value->shape().rank() == 1;
      UnitLayout samples = layout;
      if (is_column) samples = {.samples = layout.units, .outer = layout.units, .units = 1};
      if (samples.samples < 2) {
        findings.skip("one sample");
        continue;
      }
      if (have_equal_inputs(step, output->worker)) {
        findings.skip("equal inputs");
        continue;
      }
      findings.count_datapoint();
      judge(*output, spread_of(*value, samples), findings);
    }
  }

  void reset() override { constant_.clear(); }

 private:
  // True if inputs were saved and none of them differs from sample to sample.
  static bool have_equal_inputs(const StepView& step, std::string_view worker) {
    bool was_saved = false;
    for (const StepTensor* input : step.tensors(1)) {
      if (input->worker != worker || !input->value || input->value->shape().rank() == 0) continue;
      if (input->value->dtype() == DType::kString || input->value->element_count() <= 0) continue;
      was_saved = true;
      const std::string_view bytes = input->value->bytes();
      const std::size_t sample = bytes.size() / static_cast<std::size_t>(input->value->shape()[0]);
      for (std::size_t at = sample; at < bytes.size(); at += sample) {
        if (bytes.substr(at, sample) != bytes.substr(0, sample)) return false;
      }
    }
    return was_saved;
  }

  void judge(const StepTensor& output, const Spread& spread, Findings& findings) {
    std::int64_t& steps = constant_.of(output);
    const bool is_constant = spread.variance == 0 || spread.variance < eps_ * spread.mean_square;
    steps = is_constant ? steps + 1 : 0;
    if (steps < patience_) return;
    findings.add(&output, spread.variance, eps_ * spread.mean_square,
                 fmt::format("{}: the same for all samples, at {} steps in a row", printable(output.name), steps));
  }

  Need outputs_, inputs_;
  double eps_;
  std::int64_t patience_;
  TensorStates<std::int64_t> constant_;  // steps in a row
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& context) {
  TORNASOLE_CHECK(check_at_least("ConstantOutput", arguments, "patience", 1));
  return std::unique_ptr<Rule>(std::make_unique<ConstantOutput>(arguments, context));
}

}  // namespace

const RuleType kConstantOutput = {.name = "ConstantOutput",
                                  .group = "detectors",
                                  .summary = "The outputs of the model do not depend on its inputs.",
                                  .parameters = kParameters,
                                  .make = make};

}  // namespace tornasole::rules
