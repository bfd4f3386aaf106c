// LossDivergence: the loss is a multiple of what it was at its best.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/loss_series.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "LossDivergence";

constexpr std::array kParameters = {
    kLossCollections,
    kTensorRegex,
    Parameter{"window", ParameterType::kInteger, "5", "Means of so many losses are compared"},
    Parameter{"factor", ParameterType::kNumber, "2", "Limit of the mean now / the smallest mean so far"},
};

struct State {
  std::deque<double> window = {};
  double smallest = std::numeric_limits<double>::infinity();
};

class LossDivergence final : public Rule {
 public:
  explicit LossDivergence(const RuleArguments& arguments)
      : series_(arguments),
        window_(static_cast<std::size_t>(arguments.integer("window"))),
        factor_(arguments.number("factor")) {}

  std::vector<Need> needs() const override { return {series_.need()}; }

  void look_at(const StepView& step, Findings& findings) override {
    series_.look_at(step, findings, [&](const StepTensor& loss, double value, State& state) {
      state.window.push_back(value);
      if (state.window.size() > window_) state.window.pop_front();
      if (state.window.size() < window_) return;
      double mean = 0;
      for (const double own : state.window) mean += own / static_cast<double>(window_);
      state.smallest = std::min(state.smallest, mean);
      // A multiple says nothing about losses around zero or below.
      if (!(state.smallest > 0) || !(mean > factor_ * state.smallest)) return;
      findings.add(&loss, mean, factor_ * state.smallest,
                   fmt::format("{}: the mean of the last {} losses is {:g}; its smallest was {:g}",
                               printable(loss.name), window_, mean, state.smallest));
    });
  }

  void reset() override { series_.clear(); }

 private:
  LossSeries<State> series_;
  std::size_t window_;
  double factor_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "window", 1));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "factor", 1));
  return std::unique_ptr<Rule>(std::make_unique<LossDivergence>(arguments));
}

}  // namespace

const RuleType kLossDivergence = {.name = kName,
                                  .group = "detectors",
                                  .summary = "The loss has risen to a multiple of its best: the training diverges.",
                                  .parameters = kParameters,
                                  .make = make};

}  // namespace tornasole::rules
