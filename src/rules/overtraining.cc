// Overtraining: neither training nor validation loss improves any more.

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

constexpr std::string_view kName = "Overtraining";
constexpr std::array<std::string_view, 2> kCombinations = {"all", "any"};

constexpr std::array kParameters = {
    Parameter{"patience_train", ParameterType::kInteger, "5", "Training losses without improvement that are too many"},
    Parameter{"patience_validation", ParameterType::kInteger, "10",
              "Validation losses without improvement that are too many"},
    Parameter{"delta", ParameterType::kNumber, "0.01", "A loss lower by more than this is an improvement"},
    Parameter{"combine", ParameterType::kText, "all", "all: both patiences must be used up; any: one of them"},
};

class Overtraining final : public Rule {
 public:
  explicit Overtraining(const RuleArguments& arguments)
      : patience_train_(arguments.integer("patience_train")),
        patience_validation_(arguments.integer("patience_validation")),
        delta_(arguments.number("delta")),
        needs_one_only_(arguments.text("combine") == "any") {}

  std::vector<Need> needs() const override { return {scalar_need({"losses"}, {})}; }

  void look_at(const StepView& step, Findings& findings) override {
    for (const auto& [worker, losses] : LossRoles::split(step, findings)) {
      State& state = states_[worker];
      const bool has_training = note(losses.training, &state.training, findings);
      const bool has_validation = note(losses.validation, &state.validation, findings);
      if (!has_training && !has_validation) continue;
      const bool train_is_over = state.training.best && state.training.since >= patience_train_;
      const bool validation_is_over = state.validation.best && state.validation.since >= patience_validation_;
      const bool is_met = needs_one_only_         ? train_is_over || validation_is_over
                          : state.validation.best ? train_is_over && validation_is_over
                                                  : train_is_over;
      if (!is_met) continue;
      findings.add(nullptr, static_cast<double>(state.training.since), static_cast<double>(patience_train_),
                   fmt::format("{}: {} training and {} validation losses since the last improvement by more than {:g}",
                               printable(worker), state.training.since, state.validation.since, delta_));
    }
  }

  void reset() override { states_.clear(); }

 private:
  struct Series {
    std::optional<double> best = {};
    std::int64_t since = 0;
  };
  struct State {
    Series training = {}, validation = {};
  };

  bool note(std::optional<double> loss, Series* series, Findings& findings) const {
    if (!loss) return false;
    if (std::isnan(*loss)) {
      findings.skip("NaN");
      return false;
    }
    if (!series->best || *loss < *series->best - delta_) {
      series->best = loss;
      series->since = 0;
    } else {
      ++series->since;
    }
    return true;
  }

  std::int64_t patience_train_, patience_validation_;
  double delta_;
  bool needs_one_only_;
  std::map<std::string, State, std::less<>> states_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "patience_train", 1));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "patience_validation", 1));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "delta", 0));
  TORNASOLE_CHECK(check_word(kName, arguments, "combine", kCombinations));
  return std::unique_ptr<Rule>(std::make_unique<Overtraining>(arguments));
}

}  // namespace

const RuleType kOvertraining = {.name = kName,
                                .group = "universal",
                                .summary = "No loss improves any more: further training is wasted or does harm.",
                                .parameters = kParameters,
                                .make = make};

}  // namespace tornasole::rules
