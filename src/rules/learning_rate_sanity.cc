// LearningRateSanity: one optimizer step changes the weights by too large or too small a part of them.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "base/errors.h"
#include "base/json.h"
#include "reduce/derived.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/optimizer_steps.h"
#include "rules/tensor_numbers.h"
#include "rules/tensor_states.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"low", ParameterType::kNumber, "1e-6", "A smaller median change per step is too little"},
    Parameter{"high", ParameterType::kNumber, "1e-1", "A larger median change per step is too much"},
    Parameter{"patience", ParameterType::kInteger, "5", "For so many steps in a row"},
    Parameter{"warmup", ParameterType::kInteger, "10", "So many first steps are not judged"},
};

class LearningRateSanity final : public Rule {
 public:
  explicit LearningRateSanity(const RuleArguments& arguments)
      : low_(arguments.number("low")),
        high_(arguments.number("high")),
        patience_(arguments.integer("patience")),
        warmup_(arguments.integer("warmup")) {}

  std::vector<Need> needs() const override {
    return {{.collections = {"weights"}, .value = true, .derived = {"update"}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    std::map<std::string_view, std::vector<double>> by_worker;
    std::map<std::string_view, OptimizerStep> now;
    for (const StepTensor* weight : step.tensors()) {
      const auto at = now.try_emplace(weight->worker, optimizer_step_of(step, weight->worker)).first;
      const auto change = change_of(*weight, at->second);
      if (!change) {
        findings.skip("no step before it");
      } else if (!std::isfinite(*change)) {
        findings.skip("zero or not finite before");
      } else {
        findings.count_datapoint();
        last_changes_[std::string(weight->name)] = *change;
        by_worker[weight->worker].push_back(*change);
      }
    }
    for (auto& [worker, changes] : by_worker) judge(workers_[std::string(worker)], worker, changes, findings);
  }

  // log10 of the last change of each weight.
  std::map<std::string, std::string> details() const override {
    std::map<std::string, std::string> details;
    JsonWriter json(&details["log10_last_change"]);
    json.begin_object();
    for (const auto& [name, change] : last_changes_) json.key(name).value(std::log10(change));
    json.end_object();
    return details;
  }

  void reset() override {
    weights_.clear();
    workers_.clear();
    last_changes_.clear();
  }

 private:
  struct Weight {
    OptimizerStep at = {};
    std::shared_ptr<const Tensor> value = {};  // shared: as a StepTensor gives it
  };
  struct Worker {
    std::int64_t seen = 0;
    std::int64_t outside = 0;  // steps in a row
  };

  // Relative to the weight before. Nothing if that of the optimizer step before is not known.
  std::optional<double> change_of(const StepTensor& weight, const OptimizerStep& now) {
    const auto ratio_of = [](const Tensor& norms) -> std::optional<double> {
      const auto numbers = norms.values<double>();
      return numbers.size() == 2 ? std::optional(numbers[0] / numbers[1]) : std::nullopt;
    };
    if (const Tensor* stored = weight.derived_statistic("update")) return ratio_of(*stored);
    if (!weight.value || weight.value->dtype() == DType::kString) return std::nullopt;
    Weight& last = weights_.of(weight);
    std::optional<double> change;
    const std::int64_t distance = last.value ? steps_between(last.at, now) : 0;
    if (last.value && distance == 0) return std::nullopt;  // the same optimizer step
    if (distance == 1) {
      const auto norms = reduce::update(view_of(*weight.value), view_of(*last.value));
      if (norms) change = ratio_of(*norms);
    }
    last = {now, weight.value};
    return change;
  }

  void judge(Worker& kept, std::string_view worker, std::vector<double>& changes, Findings& findings) const {
    if (kept.seen++ < warmup_) return;
    const double median = quantile(changes, 0.5);
    kept.outside = median < low_ || median > high_ ? kept.outside + 1 : 0;
    if (kept.outside < patience_) return;
    findings.add(nullptr, median, median < low_ ? low_ : high_,
                 fmt::format("worker {}: a step changes weights by {:g} of their size, not {:g} to {:g}, for {} steps",
                             worker, median, low_, high_, kept.outside));
  }

  double low_, high_;
  std::int64_t patience_, warmup_;
  TensorStates<Weight> weights_;
  std::map<std::string, Worker> workers_;
  std::map<std::string, double> last_changes_;  // by tensor
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("LearningRateSanity", arguments, "patience", 1));
  TORNASOLE_CHECK(check_at_least("LearningRateSanity", arguments, "warmup", 0));
  return std::unique_ptr<Rule>(std::make_unique<LearningRateSanity>(arguments));
}

}  // namespace

const RuleType kLearningRateSanity = {
    .name = "LearningRateSanity",
    .group = "detectors",
    .summary = "One optimizer step changes the weights by too large or too small a part of them.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
