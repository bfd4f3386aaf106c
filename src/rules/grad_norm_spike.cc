// GradNormSpike: the norm of all gradients together jumps out of those before it.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/gradient_norm.h"
#include "rules/spike_detector.h"
#include "rules/tensor_choice.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "GradNormSpike";
constexpr std::array<std::string_view, 4> kMethods = {"sigma", "max", "mad", "ema"};

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "gradients", "Collections with the gradients"},
    kTensorRegex,
    kSpikeWindow,
    kSpikeMinPoints,
    kSpikeSigma,
    kSpikeFloor,
    Parameter{"method", ParameterType::kText, "sigma",
              "sigma: deviations from the mean; max: ten times the first values; mad: robust deviations; ema: "
              "deviations from an exponential mean"},
    Parameter{"alpha", ParameterType::kNumber, "0.97", "How much of the exponential mean stays at each step"},
    Parameter{"z", ParameterType::kNumber, "2.5", "A spike lies so many deviations above the exponential mean"},
    Parameter{"warmup", ParameterType::kInteger, "25", "The exponential mean judges nothing before so many steps"},
};

class GradNormSpike final : public Rule {
 public:
  GradNormSpike(const RuleArguments& arguments, SpikeOptions options)
      : choice_(choose_tensors(arguments)), options_(options) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections, .regex = choice_.regex, .stats = {Stat::kL2}}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const auto& [worker, norm] : gradient_norms(step.tensors())) {
      if (!norm || !std::isfinite(*norm)) {
        findings.skip(norm ? "not finite" : "no l2");
        continue;
      }
      findings.count_datapoint();
      const auto limit = detectors_[std::string(worker)].look_at(*norm, options_);
      if (!limit) continue;
      findings.add(
          nullptr, *norm, *limit,
          fmt::format("{}: the norm of all gradients, {:g}, is a spike; limit {:g}", printable(worker), *norm, *limit));
    }
  }

  std::map<std::string, std::string> details() const override {
    std::string text;
    JsonWriter json(&text);
    json.begin_object();
    for (const auto& [worker, detector] : detectors_) json.key(worker).value(detector.score());
    json.end_object();
    return {{"spike_score", text}};
  }

  void reset() override { detectors_.clear(); }

 private:
  TensorChoice choice_;
  SpikeOptions options_;
  std::map<std::string, SpikeDetector, std::less<>> detectors_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_TRY(const SpikeOptions options, spike_options(kName, arguments, kMethods));
  return std::unique_ptr<Rule>(std::make_unique<GradNormSpike>(arguments, options));
}

}  // namespace

const RuleType kGradNormSpike = {.name = kName,
                                 .group = "detectors",
                                 .summary = "The gradients together are suddenly far larger than before.",
                                 .parameters = kParameters,
                                 .make = make};

}  // namespace tornasole::rules
