// WeightDivergence: weights are huge, or grow many times at every look.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/tensor_states.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"limit", ParameterType::kNumber, "1e8", "A larger mean magnitude is too large"},
    Parameter{"factor", ParameterType::kNumber, "2", "Growth by this many times from one saved step to the next"},
    Parameter{"checks", ParameterType::kInteger, "5", "At so many saved steps in a row"},
};

class WeightDivergence final : public Rule {
 public:
  explicit WeightDivergence(const RuleArguments& arguments)
      : limit_(arguments.number("limit")), factor_(arguments.number("factor")), checks_(arguments.integer("checks")) {}

  std::vector<Need> needs() const override { return {{.collections = {"weights"}, .stats = {Stat::kAbsMean}}}; }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    for (const StepTensor* weight : step.tensors()) {
      const auto mean = weight->stats[Stat::kAbsMean];
      if (!mean) {
        findings.skip("no mean magnitude");
        continue;
      }
      findings.count_datapoint();
      Growth& kept = growth_.of(*weight);
      const bool has_grown = kept.last && *kept.last > 0 && *mean >= factor_ * *kept.last;
      kept = {.last = mean, .in_a_row = has_grown ? kept.in_a_row + 1 : 0};
      if (*mean > limit_) {
        findings.add(weight, *mean, limit_,
                     fmt::format("{}: mean magnitude {:g} is above {:g}", printable(weight->name), *mean, limit_));
      } else if (kept.in_a_row >= checks_) {
        findings.add(weight, *mean, {},
                     fmt::format("{}: mean magnitude grew {:g} times or more at {} saved steps in a row, to {:g}",
                                 printable(weight->name), factor_, kept.in_a_row, *mean));
      }
    }
  }

  void reset() override { growth_.clear(); }

 private:
  struct Growth {
    std::optional<double> last = {};
    std::int64_t in_a_row = 0;
  };
  double limit_, factor_;
  std::int64_t checks_;
  TensorStates<Growth> growth_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("WeightDivergence", arguments, "checks", 1));
  return std::unique_ptr<Rule>(std::make_unique<WeightDivergence>(arguments));
}

}  // namespace

const RuleType kWeightDivergence = {.name = "WeightDivergence",
                                    .group = "detectors",
                                    .summary = "Weights are huge, or grow many times from one saved step to the next.",
                                    .parameters = kParameters,
                                    .make = make};

}  // namespace tornasole::rules
