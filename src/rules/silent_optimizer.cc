// SilentOptimizer: there are gradients, and no weight changes by a single bit.

#include <fmt/format.h>

#include <array>
#include <map>

#include "base/errors.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/content_hashes.h"
#include "rules/gradient_norm.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"patience", ParameterType::kInteger, "3", "For so many steps in a row nothing has changed"},
};

class SilentOptimizer final : public Rule {
 public:
  explicit SilentOptimizer(const RuleArguments& arguments) : patience_(arguments.integer("patience")) {}

  std::vector<Need> needs() const override {
    return {{.collections = {"weights", "biases"}, .derived = {"hash"}},
            {.collections = {"gradients"}, .stats = {Stat::kL2}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    std::map<std::string_view, Hashes> by_worker;
    for (const StepTensor* weight : step.tensors(0)) {
      if (const auto hash = content_hash_of(*weight)) {
        by_worker[weight->worker][std::string(weight->name)] = *hash;
        findings.count_datapoint();
      } else {
        findings.skip("no value");
      }
    }
    const auto norms = gradient_norms(step.tensors(1));
    for (auto& [worker, hashes] : by_worker) {
      const auto norm = norms.find(worker);
      judge(workers_[std::string(worker)], worker, std::move(hashes), norm == norms.end() ? std::nullopt : norm->second,
            findings);
    }
  }

  std::map<std::string, std::string> details() const override {
    if (compared_ == 0) return {};
    return {{"share_of_changed_tensors",
             fmt::format("{}", static_cast<double>(changed_) / static_cast<double>(compared_))}};
  }

  void reset() override {
    workers_.clear();
    changed_ = compared_ = 0;
  }

 private:
  using Hashes = std::map<std::string, std::int64_t>;  // by tensor
  struct Worker {
    Hashes last = {};
    std::int64_t equal_steps = 0;  // in a row with gradients and the same weights; the first of them included
  };

  void judge(Worker& kept, std::string_view worker, Hashes now, std::optional<double> norm, Findings& findings) {
    std::int64_t changed = 0;
    std::int64_t compared = 0;
    for (const auto& [name, hash] : now) {
      const auto before = kept.last.find(name);
      if (before == kept.last.end()) continue;
      ++compared;
      if (before->second != hash) ++changed;
    }
    changed_ += changed;
    compared_ += compared;
    const bool has_gradients = norm && *norm > 0;
    if (!has_gradients) {
      kept.equal_steps = 0;
    } else if (compared > 0 && changed == 0) {
      ++kept.equal_steps;
    } else {
      kept.equal_steps = 1;
    }
    kept.last = std::move(now);
    if (kept.equal_steps <= patience_) return;
    findings.add(nullptr, static_cast<double>(kept.equal_steps - 1), static_cast<double>(patience_),
                 fmt::format("none of {} weights of worker {} changed by a bit for {} steps; the gradient norm is {:g}",
                             compared, worker, kept.equal_steps - 1, *norm));
  }

  std::int64_t patience_;
  std::map<std::string, Worker> workers_;
  std::int64_t changed_ = 0, compared_ = 0;  // tensors, over all steps
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("SilentOptimizer", arguments, "patience", 1));
  return std::unique_ptr<Rule>(std::make_unique<SilentOptimizer>(arguments));
}

}  // namespace

const RuleType kSilentOptimizer = {
    .name = "SilentOptimizer",
    .group = "detectors",
    .summary = "There are gradients and no weight changes: the optimizer does not step, or steps on other parameters.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
