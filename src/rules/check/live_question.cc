#include "rules/check/live_question.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/errors.h"
#include "rules/check/detector.h"
#include "rules/check/run_record.h"

namespace tornasole::rules {

class LiveRecord {
 public:
  explicit LiveRecord(const Trial& trial) : recorder_(trial) {}

  std::vector<Need> needs() const { return recorder_.needs(); }
  const RunRecord& run() const noexcept { return recorder_.record(); }
  // Optimizers are described once they have stepped.
  void note_model() { recorder_.note_model(); }
  // Once for all questions.
  void note(const StepView& step, Findings& findings) {
    if (last_ == step.global_step().number) return;
    last_ = step.global_step().number;
    recorder_.look_at(step, findings);
  }
  // In a training memory is scarce.
  bool is_full() const {
    constexpr std::size_t kMostRows = 300'000;
    std::size_t rows = 0;
    for (const History& history : run().histories) rows += history.size();
    return rows > kMostRows;
  }

 private:
  Recorder recorder_;
  std::int64_t last_ = -1;
};

namespace {

// What of the layers a question is about, by the ends of names: PyTorch and MXNet number them, Keras does not.
enum class Layers : std::uint8_t { kNone, kOutputs, kInputs, kOfLosses };

struct Question {
  std::string_view name;
  const Detector* detector;
  std::array<std::string_view, 3> collections = {};  // besides losses
  std::string_view statistic = {};                   // derived of the last of them
  Layers layers = Layers::kNone;
};

constexpr Question kQuestions[] = {
    {.name = "LossNotDecreasing", .detector = &kCheckLossTrend},
    {.name = "LossDivergence", .detector = &kCheckLossTrend},
    {.name = "Plateau", .detector = &kCheckLossTrend},
    {.name = "LossSpike", .detector = &kCheckLossSpike},
    {.name = "OscillatingLoss", .detector = &kCheckOscillation},
    {.name = "Overfit", .detector = &kCheckOverfit},
    {.name = "Overtraining", .detector = &kCheckOvertraining},
    {.name = "LossScaleCollapse", .detector = &kCheckLossScale},
    {.name = "WorkerOutlier", .detector = &kCheckWorkerOutlier},
    {.name = "ExplodingTensor", .detector = &kCheckNonFinite, .collections = {"gradients", "weights", "biases"}},
    {.name = "NonFiniteProvenance", .detector = &kCheckNonFinite, .collections = {"gradients", "weights", "biases"}},
    {.name = "PoorWeightInitialization", .detector = &kCheckPoorStart, .collections = {"weights"}},
    {.name = "ReplicaDivergence", .detector = &kCheckReplicas, .collections = {"weights"}},
    {.name = "GradNormSpike", .detector = &kCheckGradNormSpike, .collections = {"gradients"}},
    {.name = "VanishingGradient",
     .detector = &kCheckVanishingGradient,
     .collections = {"gradients", "weights"},
     .statistic = "update"},
    {.name = "LearningRateSanity",
     .detector = &kCheckLearningRate,
     .collections = {"gradients", "weights"},
     .statistic = "update"},
    {.name = "SilentOptimizer",
     .detector = &kCheckSilentOptimizer,
     .collections = {"gradients", "weights"},
     .statistic = "update"},
    {.name = "FrozenLayers",
     .detector = &kCheckFrozenLayers,
     .collections = {"gradients", "weights"},
     .statistic = "update"},
    {.name = "MissingZeroGrad",
     .detector = &kCheckMissingZeroGrad,
     .collections = {"gradients", "optimizer_gradients"},
     .statistic = "cosine_previous"},
    {.name = "DeadRelu", .detector = &kCheckDeadRelu, .layers = Layers::kOutputs},
    {.name = "SaturatedActivation", .detector = &kCheckSaturation, .layers = Layers::kOutputs},
    {.name = "ConstantOutput", .detector = &kCheckConstantOutput, .layers = Layers::kOutputs},
    {.name = "InputRange", .detector = &kCheckInputRange, .layers = Layers::kInputs},
    {.name = "SuspiciousValidation", .detector = &kCheckSuspiciousValidation, .layers = Layers::kInputs},
    {.name = "DuplicateShards", .detector = &kCheckShards, .layers = Layers::kInputs},
    {.name = "DataRepeat", .detector = &kCheckDataRepeat, .layers = Layers::kInputs},
    {.name = "TrainEvalMismatch", .detector = &kCheckTrainEval, .layers = Layers::kInputs},
    {.name = "ClassImbalance", .detector = &kCheckClassImbalance, .layers = Layers::kOfLosses},
    {.name = "Confusion", .detector = &kCheckConfusion, .layers = Layers::kOfLosses},
    {.name = "InitialLoss", .detector = &kCheckInitialLoss, .layers = Layers::kOfLosses},
};

Need layer_need(Layers layers) {
  // One pattern each: what a pattern does not find is told to the user.
  Need need{.exclude_regex = {"^derived/"}, .stats = kRecordStats, .derived = {"counts", "across_samples"}};
  switch (layers) {
    case Layers::kInputs:
      need.regex = {R"((_input_\d+|/inputs)$)"};
      need.derived.emplace_back("quantiles");
      break;
    case Layers::kOfLosses:
      // Labels and predictions, as modules of losses are given them and as Keras calls them.
      need.regex = {R"(([Ll]oss|cross_entropy|with_logits|kl_div)_input_\d+$|^(labels|predictions)$)"};
      need.derived.emplace_back("classes");
      break;
    default:
      need.regex = {R"((_output_\d+|/outputs)$)"};
      need.derived.emplace_back("unit_activity");
      break;
  }
  return need;
}

const Question* find_question(std::string_view name) {
  const auto* const found = std::ranges::find(kQuestions, name, &Question::name);
  return found == std::end(kQuestions) ? nullptr : found;
}

class LiveQuestion final : public Rule {
 public:
  LiveQuestion(const Question& question, std::shared_ptr<LiveRecord> record)
      : question_(question), record_(std::move(record)) {}

