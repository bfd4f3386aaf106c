// RankCollapse: a matrix uses ever fewer of its directions.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/effective_rank.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "weights", "Collections with the matrices"},
    kTensorRegex,
    Parameter{"measure", ParameterType::kText, "effective", "effective, stable or srank"},
    Parameter{"drop", ParameterType::kNumber, "0.5", "A rank below this part of its first value has collapsed"},
    Parameter{"floor", ParameterType::kNumber, "0.02", "And one below this part of the smaller side of the matrix"},
    Parameter{"delta", ParameterType::kNumber, "0.01",
              "srank: the part of the sum of singular values that may be left out"},
    Parameter{"max_rows", ParameterType::kInteger, "256",
              "Of larger matrices so many rows are looked at, always the same"},
};

enum class Measure : std::uint8_t { kEffective, kStable, kSrank };

double rank_of(const std::vector<double>& values, Measure measure, double delta) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum == 0) return 0;
  switch (measure) {
    case Measure::kStable: {
      double squares = 0;
      for (const double value : values) squares += (value / values[0]) * (value / values[0]);
      return squares;
    }
    case Measure::kSrank: {
      double part = 0;
      std::size_t k = 0;
      while (k < values.size() && part < (1 - delta) * sum) part += values[k++];
      return static_cast<double>(k);
    }
    case Measure::kEffective: break;
  }
  return effective_rank(values);
}

class RankCollapse final : public Rule {
 public:
  RankCollapse(const RuleArguments& arguments, Measure measure)
      : choice_(choose_tensors(arguments)),
        measure_(measure),
        drop_(arguments.number("drop")),
        floor_(arguments.number("floor")),
        delta_(arguments.number("delta")),
        max_rows_(static_cast<std::size_t>(arguments.integer("max_rows"))) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* matrix : step.tensors()) {
      const Tensor* value = numeric_value(*matrix, findings);
      if (value == nullptr) continue;
      if (value->shape().rank() != 2) {
        findings.skip("not two-dimensional");
        continue;
      }
      const std::vector<double> values = singular_values_of(*value, max_rows_);
      if (values.empty()) {
        findings.skip("not finite");
        continue;
      }
      findings.count_datapoint();
      judge(*matrix, rank_of(values, measure_, delta_), static_cast<double>(values.size()), findings);
    }
  }

  void reset() override { first_.clear(); }

 private:
  void judge(const StepTensor& matrix, double rank, double largest, Findings& findings) {
    std::optional<double>& first = first_.of(matrix);
    if (!first) first = rank;
    if (rank < drop_ * *first) {
      findings.add(&matrix, rank, drop_ * *first,
                   fmt::format("{}: its rank fell from {:g} to {:g}", printable(matrix.name), *first, rank));
    } else if (rank < floor_ * largest) {
      findings.add(&matrix, rank, floor_ * largest,
                   fmt::format("{}: its rank is {:g} of {:g} possible", printable(matrix.name), rank, largest));
    }
  }

  TensorChoice choice_;
  Measure measure_;
  double drop_, floor_, delta_;
  std::size_t max_rows_;
  TensorStates<std::optional<double>> first_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 3> kMeasures = {"effective", "stable", "srank"};
  TORNASOLE_CHECK(check_word("RankCollapse", arguments, "measure", kMeasures));
  TORNASOLE_CHECK(check_at_least("RankCollapse", arguments, "max_rows", 2));
  const auto* found = std::ranges::find(kMeasures, arguments.text("measure"));
  return std::unique_ptr<Rule>(
      std::make_unique<RankCollapse>(arguments, static_cast<Measure>(found - kMeasures.begin())));
}

}  // namespace

const RuleType kRankCollapse = {.name = "RankCollapse",
                                .group = "detectors",
                                .summary = "A matrix uses ever fewer of its directions.",
                                .parameters = kParameters,
                                .make = make};

}  // namespace tornasole::rules
