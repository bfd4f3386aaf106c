// TrainEvalMismatch: the model trains in evaluation mode, or is evaluated in training mode.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/batch_hashes.h"
#include "rules/builtin_rules.h"
#include "rules/loss_series.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "TrainEvalMismatch";
enum : std::size_t { kLosses, kInputs };

constexpr std::array kParameters = {
    kLossCollections,
    kTensorRegex,
    Parameter{"input_collections", ParameterType::kList, "inputs", "Collections with the inputs"},
    Parameter{"max_difference", ParameterType::kNumber, "0.5",
              "Limit of |difference of the losses| / loss in training, of one batch in both modes"},
    Parameter{"max_steps", ParameterType::kInteger, "10", "The same batch counts if its steps are so near each other"},
};

// Layers that do something else in training.
bool differs_in_training(const ModelDescription& model) {
  return std::ranges::any_of(model.modules, [](const ModelDescription::Module& module) {
    return module.type.find("Dropout") != std::string::npos || module.type.find("BatchNorm") != std::string::npos;
  });
}

class TrainEvalMismatch final : public Rule {
 public:
  explicit TrainEvalMismatch(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        input_collections_(arguments.list("input_collections")),
        max_difference_(arguments.number("max_difference")),
        max_steps_(arguments.integer("max_steps")) {}

  std::vector<Need> needs() const override {
    return {scalar_need(choice_.collections, choice_.regex), batch_need({.collections = input_collections_})};
  }

  void look_at(const StepView& step, Findings& findings) override {
    look_at_facts(step, findings);
    const auto hashes = batch_hashes(step.tensors(kInputs), findings);
    std::map<std::string_view, Loss> losses;
    for (const StepTensor* tensor : step.tensors(kLosses)) {
      const auto value = scalar_value(*tensor, findings);
      if (!value) continue;
      Loss& loss = losses[tensor->worker];
      loss.sum += *value;
      ++loss.count;
    }
    for (const auto& [worker, hash] : hashes) {
      const auto loss = losses.find(worker);
      if (loss != losses.end()) look_at_batch(step, worker, hash, loss->second.sum / loss->second.count, findings);
    }
  }

  void reset() override {
    seen_.clear();
    last_step_ = -1;
  }

 private:
  struct Loss {
    double sum = 0, count = 0;
  };
  struct Seen {
    Mode mode;
    std::int64_t step;
    std::uint64_t hash;
    double loss;
  };

  // Of every step since the last one that was looked at: a step without losses and inputs has facts, too.
  void look_at_facts(const StepView& step, Findings& findings) {
    const Trial& trial = step.trial();
    for (std::int64_t number = last_step_ + 1; number <= step.global_step().number; ++number) {
      if (number < step.global_step().number && !trial.mode_step(GlobalStep{number})) continue;
      for (const std::string& worker : trial.workers_at(GlobalStep{number})) {
        look_at_facts_of(trial, GlobalStep{number}, worker, findings);
      }
    }
    last_step_ = step.global_step().number;
  }

  static void look_at_facts_of(const Trial& trial, GlobalStep step, const std::string& worker, Findings& findings) {
    const StepFacts facts = trial.step_facts(step, worker);
    if (facts.backward_in_eval.value_or(false)) {
      findings.add(nullptr, {}, {},
                   fmt::format("{}: a backward pass at step {} while the model was in evaluation mode",
                               printable(worker), step.number));
    }
    const auto model = trial.models().find(worker);
    const bool is_affected = model != trial.models().end() && differs_in_training(model->second.model);
    if (is_affected && facts.training.value_or(false) && !facts.grad_enabled.value_or(true)) {
      findings.add(nullptr, {}, {},
                   fmt::format("{}: step {} ran without gradients while the model was in training mode: drop-out and "
                               "batch normalisation are active",
                               printable(worker), step.number));
    }
  }

  void look_at_batch(const StepView& step, std::string_view worker, std::uint64_t hash, double loss,
                     Findings& findings) {
    std::deque<Seen>& seen = seen_[std::string(worker)];
    const std::int64_t now = step.global_step().number;
    while (!seen.empty() && now - seen.front().step > max_steps_) seen.pop_front();
    for (const Seen& other : seen) {
      const bool is_in_both = (other.mode == Mode::kTrain && step.mode() == Mode::kEval) ||
                              (other.mode == Mode::kEval && step.mode() == Mode::kTrain);
      if (other.hash != hash || !is_in_both) continue;
      const double in_training = step.mode() == Mode::kTrain ? loss : other.loss;
      const double difference = std::fabs(loss - other.loss) / std::fabs(in_training);
      if (!(difference > max_difference_)) continue;
      findings.add(nullptr, difference, max_difference_,
                   fmt::format("{}: the batch of step {} in {} had a loss of {:g}, that of step {} in {} {:g}",
                               printable(worker), other.step, mode_name(other.mode), other.loss, now,
                               mode_name(step.mode()), loss));
    }
    seen.push_back({step.mode(), now, hash, loss});
  }

  TensorChoice choice_;
  std::vector<std::string> input_collections_;
  double max_difference_;
  std::int64_t max_steps_;
  std::map<std::string, std::deque<Seen>, std::less<>> seen_;  // by worker
  std::int64_t last_step_ = -1;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "max_difference", 0));
  TORNASOLE_CHECK(check_at_least(kName, arguments, "max_steps", 1));
  return std::unique_ptr<Rule>(std::make_unique<TrainEvalMismatch>(arguments));
}

}  // namespace

const RuleType kTrainEvalMismatch = {
    .name = kName,
    .group = "detectors",
    .summary = "The model is in the wrong mode: it learns as in evaluation, or is judged as in training.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
