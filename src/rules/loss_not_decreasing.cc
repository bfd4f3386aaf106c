// LossNotDecreasing: over a number of steps a loss did not fall by enough, or rose by too much.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <deque>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/scalar_values.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "LossNotDecreasing";
constexpr std::array<std::string_view, 3> kModes = {"EVAL", "TRAIN", "GLOBAL"};

constexpr std::array kParameters = {
    kCollectionNames,
    kTensorRegex,
    Parameter{"use_losses_collection", ParameterType::kFlag, "True", "Look at the collection losses, too"},
    Parameter{"num_steps", ParameterType::kInteger, "10", "Compare with the loss so many steps back, so often"},
    Parameter{"diff_percent", ParameterType::kNumber, "0.1", "The loss must fall by so much, in percent"},
    Parameter{"increase_threshold_percent", ParameterType::kNumber, "5", "A loss that rises may rise by so much"},
    Parameter{"mode", ParameterType::kText, "", "EVAL, TRAIN or GLOBAL; else the first of them that has losses"},
};

class LossNotDecreasing final : public Rule {
 public:
  explicit LossNotDecreasing(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        num_steps_(arguments.integer("num_steps")),
        diff_percent_(arguments.number("diff_percent")),
        increase_percent_(arguments.number("increase_threshold_percent")) {
    is_fallback_allowed_ = choice_.collections.empty() && choice_.regex.empty();
    if (arguments.flag("use_losses_collection")) choice_.collections.emplace_back("losses");
    for (const Mode mode : kAllModes) {
      if (arguments.text("mode") == mode_name(mode)) given_mode_ = mode;
    }
  }

  std::vector<Need> needs() const override {
    Need need = scalar_need(choice_.collections, choice_.regex);
    need.or_everything = is_fallback_allowed_;
    return {need};
  }

  void look_at(const StepView& step, Findings& findings) override {
    const Mode mode = given_mode_.value_or(choose_mode(step.trial()));
    // The losses of every mode are remembered: which one counts may change while a run grows.
    for (const StepTensor* loss : step.tensors()) {
      if (is_fallback_allowed_ && loss->shape && loss->shape->element_count() != 1) continue;
      const auto value = scalar_value(*loss, findings);
      if (!value) continue;
      if (std::isnan(*value)) {
        findings.skip("NaN");
        continue;
      }
      findings.count_datapoint();
      look_at_loss({.mode = Mode::kGlobal, .step = step.global_step().number}, *loss, *value, mode, findings);
      if (step.mode() != Mode::kGlobal) {
        look_at_loss({.mode = step.mode(), .step = step.step().number}, *loss, *value, mode, findings);
      }
    }
  }

  void reset() override { series_.clear(); }

 private:
  struct Point {
    std::int64_t step;
    double loss;
  };
  struct Series {
    std::int64_t last_check = 0;
    std::deque<Point> points = {};  // from the one that was compared with last
  };
  struct Place {
    Mode mode;
    std::int64_t step;
  };

  bool has_losses(const Trial& trial, Mode mode) const {
    std::vector<NameQuery> queries;
    for (const std::string& name : choice_.collections) queries.push_back({.mode = mode, .collection = name});
    if (!choice_.regex.empty()) queries.push_back({.mode = mode, .regex = choice_.regex});
    if (queries.empty() || is_everything_) queries = {{.mode = mode}};
    for (const NameQuery& query : queries) {
      const auto names = trial.tensor_names(query);
      if (names && !names->empty()) return true;
    }
    return false;
  }

  Mode choose_mode(const Trial& trial) {
    if (mode_ && known_token_ == trial.last_index_token()) return *mode_;
    known_token_ = trial.last_index_token();
    is_everything_ = false;
    is_everything_ = is_fallback_allowed_ && !has_losses(trial, Mode::kGlobal);
    mode_ = has_losses(trial, Mode::kEval)    ? Mode::kEval
            : has_losses(trial, Mode::kTrain) ? Mode::kTrain
                                              : Mode::kGlobal;
    return *mode_;
  }

  void look_at_loss(Place at, const StepTensor& tensor, double loss, Mode judged_mode, Findings& findings) {
    Series& series = series_.of(tensor, at.mode);
    if (series.points.empty()) {
      series.last_check = at.step;
    } else if (at.step >= series.last_check + num_steps_) {
      series.last_check = at.step;
      std::deque<Point>& points = series.points;
      while (points.size() > 1 && points[1].step <= at.step - num_steps_) points.pop_front();
      if (at.mode == judged_mode) compare(points.front(), {at.step, loss}, tensor, findings);
    }
    series.points.push_back({at.step, loss});
  }

  void compare(const Point& past, const Point& now, const StepTensor& tensor, Findings& findings) const {
    const double fall = 100 * (past.loss - now.loss) / std::fabs(past.loss);
    const bool has_risen = now.loss > past.loss;
    const bool is_met = past.loss == 0 ? now.loss > 0 : has_risen ? -fall > increase_percent_ : fall < diff_percent_;
    if (!is_met) return;
    findings.add(&tensor, fall, has_risen ? -increase_percent_ : diff_percent_,
                 fmt::format("{}: {:g} at step {}, {:g} at step {}: {} by {:.4g} %, {} by {} {:g} %",
                             printable(tensor.name), past.loss, past.step, now.loss, now.step,
                             has_risen ? "rose" : "fell", std::fabs(fall), has_risen ? "may rise" : "should fall",
                             has_risen ? "at most" : "at least", has_risen ? increase_percent_ : diff_percent_));
  }

  TensorChoice choice_;
  bool is_fallback_allowed_ = false;
  std::int64_t num_steps_;
  double diff_percent_, increase_percent_;
  std::optional<Mode> given_mode_ = {};
  // As of the last refresh of the trial:
  std::optional<Mode> mode_ = {};
  std::string known_token_;
  bool is_everything_ = false;  // there are no losses by name

  TensorStates<Series> series_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "num_steps", 1));
  TORNASOLE_CHECK(check_range(kName, arguments, "diff_percent", 0, 100));
  TORNASOLE_CHECK(check_range(kName, arguments, "increase_threshold_percent", 0, 100));
  TORNASOLE_CHECK(check_word(kName, arguments, "mode", kModes));
  return std::unique_ptr<Rule>(std::make_unique<LossNotDecreasing>(arguments));
}

}  // namespace

const RuleType kLossNotDecreasing = {.name = kName,
                                     .group = "universal",
                                     .summary = "A loss does not fall fast enough, or rises.",
                                     .parameters = kParameters,
                                     .make = make};

}  // namespace tornasole::rules
