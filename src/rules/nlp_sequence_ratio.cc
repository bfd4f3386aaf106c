// NLPSequenceRatio: too many tokens of the input sequences are padding, unknown, or whatever was named.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"tensor_regex", ParameterType::kList, ".*embedding0_input_0",
              "Patterns for the names of the input sequences"},
    Parameter{"token_values", ParameterType::kNumbers, "0", "Tokens to count"},
    Parameter{"token_thresholds_percent", ParameterType::kNumbers, "50",
              "For each of them, the percentage that it may have"},
};

class NlpSequenceRatio final : public Rule {
 public:
  explicit NlpSequenceRatio(const RuleArguments& arguments)
      : regex_(arguments.list("tensor_regex")),
        tokens_(arguments.numbers("token_values")),
        thresholds_(arguments.numbers("token_thresholds_percent")) {}

  std::vector<Need> needs() const override {
    return {{.regex = regex_, .exclude_regex = exclude_statistics(regex_), .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* sequence : step.tensors()) {
      const Tensor* value = numeric_value(*sequence, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      std::vector<std::int64_t> counts(tokens_.size(), 0);
      for_each_number(*value, [&](double token) {
        for (std::size_t i = 0; i < tokens_.size(); ++i) counts[i] += token == tokens_[i] ? 1 : 0;
        return true;
      });
      for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const double percent = 100.0 * static_cast<double>(counts[i]) / static_cast<double>(value->element_count());
        if (percent > thresholds_[i]) {
          findings.add(sequence, percent, thresholds_[i],
                       fmt::format("{}: {:g} % of the tokens are {:g}, more than {:g} %", printable(sequence->name),
                                   percent, tokens_[i], thresholds_[i]));
        }
      }
    }
  }

  void reset() override {}

 private:
  std::vector<std::string> regex_;
  std::vector<double> tokens_, thresholds_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  const std::size_t tokens = arguments.numbers("token_values").size();
  const std::size_t thresholds = arguments.numbers("token_thresholds_percent").size();
  if (tokens != thresholds) {
    return invalid_error(
        "rule NLPSequenceRatio: token_values has {} numbers and token_thresholds_percent has {}; it must be as many",
        tokens, thresholds);
  }
  return std::unique_ptr<Rule>(std::make_unique<NlpSequenceRatio>(arguments));
}

}  // namespace

const RuleType kNlpSequenceRatio = {
    .name = "NLPSequenceRatio",
    .group = "applications",
    .summary = "Too many tokens of the input sequences are padding, unknown, or others that were named.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
