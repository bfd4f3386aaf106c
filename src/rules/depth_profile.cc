// DepthProfile: gradients of the first layer beside those of the last.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/utf8.h"
#include "rules/builtin_rules.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"vanishing_ratio", ParameterType::kNumber, "1e-3",
              "Vanishing: the first norm is a smaller part of the last"},
    Parameter{"vanishing_norm", ParameterType::kNumber, "1e-4", "Vanishing: and the first norm itself is smaller"},
    Parameter{"exploding_ratio", ParameterType::kNumber, "70", "Exploding: the first norm is more times the last"},
    Parameter{"dying_share", ParameterType::kNumber, "0.7",
              "Dying: at least this share of all gradient elements is zero"},
};
constexpr std::string_view kPrefix = "gradient/";

class DepthProfile final : public Rule {
 public:
  DepthProfile(const RuleArguments& arguments, const RuleContext& context)
      : vanishing_ratio_(arguments.number("vanishing_ratio")),
        vanishing_norm_(arguments.number("vanishing_norm")),
        exploding_ratio_(arguments.number("exploding_ratio")),
        dying_share_(arguments.number("dying_share")) {
    if (context.base == nullptr) return;
    for (const auto& [worker, stored] : context.base->models()) {
      for (const auto& parameter : stored.model.parameters) depth_.try_emplace(parameter.name, depth_.size());
    }
  }

  std::vector<Need> needs() const override {
    return {{.collections = {"gradients"}, .stats = {Stat::kL2, Stat::kZeros, Stat::kCount}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    std::map<std::string_view, std::vector<const StepTensor*>> by_worker;
    for (const StepTensor* gradient : step.tensors()) {
      if (gradient->stats.has(Stat::kL2)) {
        by_worker[gradient->worker].push_back(gradient);
        findings.count_datapoint();
      } else {
        findings.skip("no norm");
      }
    }
    for (auto& [worker, gradients] : by_worker) {
      judge_zeros(worker, gradients, findings);
      std::erase_if(gradients, [](const StepTensor* gradient) { return !is_of_layer(*gradient); });
      sort_by_depth(gradients);
      if (gradients.size() >= 2) judge_ends(*gradients.front(), *gradients.back(), findings);
    }
  }

  void reset() override {}

 private:
  // Of a weight, not of a bias or a scale.
  static bool is_of_layer(const StepTensor& gradient) {
    if (gradient.shape) return gradient.shape->rank() >= 2;
    return gradient.name.find("weight") != std::string_view::npos;
  }

  // As the model lists its parameters; without a model in the order of saving.
  void sort_by_depth(std::vector<const StepTensor*>& gradients) const {
    const auto depth_of = [&](const StepTensor* gradient) {
      std::string_view name = gradient->name;
      if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
      const auto found = depth_.find(name);
      return found == depth_.end() ? depth_.size() : found->second;
    };
    std::ranges::stable_sort(gradients, {}, depth_of);
  }

  void judge_ends(const StepTensor& first, const StepTensor& last, Findings& findings) const {
    const double near = *first.stats[Stat::kL2];
    const double far = *last.stats[Stat::kL2];
    const double ratio = near / far;
    const std::string names =
        fmt::format("{} has norm {:g}, {} has {:g}", printable(first.name), near, printable(last.name), far);
    if (ratio < vanishing_ratio_ && near < vanishing_norm_) {
      findings.add(&first, ratio, vanishing_ratio_, fmt::format("gradients vanish towards the first layer: {}", names));
    } else if (ratio > exploding_ratio_) {
      findings.add(&first, ratio, exploding_ratio_,
                   fmt::format("gradients explode towards the first layer: {}", names));
    }
  }

  void judge_zeros(std::string_view worker, const std::vector<const StepTensor*>& gradients, Findings& findings) const {
    double zeros = 0;
    double count = 0;
    for (const StepTensor* gradient : gradients) {
      zeros += gradient->stats[Stat::kZeros].value_or(0);
      count += gradient->stats[Stat::kCount].value_or(0);
    }
    if (count == 0 || zeros / count < dying_share_) return;
    findings.add(
        nullptr, zeros / count, dying_share_,
        fmt::format("gradients die: {:g} of all gradient elements of worker {} are zero", zeros / count, worker));
  }

  double vanishing_ratio_, vanishing_norm_, exploding_ratio_, dying_share_;
  std::map<std::string, std::size_t, std::less<>> depth_;  // parameter -> its place in the model
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& context) {
  return std::unique_ptr<Rule>(std::make_unique<DepthProfile>(arguments, context));
}

}  // namespace

const RuleType kDepthProfile = {
    .name = "DepthProfile",
    .group = "detectors",
    .summary = "Gradients shrink or grow on their way to the first layer, or are mostly zero.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
