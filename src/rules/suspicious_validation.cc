// SuspiciousValidation: validation goes better than it can without help.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/loss_roles.h"
#include "rules/scalar_values.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "SuspiciousValidation";

constexpr std::array kParameters = {
    Parameter{"tensor_regex", ParameterType::kList, "(?i)acc", "Patterns for the names of the accuracies"},
    Parameter{"skip_evals", ParameterType::kInteger, "3", "So many evaluations are not judged"},
    Parameter{"ceiling", ParameterType::kNumber, "0.95", "A better accuracy in validation is worth a warning"},
    Parameter{"gap", ParameterType::kNumber, "0.05", "Limit of validation accuracy - training accuracy"},
};

class SuspiciousValidation final : public Rule {
 public:
  explicit SuspiciousValidation(const RuleArguments& arguments)
      : regex_(arguments.list("tensor_regex")),
        skip_evals_(arguments.integer("skip_evals")),
        ceiling_(arguments.number("ceiling")),
        gap_(arguments.number("gap")) {}

  std::vector<Need> needs() const override { return {scalar_need({}, regex_)}; }

  void look_at(const StepView& step, Findings& findings) override {
    for (const auto& [worker, accuracies] : LossRoles::split(step, findings)) {
      State& state = states_[worker];
      const auto pair = state.means.add(step, accuracies);
      if (!pair) continue;
      if (pair->begins) ++state.evaluations;
      if (state.evaluations <= skip_evals_) continue;
      if (pair->validation - pair->training > gap_) {
        findings.add(nullptr, pair->validation - pair->training, gap_,
                     fmt::format("{}: validation accuracy {:g} is above training accuracy {:g} by more than {:g}",
                                 printable(worker), pair->validation, pair->training, gap_));
      } else if (pair->validation > ceiling_) {
        findings.add(nullptr, pair->validation, ceiling_,
                     fmt::format("{}: warning only: validation accuracy {:g} is above {:g}", printable(worker),
                                 pair->validation, ceiling_));
      }
    }
  }

  void reset() override { states_.clear(); }

 private:
  struct State {
    EvaluationMeans means = {};
    std::int64_t evaluations = 0;
  };

  std::vector<std::string> regex_;
  std::int64_t skip_evals_;
  double ceiling_, gap_;
  std::map<std::string, State, std::less<>> states_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "skip_evals", 0));
  return std::unique_ptr<Rule>(std::make_unique<SuspiciousValidation>(arguments));
}

}  // namespace

const RuleType kSuspiciousValidation = {
    .name = kName,
    .group = "detectors",
    .summary = "Validation goes suspiciously well: labels may leak, or the sets overlap.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
