// TensorVariance: the variance of a tensor is above or below a limit.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/rule_errors.h"
#include "rules/tensor_choice.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    kCollectionNames,
    kTensorRegex,
    Parameter{"max_threshold", ParameterType::kNumber, "", "A larger variance meets the condition"},
    Parameter{"min_threshold", ParameterType::kNumber, "", "A smaller variance meets the condition"},
};

class TensorVariance final : public Rule {
 public:
  TensorVariance(TensorChoice choice, const RuleArguments& arguments) : choice_(std::move(choice)) {
    if (arguments.has("max_threshold")) max_ = arguments.number("max_threshold");
    if (arguments.has("min_threshold")) min_ = arguments.number("min_threshold");
  }

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .stats = {Stat::kVariance}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors()) {
      const auto variance = tensor->stats[Stat::kVariance];
      if (!variance) {
        findings.skip(tensor->dtype == DType::kString ? "text" : "no variance");
        continue;
      }
      if (is_single(step, *tensor, *variance)) {
        findings.skip("one element");
        continue;
      }
      findings.count_datapoint();
      if (max_ && *variance > *max_) {
        findings.add(tensor, *variance, *max_,
                     fmt::format("{}: variance {:g} is above {:g}", printable(tensor->name), *variance, *max_));
      } else if (min_ && *variance < *min_) {
        findings.add(tensor, *variance, *min_,
                     fmt::format("{}: variance {:g} is below {:g}", printable(tensor->name), *variance, *min_));
      }
    }
  }

  void reset() override {}

 private:
  // A stored variance does not say of how many elements; only one of zero can be of one.
  static bool is_single(const StepView& step, const StepTensor& tensor, double variance) {
    if (tensor.shape) return tensor.shape->element_count() == 1;
    if (variance != 0) return false;
    const auto found = step.trial().tensor(tensor.name);
    if (!found) return false;
    const auto shape = found->shape({Mode::kGlobal, step.global_step().number}, tensor.worker);
    return shape && shape->element_count() == 1;
  }

  TensorChoice choice_;
  std::optional<double> max_, min_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_TRY(TensorChoice choice, require_tensors("TensorVariance", arguments));
  if (!arguments.has("max_threshold") && !arguments.has("min_threshold")) {
    return insufficient_error("TensorVariance",
                              "neither max_threshold nor min_threshold is given; one of them must be");
  }
  return std::unique_ptr<Rule>(std::make_unique<TensorVariance>(std::move(choice), arguments));
}

}  // namespace

const RuleType kTensorVariance = {.name = "TensorVariance",
                                  .group = "universal",
                                  .summary = "The variance of a tensor is very high or very low.",
                                  .parameters = kParameters,
                                  .make = make};

}  // namespace tornasole::rules
