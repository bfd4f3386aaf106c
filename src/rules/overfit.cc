// Overfit: the validation loss lies above the training loss by more than a share of it, and stays there.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/loss_roles.h"
#include "rules/scalar_values.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "Overfit";

constexpr std::array kParameters = {
    Parameter{"tensor_regex", ParameterType::kList, "",
              "Patterns for the names of the losses; without: the collection losses"},
    Parameter{"start_step", ParameterType::kInteger, "0", "Earlier steps are not judged"},
    Parameter{"patience", ParameterType::kInteger, "1", "How many evaluations in a row must be above the threshold"},
    Parameter{"ratio_threshold", ParameterType::kNumber, "0.1",
              "Limit of (validation loss - training loss) / training loss"},
};

class Overfit final : public Rule {
 public:
  explicit Overfit(const RuleArguments& arguments)
      : regex_(arguments.list("tensor_regex")),
        start_step_(arguments.integer("start_step")),
        patience_(arguments.integer("patience")),
        threshold_(arguments.number("ratio_threshold")) {}

  std::vector<Need> needs() const override {
    if (regex_.empty()) return {scalar_need({"losses"}, {})};
    return {scalar_need({}, regex_)};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const auto& [worker, losses] : LossRoles::split(step, findings)) {
      State& state = states_[worker];
      const auto pair = state.means.add(step, losses);
      if (!pair || pair->training == 0 || step.global_step().number < start_step_) continue;
      const double ratio = (pair->validation - pair->training) / std::fabs(pair->training);
      if (!(ratio > threshold_)) {
        state.counter = 0;
        continue;
      }
      ++state.counter;
      if (state.counter < patience_) continue;
      findings.add(nullptr, ratio, threshold_,
                   fmt::format("{}: validation loss {:g} is {:.4g} times the training loss {:g} above it, for {} "
                               "evaluations; limit {:g}",
                               printable(worker), pair->validation, ratio, pair->training, state.counter, threshold_));
    }
  }

  void reset() override { states_.clear(); }

 private:
  struct State {
    EvaluationMeans means = {};
    std::int64_t counter = 0;
  };

  std::vector<std::string> regex_;
  std::int64_t start_step_, patience_;
  double threshold_;
  std::map<std::string, State, std::less<>> states_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "patience", 1));
  return std::unique_ptr<Rule>(std::make_unique<Overfit>(arguments));
}

}  // namespace

const RuleType kOverfit = {
    .name = kName,
    .group = "universal",
    .summary = "The validation loss has left the training loss behind: the model learns by heart.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
