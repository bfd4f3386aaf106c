// VanishingGradient: the mean magnitude of a gradient is below a threshold.

#include <fmt/format.h>

#include <array>

#include "base/utf8.h"
#include "rules/builtin_rules.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"threshold", ParameterType::kNumber, "0.0000001",
              "A gradient with a smaller mean magnitude has vanished"},
    Parameter{"collection_names", ParameterType::kList, "gradients", "Collections with the gradients"},
    Parameter{"tensor_regex", ParameterType::kList, "", "Further tensors, by patterns for their names"},
};

class VanishingGradient final : public Rule {
 public:
  explicit VanishingGradient(const RuleArguments& arguments)
      : collections_(arguments.list("collection_names")),
        regex_(arguments.list("tensor_regex")),
        threshold_(arguments.number("threshold")) {}

  std::vector<Need> needs() const override {
    return {{.collections = collections_, .regex = regex_, .stats = {Stat::kAbsMean}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* gradient : step.tensors()) {
      const auto mean = gradient->stats[Stat::kAbsMean];
      if (!mean) {
        findings.skip("no mean magnitude");
        continue;
      }
      findings.count_datapoint();
      if (*mean < threshold_) {
        findings.add(
            gradient, *mean, threshold_,
            fmt::format("{}: mean magnitude {:g} is below {:g}", printable(gradient->name), *mean, threshold_));
      }
    }
  }

  void reset() override {}

 private:
  std::vector<std::string> collections_, regex_;
  double threshold_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  return std::unique_ptr<Rule>(std::make_unique<VanishingGradient>(arguments));
}

}  // namespace

const RuleType kVanishingGradient = {
    .name = "VanishingGradient",
    .group = "deep learning",
    .summary = "Gradients have shrunk to nothing: the layers they belong to do not learn.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
