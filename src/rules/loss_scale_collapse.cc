// LossScaleCollapse: the scale of a mixed-precision training keeps being halved.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{
        "tensor_regex", ParameterType::kList, "loss_scale,grad_scale",
        "Patterns for the names of the saved scale; without such a tensor the scale recorded with the step counts"},
    Parameter{"k", ParameterType::kInteger, "10", "So many halvings within the window meet the condition"},
    Parameter{"window", ParameterType::kInteger, "20", "How many steps are looked back at"},
};

class LossScaleCollapse final : public Rule {
 public:
  explicit LossScaleCollapse(const RuleArguments& arguments)
      : regex_(arguments.list("tensor_regex")),
        k_(arguments.integer("k")),
        window_(static_cast<std::size_t>(arguments.integer("window"))) {}

  std::vector<Need> needs() const override {
    return {{.regex = regex_, .exclude_regex = exclude_statistics(regex_), .stats = {Stat::kMean, Stat::kCount}},
            {.collections = {"losses"}, .stats = {Stat::kMean}}};  // for the steps at which a scale may be recorded
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors(0)) {
      if (const auto scale = tensor->scalar()) {
        judge(scales_.of(*tensor), *scale, tensor, tensor->name, findings);
      } else {
        findings.skip("not a scalar");
      }
    }
    if (!step.tensors(0).empty()) return;
    if (const auto scale = step.trial().step_facts(step.global_step()).grad_scale) {
      judge(recorded_, *scale, nullptr, "the gradient scale", findings);
    }
  }

  void reset() override {
    scales_.clear();
    recorded_ = {};
  }

 private:
  struct Scales {
    std::optional<double> last = {};
    std::deque<bool> halved = {};
  };

  void judge(Scales& kept, double scale, const StepTensor* tensor, std::string_view name, Findings& findings) const {
    findings.count_datapoint();
    kept.halved.push_back(kept.last && scale <= *kept.last / 2);
    if (kept.halved.size() > window_) kept.halved.pop_front();
    kept.last = scale;
    const auto halvings = std::ranges::count(kept.halved, true);
    if (scale < 1) {
      findings.add(tensor, scale, 1, fmt::format("{}: {:g} is below 1", printable(name), scale));
    } else if (halvings >= k_) {
      findings.add(tensor, static_cast<double>(halvings), static_cast<double>(k_),
                   fmt::format("{}: halved at {} of the last {} steps, now {:g}", printable(name), halvings,
                               kept.halved.size(), scale));
    }
  }

  std::vector<std::string> regex_;
  std::int64_t k_;
  std::size_t window_;
  TensorStates<Scales> scales_;
  Scales recorded_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("LossScaleCollapse", arguments, "k", 1));
  TORNASOLE_CHECK(check_at_least("LossScaleCollapse", arguments, "window", 1));
  return std::unique_ptr<Rule>(std::make_unique<LossScaleCollapse>(arguments));
}

}  // namespace

const RuleType kLossScaleCollapse = {
    .name = "LossScaleCollapse",
    .group = "detectors",
    .summary = "The loss scale keeps being halved: gradients overflow again and again.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
