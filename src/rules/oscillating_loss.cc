// OscillatingLoss: the loss goes up and down in large strides.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <deque>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/loss_series.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "OscillatingLoss";

constexpr std::array kParameters = {
    kLossCollections,
    kTensorRegex,
    Parameter{"window", ParameterType::kInteger, "50", "So many losses are looked at"},
    Parameter{"switch", ParameterType::kNumber, "0.5", "Limit of the share of changes of direction"},
    Parameter{"amplitude", ParameterType::kNumber, "0.03", "Limit of the mean stride / the mean loss"},
};

class OscillatingLoss final : public Rule {
 public:
  explicit OscillatingLoss(const RuleArguments& arguments)
      : series_(arguments),
        window_(static_cast<std::size_t>(arguments.integer("window"))),
        switch_(arguments.number("switch")),
        amplitude_(arguments.number("amplitude")) {}

  std::vector<Need> needs() const override { return {series_.need()}; }

  void look_at(const StepView& step, Findings& findings) override {
    series_.look_at(step, findings, [&](const StepTensor& loss, double value, std::deque<double>& window) {
      window.push_back(value);
      if (window.size() > window_) window.pop_front();
      if (window.size() == window_) judge(loss, window, findings);
    });
  }

  void reset() override { series_.clear(); }

 private:
  void judge(const StepTensor& loss, const std::deque<double>& window, Findings& findings) const {
    double mean = window[0];
    double strides = 0;
    double last = 0;  // the last stride that was one
    std::int64_t changes = 0;
    std::int64_t pairs = 0;
    for (std::size_t i = 1; i < window.size(); ++i) {
      mean += window[i];
      const double stride = window[i] - window[i - 1];
      strides += std::fabs(stride);
      if (stride == 0) continue;
      if (last != 0) {
        ++pairs;
        if ((stride > 0) != (last > 0)) ++changes;
      }
      last = stride;
    }
    mean /= static_cast<double>(window.size());
    strides /= static_cast<double>(window.size() - 1);
    const double share = pairs == 0 ? 0 : static_cast<double>(changes) / static_cast<double>(pairs);
    if (!(share > switch_) || !(strides / std::fabs(mean) > amplitude_)) return;
    findings.add(
        &loss, share, switch_,
        fmt::format("{}: turns at a share of {:.3g} of the last {} losses, in strides of {:.3g} times the mean",
                    printable(loss.name), share, window.size(), strides / std::fabs(mean)));
  }

  LossSeries<std::deque<double>> series_;
  std::size_t window_;
  double switch_, amplitude_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "window", 3));
  TORNASOLE_CHECK(check_range(kName, arguments, "switch", 0, 1));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "amplitude", 0));
  return std::unique_ptr<Rule>(std::make_unique<OscillatingLoss>(arguments));
}

}  // namespace

const RuleType kOscillatingLoss = {.name = kName,
                                   .group = "detectors",
                                   .summary = "The loss goes up and down in large strides, as with too large steps.",
                                   .parameters = kParameters,
                                   .make = make};

}  // namespace tornasole::rules
