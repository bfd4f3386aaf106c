// WorkerOutlier: one worker's loss or gradients are unlike those of all others.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/gradient_norm.h"
#include "rules/robust_spread.h"
#include "rules/scalar_values.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "WorkerOutlier";
constexpr std::size_t kMinWorkers = 4;
enum : std::size_t { kLosses, kGradients };

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "losses", "Collections with scalars to compare"},
    Parameter{"tensor_regex", ParameterType::kList, "", "Patterns for the names of further scalars"},
    Parameter{"gradient_collections", ParameterType::kList, "gradients", "Collections with the gradients"},
    Parameter{"k_mad", ParameterType::kNumber, "8", "An outlier is so many robust deviations from the median"},
    Parameter{"patience", ParameterType::kInteger, "3", "A worker must be an outlier at so many steps in a row"},
    Parameter{"jump", ParameterType::kNumber, "10", "A gradient that grows by this factor on one worker only"},
};

using ByWorker = std::map<std::string_view, double>;

class WorkerOutlier final : public Rule {
 public:
  explicit WorkerOutlier(const RuleArguments& arguments)
      : collections_(arguments.list("collection_names")),
        regex_(arguments.list("tensor_regex")),
        gradient_collections_(arguments.list("gradient_collections")),
        k_mad_(arguments.number("k_mad")),
        patience_(arguments.integer("patience")),
        jump_(arguments.number("jump")) {}

  std::vector<Need> needs() const override {
    return {scalar_need(collections_, regex_), {.collections = gradient_collections_, .stats = {Stat::kL2}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    std::map<std::string_view, ByWorker> scalars;
    for (const StepTensor* tensor : step.tensors(kLosses)) {
      const auto value = scalar_value(*tensor, findings);
      if (value && std::isfinite(*value)) scalars[tensor->name][tensor->worker] = *value;
    }
    for (const auto& [worker, norm] : gradient_norms(step.tensors(kGradients))) {
      if (norm && std::isfinite(*norm)) scalars["norm of all gradients"][worker] = *norm;
    }
    for (const auto& [name, values] : scalars) look_at_scalar(name, values, findings);
    look_at_layers(step, findings);
  }

  void reset() override {
    in_a_row_.clear();
    last_norms_.clear();
  }

 private:
  void look_at_scalar(std::string_view name, const ByWorker& values, Findings& findings) {
    if (values.size() < kMinWorkers) {
      findings.skip("fewer than 4 workers");
      return;
    }
    std::vector<double> numbers;
    for (const auto& [worker, value] : values) numbers.push_back(value);
    const RobustSpread spread = robust_spread(numbers);
    const double limit = k_mad_ * spread.deviation;
    for (const auto& [worker, value] : values) {
      findings.count_datapoint();
      std::int64_t& in_a_row = in_a_row_[{std::string(name), std::string(worker)}];
      in_a_row = std::fabs(value - spread.median) > limit ? in_a_row + 1 : 0;
      if (in_a_row < patience_) continue;
      findings.add(nullptr, value, spread.median + (value > spread.median ? limit : -limit),
                   fmt::format("{}: {} of {} is far from the median {:g} of {} workers, {} steps in a row",
                               printable(name), value, printable(worker), spread.median, values.size(), in_a_row));
    }
  }

  void look_at_layers(const StepView& step, Findings& findings) {
    std::map<std::string_view, std::vector<const StepTensor*>> layers;
    for (const StepTensor* tensor : step.tensors(kGradients)) layers[tensor->name].push_back(tensor);
    for (const auto& [name, tensors] : layers) {
      const StepTensor* jumped = nullptr;
      double factor = 0;
      std::size_t jumps = 0;
      std::size_t known = 0;
      for (const StepTensor* tensor : tensors) {
        const auto norm = tensor->stats[Stat::kL2];
        if (!norm) continue;
        auto& last = last_norms_[{std::string(name), std::string(tensor->worker)}];
        if (last) ++known;
        if (last && *last > 0 && *norm > jump_ * *last) {
          ++jumps;
          jumped = tensor;
          factor = *norm / *last;
        }
        last = *norm;
      }
      if (known < kMinWorkers || jumps != 1) continue;
      findings.add(jumped, factor, jump_,
                   fmt::format("{}: its norm grew {:.3g} times on {}, and on no other of {} workers", printable(name),
                               factor, printable(jumped->worker), known));
    }
  }

  using Key = std::pair<std::string, std::string>;  // name, worker
  std::vector<std::string> collections_, regex_, gradient_collections_;
  double k_mad_;
  std::int64_t patience_;
  double jump_;
  std::map<Key, std::int64_t> in_a_row_;
  std::map<Key, std::optional<double>> last_norms_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "k_mad", 0));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "patience", 1));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "jump", 1));
  return std::unique_ptr<Rule>(std::make_unique<WorkerOutlier>(arguments));
}

}  // namespace

const RuleType kWorkerOutlier = {.name = kName,
                                 .group = "detectors",
                                 .summary = "One worker computes something unlike all others.",
                                 .parameters = kParameters,
                                 .make = make};

}  // namespace tornasole::rules