  std::vector<Need> needs() const override { return record_->needs(); }

  void look_at(const StepView& step, Findings& findings) override {
    record_->note(step, findings);
    const std::size_t steps = record_->run().steps.size();
    if (steps < next_) return;
    // Now and then: each answer looks at the whole run.
    constexpr std::size_t kMostBetween = 100;
    next_ = steps + std::clamp<std::size_t>(steps / 20, 1, kMostBetween);
    if (record_->is_full()) {
      findings.fail(unsupported_error("the run is too long to be judged from inside; tornasole check judges it all"));
      return;
    }
    findings.count_datapoint();
    record_->note_model();
    Judgement judgement(question_.detector->name);
    question_.detector->look(record_->run(), judgement);
    const auto verdict = std::ranges::find_if(judgement.verdicts(), [this](const Verdict& one) {
      return one.rule == question_.name && one.severity != Severity::kInfo;
    });
    if (verdict == judgement.verdicts().end()) {
      since_.reset();
      return;
    }
    if (!since_) since_ = steps;
    if (has_lasted(verdict->severity, steps)) {
      findings.add(tensor_of(step, *verdict), verdict->value, verdict->threshold, verdict->message);
    }
  }

  void reset() override {
    since_.reset();
    next_ = 0;
  }

 private:
  bool has_lasted(Severity severity, std::size_t steps) const {
    constexpr std::size_t kLeastSteps = 100;
    const bool is_error = severity == Severity::kError;
    if (is_error && question_.detector->is_event) return true;
    if (is_error) return 2 * steps >= 3 * *since_;
    return steps >= kLeastSteps && steps >= 3 * *since_;
  }

  static const StepTensor* tensor_of(const StepView& step, const Verdict& verdict) {
    if (verdict.tensors.empty()) return nullptr;
    for (std::size_t need = 0; need < kRecordNeeds; ++need) {
      for (const StepTensor* tensor : step.tensors(need)) {
        if (tensor->name == verdict.tensors.front()) return tensor;
      }
    }
    return nullptr;
  }

  const Question& question_;
  std::shared_ptr<LiveRecord> record_;  // shared: one record serves all questions of a run
  std::size_t next_ = 0;                // steps from which on it is asked again
  std::optional<std::size_t> since_;    // steps there were when the answer was first so
};

}  // namespace

std::shared_ptr<LiveRecord> make_live_record(const Trial& trial) { return std::make_shared<LiveRecord>(trial); }

std::string_view question_name(std::string_view rule) {
  const auto type = find_rule(rule);
  const Question* question = type ? find_question((*type)->name) : nullptr;
  return question == nullptr ? std::string_view() : question->name;
}

std::vector<Need> question_needs(std::string_view name) {
  const Question& question = *find_question(name);
  std::vector<Need> needs = {{.collections = {"losses"}, .stats = {Stat::kMean, Stat::kCount}}};
  for (const std::string_view collection : question.collections) {
    if (!collection.empty()) needs.push_back({.collections = {std::string(collection)}, .stats = kRecordStats});
  }
  if (!question.statistic.empty()) needs.back().derived = {std::string(question.statistic)};
  if (question.layers != Layers::kNone) needs.push_back(layer_need(question.layers));
  return needs;
}

NamedRule make_question(std::string_view name, std::shared_ptr<LiveRecord> record) {
  return {.name = std::string(name),
          .parameters = "profile:check",
          .rule = std::make_unique<LiveQuestion>(*find_question(name), std::move(record))};
}

}  // namespace tornasole::rules
