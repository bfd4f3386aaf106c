// Plateau: over many steps the loss has hardly fallen.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <deque>
#include <limits>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/loss_series.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "Plateau";

constexpr std::array kParameters = {
    kLossCollections,
    kTensorRegex,
    Parameter{"window", ParameterType::kInteger, "200", "The halves of so many losses are compared"},
    Parameter{"min_improve", ParameterType::kNumber, "0.001", "The second must be lower by this share of the first"},
    Parameter{"target", ParameterType::kNumber, "", "A loss below it may stay where it is"},
};

class Plateau final : public Rule {
 public:
  explicit Plateau(const RuleArguments& arguments)
      : series_(arguments),
        window_(static_cast<std::size_t>(arguments.integer("window"))),
        min_improve_(arguments.number("min_improve")),
        target_(arguments.has("target") ? arguments.number("target") : -std::numeric_limits<double>::infinity()) {}

  std::vector<Need> needs() const override { return {series_.need()}; }

  void look_at(const StepView& step, Findings& findings) override {
    series_.look_at(step, findings, [&](const StepTensor& loss, double value, std::deque<double>& window) {
      window.push_back(value);
      if (window.size() > window_) window.pop_front();
      if (window.size() < window_ || value < target_) return;
      const std::size_t half = window_ / 2;
      double first = 0;
      double second = 0;
      for (std::size_t i = 0; i < half; ++i) first += window[i] / static_cast<double>(half);
      for (std::size_t i = half; i < window_; ++i) second += window[i] / static_cast<double>(window_ - half);
      const double improvement = (first - second) / std::fabs(first);
      if (!(improvement < min_improve_)) return;
      findings.add(&loss, improvement, min_improve_,
                   fmt::format("{}: the mean of the last {} losses is {:g}, that of the {} before {:g}",
                               printable(loss.name), window_ - half, second, half, first));
    });
  }

  void reset() override { series_.clear(); }

 private:
  LossSeries<std::deque<double>> series_;
  std::size_t window_;
  double min_improve_, target_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "window", 2));
  return std::unique_ptr<Rule>(std::make_unique<Plateau>(arguments));
}

}  // namespace

const RuleType kPlateau = {.name = kName,
                           .group = "detectors",
                           .summary = "The loss has stopped falling.",
                           .parameters = kParameters,
                           .make = make};

}  // namespace tornasole::rules
