// PoorWeightInitialization: the first steps show activations out of proportion, gradients that are all alike, or a loss
// that does not fall.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_numbers.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"activation_inputs_regex", ParameterType::kList, ".*relu_input",
              "Patterns for the names of the inputs of activations"},
    Parameter{"threshold", ParameterType::kNumber, "10.0",
              "How many times the largest variance of an activation input may be the smallest"},
    Parameter{"distribution_range", ParameterType::kNumber, "0.001",
              "The least distance between the 5th and the 95th percentile of a gradient"},
    Parameter{"patience", ParameterType::kInteger, "5", "How many steps the loss may go without a new best"},
    Parameter{"steps", ParameterType::kInteger, "10", "Only so many first steps are looked at"},
    Parameter{"combine", ParameterType::kText, "any", "any: one sign is enough; all: every sign there is data for"},
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kLeastGradient = 20;  // elements: fewer have no percentiles

// One of the three signs at a step of one worker.
struct Sign {
  const StepTensor* tensor = nullptr;
  double value = 0, threshold = 0;
  bool is_met = false;
  std::string message = {};
};

class PoorWeightInitialization final : public Rule {
 public:
  explicit PoorWeightInitialization(const RuleArguments& arguments)
      : regex_(arguments.list("activation_inputs_regex")),
        threshold_(arguments.number("threshold")),
        range_(arguments.number("distribution_range")),
        patience_(arguments.integer("patience")),
        steps_(arguments.integer("steps")),
        demands_all_(arguments.text("combine") == "all") {}

  std::vector<Need> needs() const override {
    return {{.regex = regex_, .exclude_regex = exclude_statistics(regex_), .stats = {Stat::kVariance}, .value = true},
            {.collections = {"gradients"}, .value = true},
            {.collections = {"losses"}, .stats = {Stat::kMean}, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (seen_ >= steps_ || !is_training_step(step)) return;
    std::map<std::string_view, std::vector<Sign>> by_worker;
    bool has_read = false;
    for (std::size_t need = 0; need < 3; ++need) {
      std::map<std::string_view, std::vector<const StepTensor*>> tensors;
      for (const StepTensor* tensor : step.tensors(need)) {
        if (numeric_value(*tensor, findings) != nullptr) tensors[tensor->worker].push_back(tensor);
      }
      for (const auto& [worker, own] : tensors) {
        auto sign = need == 0 ? spread_of(own) : need == 1 ? narrowest_of(own) : loss_of(worker, own);
        for (std::size_t i = 0; i < own.size(); ++i) findings.count_datapoint();
        has_read = true;
        if (sign) by_worker[worker].push_back(std::move(*sign));
      }
    }
    if (has_read) ++seen_;
    for (const auto& [worker, signs] : by_worker) {
      if (demands_all_ && !std::ranges::all_of(signs, &Sign::is_met)) continue;
      for (const Sign& sign : signs) {
        if (sign.is_met) findings.add(sign.tensor, sign.value, sign.threshold, sign.message);
      }
    }
  }

  void reset() override {
    seen_ = 0;
    losses_.clear();
  }

 private:
  struct Losses {
    double best = kInfinity;
    std::int64_t since_best = 0;
    bool has_best = false;
  };

  std::optional<Sign> spread_of(const std::vector<const StepTensor*>& inputs) const {
    const StepTensor* lowest = nullptr;
    const StepTensor* highest = nullptr;
    double low = 0;
    double high = 0;
    int count = 0;
    for (const StepTensor* input : inputs) {
      const auto variance = input->stats[Stat::kVariance];
      if (!variance || std::isnan(*variance)) continue;
      ++count;
      if (lowest == nullptr || *variance < low) {
        lowest = input;
        low = *variance;
      }
      if (highest == nullptr || *variance > high) {
        highest = input;
        high = *variance;
      }
    }
    if (count < 2) return std::nullopt;
    if (high == 0) {
      return Sign{lowest, 0, threshold_, true, fmt::format("the variance of all {} activation inputs is 0", count)};
    }
    const double ratio = low == 0 ? kInfinity : high / low;
    return Sign{highest, ratio, threshold_, ratio > threshold_,
                fmt::format("the variance of {} ({:g}) is {:g} times that of {} ({:g}), more than {:g} times",
                            printable(highest->name), high, ratio, printable(lowest->name), low, threshold_)};
  }

  std::optional<Sign> narrowest_of(const std::vector<const StepTensor*>& gradients) const {
    const StepTensor* narrowest = nullptr;
    double least = 0;
    for (const StepTensor* gradient : gradients) {
      if (gradient->value->element_count() < kLeastGradient) continue;
      std::vector<double> numbers = to_doubles(*gradient->value);
      const double low = quantile(numbers, 0.05);
      const double range = quantile(numbers, 0.95) - low;
      if (std::isnan(range)) continue;
      if (narrowest == nullptr || range < least) {
        narrowest = gradient;
        least = range;
      }
    }
    if (narrowest == nullptr) return std::nullopt;
    return Sign{narrowest, least, range_, least < range_,
                fmt::format("{}: the 5th and the 95th percentile are {:g} apart, less than {:g}",
                            printable(narrowest->name), least, range_)};
  }

  std::optional<Sign> loss_of(std::string_view worker, const std::vector<const StepTensor*>& losses) {
    double sum = 0;
    std::int64_t count = 0;
    for (const StepTensor* loss : losses) {
      const auto number = loss->scalar();
      if (!number) continue;
      sum += *number;
      ++count;
    }
    const double mean = sum / static_cast<double>(count);  // of none: NaN
    if (std::isnan(mean)) return std::nullopt;
    Losses& kept = losses_[std::string(worker)];
    if (!kept.has_best || mean < kept.best) {
      kept = {.best = mean, .since_best = 0, .has_best = true};
    } else {
      ++kept.since_best;
    }
    return Sign{losses.front(), static_cast<double>(kept.since_best), static_cast<double>(patience_),
                kept.since_best >= patience_,
                fmt::format("the loss is {:g}; its best was {:g}, {} steps before", mean, kept.best, kept.since_best)};
  }

  std::vector<std::string> regex_;
  double threshold_, range_;
  std::int64_t patience_, steps_;
  bool demands_all_;
  std::int64_t seen_ = 0;                 // steps at which anything was read
  std::map<std::string, Losses> losses_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 2> kCombinations = {"any", "all"};
  TORNASOLE_CHECK(check_word("PoorWeightInitialization", arguments, "combine", kCombinations));
  return std::unique_ptr<Rule>(std::make_unique<PoorWeightInitialization>(arguments));
}

}  // namespace

const RuleType kPoorWeightInitialization = {
    .name = "PoorWeightInitialization",
    .group = "deep learning",
    .summary = "The first steps show a bad initialisation: uneven activations, narrow gradients or a loss that stays.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
