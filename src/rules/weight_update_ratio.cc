// WeightUpdateRatio: weights change by too much or too little, measured by their own size.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "reduce/derived.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/tensor_numbers.h"
#include "rules/training_steps.h"
#include "rules/value_history.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"num_steps", ParameterType::kInteger, "",
              "Compare with the oldest value of the last so many steps; without it with the one before"},
    Parameter{"large_threshold", ParameterType::kNumber, "10.0", "A larger ratio is too much"},
    Parameter{"small_threshold", ParameterType::kNumber, "0.00000001", "A smaller ratio is too little"},
    Parameter{"epsilon", ParameterType::kNumber, "0.000000001", "Added to the size of the weights"},
    Parameter{"exclude_regex", ParameterType::kList, "", "Patterns for the names of weights to leave out"},
};

class WeightUpdateRatio final : public Rule {
 public:
  explicit WeightUpdateRatio(const RuleArguments& arguments)
      : exclude_(arguments.list("exclude_regex")),
        large_(arguments.number("large_threshold")),
        small_(arguments.number("small_threshold")),
        epsilon_(arguments.number("epsilon")) {
    if (arguments.has("num_steps")) num_steps_ = arguments.integer("num_steps");
  }

  std::vector<Need> needs() const override {
    return {{.collections = {"weights"}, .exclude_regex = exclude_, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    const Mode mode = has_training_steps(step.trial()) ? Mode::kTrain : Mode::kGlobal;
    if (mode == Mode::kTrain && step.mode() != Mode::kTrain) return;
    const std::int64_t now = step_number(step, mode);
    ValueHistory::Window window{.count = 1};
    if (num_steps_) window = {.count = 0, .first_step = now - *num_steps_};
    for (const StepTensor* weight : step.tensors()) {
      if (numeric_value(*weight, findings) == nullptr) continue;
      std::deque<PastValue>& past = history_.before(step, *weight, mode, window);
      if (!past.empty()) compare(*weight, past.front(), findings);
      past.push_back({now, weight->value});
    }
  }

  void reset() override { history_.clear(); }

 private:
  void compare(const StepTensor& weight, const PastValue& past, Findings& findings) const {
    if (past.value->shape() != weight.value->shape() || past.value->dtype() != weight.value->dtype()) {
      findings.skip("changed shape");
      return;
    }
    const auto norms = reduce::update(view_of(*weight.value), view_of(*past.value));
    if (!norms) {
      findings.skip("no ratio");
      return;
    }
    findings.count_datapoint();
    const std::span<const double> numbers = norms->values<double>();
    const double ratio = numbers[0] / (numbers[1] + epsilon_);
    if (ratio > large_) {
      findings.add(&weight, ratio, large_,
                   fmt::format("{}: changed by {:g} times its size since step {}, more than {:g}",
                               printable(weight.name), ratio, past.step, large_));
    } else if (ratio < small_) {
      findings.add(&weight, ratio, small_,
                   fmt::format("{}: changed by {:g} times its size since step {}, less than {:g}",
                               printable(weight.name), ratio, past.step, small_));
    }
  }

  std::vector<std::string> exclude_;
  std::optional<std::int64_t> num_steps_;
  double large_, small_, epsilon_;
  ValueHistory history_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("WeightUpdateRatio", arguments, "num_steps", 1));
  return std::unique_ptr<Rule>(std::make_unique<WeightUpdateRatio>(arguments));
}

}  // namespace

const RuleType kWeightUpdateRatio = {
    .name = "WeightUpdateRatio",
    .group = "deep learning",
    .summary = "The change of weights is out of proportion to the weights: the learning rate is too high or too low.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
