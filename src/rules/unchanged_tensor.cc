// UnchangedTensor: a tensor stays the same over several saved steps.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"
#include "rules/value_history.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    kCollectionNames,
    kTensorRegex,
    Parameter{"num_steps", ParameterType::kInteger, "3", "How many saved steps are compared"},
    Parameter{"rtol", ParameterType::kNumber, "1e-05", "The difference that counts as none, relative to the newest"},
    Parameter{"atol", ParameterType::kNumber, "1e-08", "The difference that counts as none"},
    Parameter{"equal_nan", ParameterType::kFlag, "False", "NaN equals NaN"},
};

class UnchangedTensor final : public Rule {
 public:
  UnchangedTensor(TensorChoice choice, const RuleArguments& arguments)
      : choice_(std::move(choice)),
        num_steps_(static_cast<std::size_t>(arguments.integer("num_steps"))),
        tolerance_{arguments.number("rtol"), arguments.number("atol"), arguments.flag("equal_nan")} {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors()) {
      if (numeric_value(*tensor, findings) == nullptr) continue;
      findings.count_datapoint();
      std::deque<PastValue>& past = history_.before(step, *tensor, step.mode(), {.count = num_steps_ - 1});
      if (past.size() + 1 == num_steps_ && is_unchanged(*tensor->value, past)) {
        findings.add(tensor, {}, {},
                     fmt::format("{}: the same at the last {} saved steps, since step {}", printable(tensor->name),
                                 num_steps_, past.front().step));
      }
      past.push_back({step.step().number, tensor->value});
    }
  }

  void reset() override { history_.clear(); }

 private:
  bool is_unchanged(const Tensor& now, const std::deque<PastValue>& past) const {
    return std::ranges::all_of(past, [&](const PastValue& other) {
      return is_real(*other.value) && all_close(*other.value, now, tolerance_);
    });
  }
  static bool is_real(const Tensor& tensor) {
    return tensor.dtype() != DType::kString && !reduce::is_complex_dtype(tensor.dtype());
  }

  TensorChoice choice_;
  std::size_t num_steps_;
  Tolerance tolerance_;
  ValueHistory history_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_TRY(TensorChoice choice, require_tensors("UnchangedTensor", arguments));
  TORNASOLE_CHECK(check_at_least("UnchangedTensor", arguments, "num_steps", 2));
  return std::unique_ptr<Rule>(std::make_unique<UnchangedTensor>(std::move(choice), arguments));
}

}  // namespace

const RuleType kUnchangedTensor = {.name = "UnchangedTensor",
                                   .group = "universal",
                                   .summary = "A tensor stays the same over several saved steps.",
                                   .parameters = kParameters,
                                   .make = make};

}  // namespace tornasole::rules
