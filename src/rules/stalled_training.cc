// StalledTrainingRule: a run that has not ended saved nothing for too long.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/json.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "StalledTrainingRule";

constexpr std::array kParameters = {
    Parameter{"threshold", ParameterType::kInteger, "1800", "Seconds without a new step that are too long"},
    Parameter{"stop_training_on_fire", ParameterType::kFlag, "False", "Ask the training to stop"},
    Parameter{"training_job_name_prefix", ParameterType::kText, "", "Only if the run's name begins like this"},
};

class StalledTraining final : public Rule {
 public:
  explicit StalledTraining(const RuleArguments& arguments)
      : threshold_s_(static_cast<double>(arguments.integer("threshold"))) {
    if (!arguments.flag("stop_training_on_fire")) return;
    JsonWriter(&action_)
        .begin_object()
        .key("name")
        .value("stoptraining")
        .key("training_job_prefix")
        .value(arguments.text("training_job_name_prefix"))
        .end_object();
  }

  std::vector<Need> needs() const override { return {}; }
  void look_at(const StepView& /*step*/, Findings& /*findings*/) override {}

  void look_at_pause(const Pause& pause, Findings& findings) override {
    if (!last_news_s_ || pause.has_new_steps) last_news_s_ = pause.now_s;
    findings.count_datapoint();
    const double silent_s = pause.now_s - *last_news_s_;
    if (pause.has_ended || silent_s < threshold_s_) return;
    findings.add(nullptr, silent_s, threshold_s_,
                 fmt::format("nothing new for {:.0f} s; the last step is {}", silent_s, pause.last_step));
  }

  Pace pace() const override {
    constexpr double kLongest = 10;
    return {.poll_s = std::min(threshold_s_ / 10, kLongest), .patience_s = threshold_s_};
  }
  std::string action() const override { return action_; }
  void reset() override { last_news_s_.reset(); }

 private:
  double threshold_s_;
  std::string action_;
  std::optional<double> last_news_s_ = {};
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "threshold", 1));
  return std::unique_ptr<Rule>(std::make_unique<StalledTraining>(arguments));
}

}  // namespace

const RuleType kStalledTraining = {.name = kName,
                                   .group = "universal",
                                   .summary = "The run saves nothing any more although it has not ended.",
                                   .parameters = kParameters,
                                   .make = make};

}  // namespace tornasole::rules
