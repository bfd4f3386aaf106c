// ExplodingTensor: a tensor holds NaN or an infinity.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/utf8.h"
#include "rules/builtin_rules.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "",
              "Collections to look at; with no pattern either: everything"},
    Parameter{"tensor_regex", ParameterType::kList, "", "Further tensors, by patterns for their names"},
    Parameter{"only_nan", ParameterType::kFlag, "False", "Infinities do not count"},
};

class ExplodingTensor final : public Rule {
 public:
  explicit ExplodingTensor(const RuleArguments& arguments)
      : collections_(arguments.list("collection_names")),
        regex_(arguments.list("tensor_regex")),
        only_nan_(arguments.flag("only_nan")) {}

  std::vector<Need> needs() const override {
    return {{.collections = collections_,
             .regex = regex_,
             .stats = {Stat::kNan, Stat::kPosInf, Stat::kNegInf, Stat::kFirstNonFinite},
             .reductions_without_value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors()) {
      if (tensor->stats.has(Stat::kNan)) {
        look_at_value(*tensor, findings);
      } else if (!tensor->reductions.empty()) {
        look_at_reductions(*tensor, findings);
      } else {
        findings.skip(tensor->dtype == DType::kString ? "text" : "no value");
      }
    }
  }

  void reset() override {}

 private:
  void look_at_value(const StepTensor& tensor, Findings& findings) const {
    findings.count_datapoint();
    const double nan = *tensor.stats[Stat::kNan];
    const double infinite = only_nan_ ? 0 : *tensor.stats[Stat::kPosInf] + *tensor.stats[Stat::kNegInf];
    if (nan + infinite == 0) return;
    findings.add(
        &tensor, nan + infinite, 0,
        fmt::format("{}: {} NaN, {} +Inf, {} -Inf; the first at element {}", printable(tensor.name), nan,
                    *tensor.stats[Stat::kPosInf], *tensor.stats[Stat::kNegInf], *tensor.stats[Stat::kFirstNonFinite]));
  }

  void look_at_reductions(const StepTensor& tensor, Findings& findings) const {
    findings.count_datapoint();
    for (const auto& [reduction, number] : tensor.reductions) {
      if (!std::isnan(number) && (only_nan_ || std::isfinite(number))) continue;
      findings.add(&tensor, number, {},
                   fmt::format("{}: its stored {} is {}", printable(tensor.name), reduction_name(reduction), number));
      return;
    }
  }

  std::vector<std::string> collections_, regex_;
  bool only_nan_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  return std::unique_ptr<Rule>(std::make_unique<ExplodingTensor>(arguments));
}

}  // namespace

const RuleType kExplodingTensor = {
    .name = "ExplodingTensor",
    .group = "deep learning",
    .summary = "A tensor holds values that are not finite: the training is broken from there on.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
