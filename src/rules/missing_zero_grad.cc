// MissingZeroGrad: gradients are added up from step to step, because nobody sets them to zero.
//
// The vector of all gradients of a worker is never put together: its norms and the products with the one before add up
// over its tensors.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>

#include "base/errors.h"
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
    Parameter{"window", ParameterType::kInteger, "10", "How many consecutive optimizer steps are looked at"},
    Parameter{"period", ParameterType::kInteger, "1",
              "Backward passes per optimizer step, where every pass is saved as a step of its own"},
    Parameter{"cosine", ParameterType::kNumber, "0.9", "Successive gradients that are more alike than this"},
    Parameter{"pairs", ParameterType::kInteger, "5", "So many last pairs must be that much alike"},
    Parameter{"growth", ParameterType::kNumber, "2", "How many times the first norm the last one must be"},
};
constexpr double kGrowingShare = 0.9;  // of the pairs, in which the norm does not fall

class MissingZeroGrad final : public Rule {
 public:
  explicit MissingZeroGrad(const RuleArguments& arguments)
      : window_(static_cast<std::size_t>(arguments.integer("window"))),
        pairs_(static_cast<std::size_t>(arguments.integer("pairs"))),
        period_(arguments.integer("period")),
        cosine_(arguments.number("cosine")),
        growth_(arguments.number("growth")) {}

  std::vector<Need> needs() const override {
    return {
        {.collections = {"optimizer_gradients"}, .stats = {Stat::kL2}, .value = true, .derived = {"cosine_previous"}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    std::map<std::string_view, std::vector<const StepTensor*>> by_worker;
    for (const StepTensor* gradient : step.tensors()) by_worker[gradient->worker].push_back(gradient);
    for (const auto& [worker, gradients] : by_worker) {
      Worker& kept = workers_[std::string(worker)];
      const OptimizerStep now = optimizer_step_of(step, worker);
      const std::int64_t distance = kept.last ? steps_between(*kept.last, now) : 0;
      if (kept.last && distance < (now.taken ? 1 : period_)) continue;  // within one optimizer step
      if (distance > (now.taken ? 1 : period_)) kept.pairs.clear();     // steps in between were not saved
      add(kept, gradients, findings);
      kept.last = now;
      judge(kept, worker, findings);
    }
  }

  void reset() override { workers_.clear(); }

 private:
  // A gradient and the one before: norms, and the cosine of the angle between them.
  struct Pair {
    double before = 0, now = 0, cosine = 0;
  };
  struct Worker {
    std::optional<OptimizerStep> last = {};
    std::map<std::string, std::shared_ptr<const Tensor>> values = {};  // shared: as a StepTensor gives it
    std::deque<Pair> pairs = {};
  };

  void add(Worker& kept, const std::vector<const StepTensor*>& gradients, Findings& findings) const {
    double dot = 0;
    double squares_before = 0;
    double squares_now = 0;
    bool has_pair = false;
    for (const StepTensor* gradient : gradients) {
      const auto norm = gradient->stats[Stat::kL2];
      auto& last = kept.values[std::string(gradient->name)];
      const auto cosine = cosine_with(*gradient, last);
      last = gradient->value;
      if (!norm || !cosine) {
        findings.skip(norm ? "nothing before it" : "no value");
        continue;
      }
      findings.count_datapoint();
      has_pair = true;
      const auto [angle, before] = *cosine;
      squares_before += before * before;
      squares_now += *norm * *norm;
      if (!std::isnan(angle)) dot += angle * before * *norm;  // of a zero: no angle, no product
    }
    if (!has_pair) return;
    const double before = std::sqrt(squares_before);
    const double now = std::sqrt(squares_now);
    kept.pairs.push_back({before, now, before > 0 && now > 0 ? dot / (before * now) : 0});
    while (kept.pairs.size() + 1 > window_) kept.pairs.pop_front();
  }

  // Cosine with the value before and its norm: as stored, else from both values.
  static std::optional<std::pair<double, double>> cosine_with(const StepTensor& gradient,
                                                              const std::shared_ptr<const Tensor>& last) {
    const auto numbers_of = [](const Tensor& pair) -> std::optional<std::pair<double, double>> {
      const auto numbers = pair.values<double>();
      return numbers.size() == 2 ? std::optional(std::pair(numbers[0], numbers[1])) : std::nullopt;
    };
    if (const Tensor* stored = gradient.derived_statistic("cosine_previous")) return numbers_of(*stored);
    if (!gradient.value || !last || gradient.value->dtype() == DType::kString) return std::nullopt;
    const auto made = reduce::cosine_previous(view_of(*gradient.value), view_of(*last));
    return made ? numbers_of(*made) : std::nullopt;
  }

  void judge(const Worker& kept, std::string_view worker, Findings& findings) const {
    const auto& pairs = kept.pairs;
    if (pairs.size() + 1 < window_) return;
    const auto recent = static_cast<std::ptrdiff_t>(std::min(pairs_, pairs.size()));
    const bool are_alike =
        std::all_of(pairs.end() - recent, pairs.end(), [&](const Pair& pair) { return pair.cosine > cosine_; });
    const auto growing = std::ranges::count_if(pairs, [](const Pair& pair) { return pair.now >= pair.before; });
    const double first = pairs.front().before;
    const double last = pairs.back().now;
    const bool do_grow = static_cast<double>(growing) >= kGrowingShare * static_cast<double>(pairs.size()) &&
                         last >= growth_ * first && last > 0;
    if (!are_alike || !do_grow) return;
    findings.add(nullptr, last / first, growth_,
                 fmt::format("worker {}: over {} optimizer steps the gradient norm grew from {:g} to {:g}, each "
                             "gradient nearly along the one before (cosine {:g}): they add up",
                             worker, pairs.size() + 1, first, last, pairs.back().cosine));
  }

  std::size_t window_, pairs_;
  std::int64_t period_;
  double cosine_, growth_;
  std::map<std::string, Worker> workers_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("MissingZeroGrad", arguments, "window", 2));
  TORNASOLE_CHECK(check_at_least("MissingZeroGrad", arguments, "period", 1));
  TORNASOLE_CHECK(check_at_least("MissingZeroGrad", arguments, "pairs", 1));
  return std::unique_ptr<Rule>(std::make_unique<MissingZeroGrad>(arguments));
}

}  // namespace

const RuleType kMissingZeroGrad = {.name = "MissingZeroGrad",
                                   .group = "detectors",
                                   .summary = "Gradients add up from step to step: they are not set to zero.",
                                   .parameters = kParameters,
                                   .make = make};

}  // namespace tornasole::rules
