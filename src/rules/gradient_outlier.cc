// GradientOutlier: one element of a gradient, or the whole of it, is far larger than what is usual for it.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <deque>
#include <numeric>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "gradients", "Collections with the gradients"},
    kTensorRegex,
    Parameter{"ratio", ParameterType::kNumber, "1000",
              "How many times the root mean square the largest magnitude may be"},
    Parameter{"k", ParameterType::kNumber, "10", "How many times its mean so far the root mean square may be"},
    Parameter{"window", ParameterType::kInteger, "128", "How many earlier steps that mean is of"},
    Parameter{"min_points", ParameterType::kInteger, "10", "With fewer earlier steps there is no mean"},
};

class GradientOutlier final : public Rule {
 public:
  explicit GradientOutlier(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        ratio_(arguments.number("ratio")),
        k_(arguments.number("k")),
        window_(static_cast<std::size_t>(arguments.integer("window"))),
        min_points_(static_cast<std::size_t>(arguments.integer("min_points"))) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .stats = {Stat::kAbsMax, Stat::kL2, Stat::kCount}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* gradient : step.tensors()) {
      const auto norm = gradient->stats[Stat::kL2];
      const auto largest = gradient->stats[Stat::kAbsMax];
      const auto count = gradient->stats[Stat::kCount];
      if (!norm) {
        findings.skip("no norm");
        continue;
      }
      findings.count_datapoint();
      // Without the number of elements the norm stands for the root mean square: only its growth can be judged.
      const double root = count && *count > 0 ? *norm / std::sqrt(*count) : *norm;
      if (count && largest && *largest > ratio_ * root) {
        findings.add(gradient, *largest / root, ratio_,
                     fmt::format("{}: the largest magnitude {:g} is {:g} times the root mean square",
                                 printable(gradient->name), *largest, *largest / root));
      }
      judge_growth(*gradient, root, findings);
    }
  }

  void reset() override { history_.clear(); }

 private:
  void judge_growth(const StepTensor& gradient, double root, Findings& findings) {
    std::deque<double>& history = history_.of(gradient);
    if (history.size() >= min_points_ && !history.empty()) {
      const double mean = std::accumulate(history.begin(), history.end(), 0.0) / static_cast<double>(history.size());
      if (root > k_ * mean) {
        findings.add(&gradient, root / mean, k_,
                     fmt::format("{}: {:g} times its usual size", printable(gradient.name), root / mean));
      }
    }
    if (!std::isfinite(root)) return;
    history.push_back(root);
    if (history.size() > window_) history.pop_front();
  }

  TensorChoice choice_;
  double ratio_, k_;
  std::size_t window_, min_points_;
  TensorStates<std::deque<double>> history_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("GradientOutlier", arguments, "window", 1));
  TORNASOLE_CHECK(check_at_least("GradientOutlier", arguments, "min_points", 1));
  return std::unique_ptr<Rule>(std::make_unique<GradientOutlier>(arguments));
}

}  // namespace

const RuleType kGradientOutlier = {
    .name = "GradientOutlier",
    .group = "detectors",
    .summary = "One element of a gradient, or the whole of it, is far larger than what is usual for it.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
