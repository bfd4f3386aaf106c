// ActivationOutlier: a few activations are far larger than all others.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/model_roles.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    kCollectionNames,
    Parameter{"tensor_regex", ParameterType::kList, kOutputRegex, "Patterns for the names of outputs of layers"},
    Parameter{"abs", ParameterType::kNumber, "100", "An outlier is larger than this"},
    Parameter{"ratio", ParameterType::kNumber, "1000", "And larger than this many times the median magnitude"},
    Parameter{"kurtosis", ParameterType::kNumber, "",
              "If given: a larger mean kurtosis over the last axis meets the condition too"},
};

// The mean over all runs along the last axis of their fourth standardised moment; runs without variance left out.
double mean_kurtosis(const Tensor& value) {
  const Shape& shape = value.shape();
  const auto run = static_cast<std::size_t>(shape.rank() == 0 ? 1 : shape[shape.rank() - 1]);
  const std::vector<double> numbers = to_doubles(value);
  double sum = 0;
  std::int64_t runs = 0;
  for (std::size_t at = 0; at < numbers.size(); at += run) {
    const std::span<const double> row(numbers.data() + at, run);
    double mean = 0;
    for (const double x : row) mean += x / static_cast<double>(run);
    double second = 0;
    double fourth = 0;
    for (const double x : row) {
      const double square = (x - mean) * (x - mean);
      second += square / static_cast<double>(run);
      fourth += square * square / static_cast<double>(run);
    }
    if (second == 0) continue;
    sum += fourth / (second * second);
    ++runs;
  }
  return sum / static_cast<double>(runs);
}

class ActivationOutlier final : public Rule {
 public:
  explicit ActivationOutlier(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)), abs_(arguments.number("abs")), ratio_(arguments.number("ratio")) {
    exclude_ = exclude_statistics(choice_.regex);
    if (!arguments.is_given("tensor_regex")) exclude_.emplace_back(kLossRegex);
    if (arguments.has("kurtosis")) kurtosis_ = arguments.number("kurtosis");
  }

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_,
             .stats = {Stat::kAbsMax, Stat::kAbsMedian},
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* output : step.tensors()) {
      const Tensor* value = numeric_value(*output, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      const double largest = output->stats[Stat::kAbsMax].value_or(0);
      const double limit = std::max(abs_, ratio_ * output->stats[Stat::kAbsMedian].value_or(0));
      if (largest > limit) {
        findings.add(output, largest, limit,
                     fmt::format("{}: the largest magnitude is {:g}, the median {:g}; {}", printable(output->name),
                                 largest, *output->stats[Stat::kAbsMedian], places_of(*output, limit)));
      } else if (kurtosis_) {
        const double kurtosis = mean_kurtosis(*value);
        if (kurtosis > *kurtosis_) {
          findings.add(
              output, kurtosis, *kurtosis_,
              fmt::format("{}: mean kurtosis {:g} is above {:g}", printable(output->name), kurtosis, *kurtosis_));
        }
      }
    }
  }

  void reset() override { known_.clear(); }

 private:
  // Where along the last axis the outliers are, and whether they were there before. The same few places at every step
  // belong to the model.
  std::string places_of(const StepTensor& output, double limit) {
    const Shape& shape = output.value->shape();
    const std::int64_t run = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
    std::set<std::int64_t>& known = known_.of(output);
    std::set<std::int64_t> found;
    std::int64_t at = 0;
    for_each_number(*output.value, [&](double x) {
      if (std::fabs(x) > limit && found.size() < kMaxPlaces) found.insert(at % run);
      ++at;
      return true;
    });
    const auto is_new = [&](std::int64_t place) { return !known.contains(place); };
    const bool has_new = std::ranges::any_of(found, is_new);
    const std::string_view word = known.empty() ? "at" : has_new ? "at new places along the last axis:" : "again at";
    if (known.size() < kMaxPlaces) known.insert(found.begin(), found.end());
    return fmt::format("{} {}", word, fmt::join(found, ", "));
  }

  static constexpr std::size_t kMaxPlaces = 16;
  TensorChoice choice_;
  std::vector<std::string> exclude_;
  double abs_, ratio_;
  std::optional<double> kurtosis_;
  TensorStates<std::set<std::int64_t>> known_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  return std::unique_ptr<Rule>(std::make_unique<ActivationOutlier>(arguments));
}

}  // namespace

const RuleType kActivationOutlier = {.name = "ActivationOutlier",
                                     .group = "detectors",
                                     .summary = "A few activations are far larger than all others.",
                                     .parameters = kParameters,
                                     .make = make};

}  // namespace tornasole::rules
