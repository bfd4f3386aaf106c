// AllZero: all, or a given share, of the elements of a tensor are zero.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_choice.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    kCollectionNames,
    kTensorRegex,
    Parameter{"threshold", ParameterType::kNumber, "100", "The percentage of zeros from which the condition is met"},
};
constexpr double kAll = 100;  // percent

class AllZero final : public Rule {
 public:
  AllZero(TensorChoice choice, const RuleArguments& arguments)
      : choice_(std::move(choice)), threshold_(arguments.number("threshold")) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .stats = {Stat::kCount, Stat::kZeros, Stat::kAbsMax}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors()) {
      const auto percent = zero_percent(*tensor);
      if (!percent) {
        findings.skip(tensor->dtype == DType::kString ? "text" : tensor->shape ? "empty" : "no value");
        continue;
      }
      findings.count_datapoint();
      if (*percent >= threshold_) {
        findings.add(tensor, *percent, threshold_,
                     fmt::format("{}: {:g} % of the elements are zero", printable(tensor->name), *percent));
      }
    }
  }

  void reset() override {}

 private:
  // Nothing if it cannot be told; 0 stands for any share that is not all, where only the largest magnitude is known.
  std::optional<double> zero_percent(const StepTensor& tensor) const {
    const auto count = tensor.stats[Stat::kCount];
    const auto zeros = tensor.stats[Stat::kZeros];
    if (count && zeros) return *count > 0 ? std::optional(kAll * *zeros / *count) : std::nullopt;
    const auto largest = tensor.stats[Stat::kAbsMax];
    if (!largest || threshold_ != kAll) return std::nullopt;
    return *largest == 0 ? kAll : 0;
  }

  TensorChoice choice_;
  double threshold_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_TRY(TensorChoice choice, require_tensors("AllZero", arguments));
  return std::unique_ptr<Rule>(std::make_unique<AllZero>(std::move(choice), arguments));
}

}  // namespace

const RuleType kAllZero = {.name = "AllZero",
                           .group = "universal",
                           .summary = "All, or a given share, of the elements of a tensor are zero.",
                           .parameters = kParameters,
                           .make = make};

}  // namespace tornasole::rules
