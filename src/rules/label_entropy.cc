// LabelEntropy: the labels tell so little that a constant answer nearly suffices.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/class_values.h"
#include "rules/scalar_values.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "LabelEntropy";

constexpr std::array kParameters = {
    Parameter{"labels_regex", ParameterType::kText, ".*labels", "Pattern for the names of the labels"},
    Parameter{"classes", ParameterType::kInteger, "", "Number of classes; without: those seen so far, at least 2"},
    Parameter{"threshold", ParameterType::kNumber, "0.5", "Limit of entropy / ln(classes)"},
    Parameter{"samples", ParameterType::kInteger, "500", "How many labels are judged together"},
};

class LabelEntropy final : public Rule {
 public:
  explicit LabelEntropy(const RuleArguments& arguments)
      : labels_regex_(arguments.text("labels_regex")),
        class_count_(arguments.integer("classes")),
        threshold_(arguments.number("threshold")),
        samples_(arguments.integer("samples")) {}

  std::vector<Need> needs() const override {
    return {{.regex = {labels_regex_}, .exclude_regex = {kDerivedNames}, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const auto& [worker, tensors] : by_worker(step.tensors())) {
      State& state = states_[std::string(worker)];
      for (const StepTensor* tensor : tensors) {
        const Tensor* value = numeric_value(*tensor, findings);
        if (value == nullptr) continue;
        findings.count_datapoint();
        const auto labels = has_scores(value->shape()) ? argmax_classes(*value) : rounded_classes(*value);
        if (labels) count(*labels, &state, findings);
      }
      if (state.samples < samples_) continue;
      judge(worker, state, findings);
      state.samples = 0;
      for (auto& [label, number] : state.classes) number = 0;
    }
  }

  void reset() override { states_.clear(); }

 private:
  struct State {
    std::int64_t samples = 0;
    std::map<double, std::int64_t> classes = {};  // all seen so far; how often since the last judgement
  };

  static void count(const std::vector<double>& labels, State* state, Findings& findings) {
    for (const double label : labels) {
      if (!std::isfinite(label)) {
        findings.skip("label is not finite");
        continue;
      }
      ++state->classes[label + 0.0];  // + 0.0: no negative zero
      ++state->samples;
    }
  }

  void judge(std::string_view worker, const State& state, Findings& findings) const {
    double entropy = 0;
    for (const auto& [label, number] : state.classes) {
      const double share = static_cast<double>(number) / static_cast<double>(state.samples);
      if (share > 0) entropy -= share * std::log(share);
    }
    const auto seen = static_cast<std::int64_t>(state.classes.size());
    const std::int64_t classes = std::max<std::int64_t>(class_count_ > 0 ? class_count_ : seen, 2);
    const double ratio = entropy / std::log(static_cast<double>(classes));
    if (!(ratio < threshold_)) return;
    findings.add(nullptr, ratio, threshold_,
                 fmt::format("{}: the entropy of {} labels is {:.4g} of that of {} equal classes; limit {:g}",
                             printable(worker), state.samples, ratio, classes, threshold_));
  }

  std::string labels_regex_;
  std::int64_t class_count_;
  double threshold_;
  std::int64_t samples_;
  std::map<std::string, State, std::less<>> states_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "classes", 2));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "samples", 1));
  return std::unique_ptr<Rule>(std::make_unique<LabelEntropy>(arguments));
}

}  // namespace

const RuleType kLabelEntropy = {.name = kName,
                                .group = "detectors",
                                .summary = "Nearly all labels are of a few classes.",
                                .parameters = kParameters,
                                .make = make};

}  // namespace tornasole::rules
