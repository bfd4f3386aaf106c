// LossSpike: a loss jumps out of those before it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/loss_series.h"
#include "rules/spike_detector.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "LossSpike";
constexpr std::array<std::string_view, 3> kMethods = {"sigma", "max", "mad"};

constexpr std::array kParameters = {
    kLossCollections,
    kTensorRegex,
    kSpikeWindow,
    kSpikeMinPoints,
    kSpikeSigma,
    kSpikeFloor,
    Parameter{"method", ParameterType::kText, "sigma",
              "sigma: deviations from the mean; max: ten times the first values; mad: robust deviations"},
};

class LossSpike final : public Rule {
 public:
  LossSpike(const RuleArguments& arguments, SpikeOptions options) : series_(arguments), options_(options) {}

  std::vector<Need> needs() const override { return {series_.need()}; }

  void look_at(const StepView& step, Findings& findings) override {
    series_.look_at(step, findings, [&](const StepTensor& loss, double value, SpikeDetector& detector) {
      const auto limit = detector.look_at(value, options_);
      if (!limit) return;
      findings.add(&loss, value, *limit,
                   fmt::format("{}: {:g} is a spike; limit {:g}", printable(loss.name), value, *limit));
    });
  }

  // The worst of all workers and modes, by tensor.
  std::map<std::string, std::string> details() const override {
    std::map<std::string, double> scores;
    for (const auto& [key, detector] : series_.states()) {
      double& score = scores[std::get<0>(key)];
      score = std::max(score, detector.score());
    }
    std::string text;
    JsonWriter json(&text);
    json.begin_object();
    for (const auto& [name, score] : scores) json.key(name).value(score);
    json.end_object();
    return {{"spike_score", text}};
  }

  void reset() override { series_.clear(); }

 private:
  LossSeries<SpikeDetector> series_;
  SpikeOptions options_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_TRY(const SpikeOptions options, spike_options(kName, arguments, kMethods));
  return std::unique_ptr<Rule>(std::make_unique<LossSpike>(arguments, options));
}

}  // namespace

const RuleType kLossSpike = {.name = kName,
                             .group = "detectors",
                             .summary = "A loss jumps far above the values before it.",
                             .parameters = kParameters,
                             .make = make};

}  // namespace tornasole::rules
