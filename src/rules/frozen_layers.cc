// FrozenLayers: some weights stay as they are while others change.

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/content_hashes.h"
#include "rules/tensor_states.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"patience", ParameterType::kInteger, "5", "For so many steps in a row it has not changed"},
    Parameter{"expected", ParameterType::kList, "", "Patterns for the names of weights that are frozen on purpose"},
};

class FrozenLayers final : public Rule {
 public:
  explicit FrozenLayers(const RuleArguments& arguments)
      : patience_(arguments.integer("patience")), expected_(arguments.list("expected")) {}

  std::vector<Need> needs() const override {
    return {{.collections = {"weights"}, .exclude_regex = expected_, .derived = {"hash"}},
            {.collections = {"weights"}, .derived = {"hash"}},  // what changes may be what was expected not to
            {.collections = {"gradients"}, .stats = {Stat::kAbsMax}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    ++looks_;
    for (const StepTensor* weight : step.tensors(1)) note(*weight, findings);
    for (const StepTensor* weight : step.tensors(0)) {
      const Weight& kept = weights_.of(*weight);
      if (!kept.hash) continue;
      findings.count_datapoint();
      const bool do_others_change = last_change_[std::string(weight->worker)] > kept.since;
      if (kept.unchanged < patience_ || !do_others_change) continue;
      findings.add(weight, static_cast<double>(kept.unchanged), static_cast<double>(patience_),
                   fmt::format("{}: unchanged for {} steps while others change; its gradient is {}",
                               printable(weight->name), kept.unchanged, gradient_of(*weight, step)));
    }
  }

  void reset() override {
    weights_.clear();
    looks_ = 0;
    last_change_.clear();
  }

 private:
  struct Weight {
    std::optional<std::int64_t> hash = {};
    std::int64_t unchanged = 0;  // steps in a row
    std::int64_t since = 0;      // the look that saw it first as it is
  };

  void note(const StepTensor& weight, Findings& findings) {
    const auto hash = content_hash_of(weight);
    if (!hash) {
      findings.skip("no value");
      return;
    }
    Weight& kept = weights_.of(weight);
    if (kept.hash && *kept.hash == *hash) {
      ++kept.unchanged;
    } else {
      if (kept.hash) last_change_[std::string(weight.worker)] = looks_;
      kept = {.hash = hash, .since = looks_};
    }
  }

  static std::string_view gradient_of(const StepTensor& weight, const StepView& step) {
    for (const StepTensor* gradient : step.tensors(2)) {
      if (gradient->worker != weight.worker || gradient->name.size() <= weight.name.size()) continue;
      const std::size_t at = gradient->name.size() - weight.name.size();
      const bool is_its_own = gradient->name.substr(at) == weight.name && gradient->name[at - 1] == '/';
      if (!is_its_own) continue;
      const auto largest = gradient->stats[Stat::kAbsMax];
      return !largest ? "not readable" : *largest == 0 ? "zero" : "not zero";
    }
    return "absent";
  }

  std::int64_t patience_;
  std::vector<std::string> expected_;
  TensorStates<Weight> weights_;
  std::int64_t looks_ = 0;                           // steps looked at
  std::map<std::string, std::int64_t> last_change_;  // by worker: the look at which some weight changed; 0: none
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("FrozenLayers", arguments, "patience", 1));
  return std::unique_ptr<Rule>(std::make_unique<FrozenLayers>(arguments));
}

}  // namespace

const RuleType kFrozenLayers = {.name = "FrozenLayers",
                                .group = "detectors",
                                .summary = "Some weights stay as they are while others change.",
                                .parameters = kParameters,
                                .make = make};

}  // namespace tornasole::rules
