// DataRepeat: a batch comes twice in an epoch, or two epochs have the same batches in the same order.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/batch_hashes.h"
#include "rules/builtin_rules.h"
#include "rules/rule_errors.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "DataRepeat";

constexpr std::array kParameters = {
    kInputCollections,
    kTensorRegex,
    Parameter{"epoch_steps", ParameterType::kInteger, "", "Training steps of one epoch; must be given"},
};

class DataRepeat final : public Rule {
 public:
  explicit DataRepeat(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)), epoch_steps_(arguments.integer("epoch_steps")) {}

  std::vector<Need> needs() const override { return {batch_need(choice_)}; }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    const std::int64_t epoch = step.step().number / epoch_steps_;
    for (const auto& [worker, hash] : batch_hashes(step.tensors(), findings)) {
      State& state = states_[std::string(worker)];
      if (epoch != state.epoch) {
        state.before = epoch == state.epoch + 1 ? std::move(state.now) : std::vector<Batch>();
        state.now.clear();
        state.epoch = epoch;
      }
      const Batch batch{.place = step.step().number % epoch_steps_, .hash = hash};
      const auto same = std::ranges::find(state.now, hash, &Batch::hash);
      const bool comes_twice = same != state.now.end();
      if (comes_twice) {
        findings.add(nullptr, {}, {},
                     fmt::format("{}: the batch of step {} was already that of step {}, in the same epoch",
                                 printable(worker), step.step().number, epoch * epoch_steps_ + same->place));
      }
      state.now.push_back(batch);
      // One batch that comes again and again is no order.
      const bool has_order = state.now.size() > 1 && !comes_twice;
      if (has_order && state.now == state.before) {
        findings.add(nullptr, {}, {},
                     fmt::format("{}: epoch {} had the same {} batches in the same order as the one before",
                                 printable(worker), epoch, state.now.size()));
      }
    }
  }

  void reset() override { states_.clear(); }

 private:
  struct Batch {
    std::int64_t place = 0;  // in the epoch
    std::uint64_t hash = 0;
    bool operator==(const Batch&) const = default;
  };
  struct State {
    std::int64_t epoch = -1;
    std::vector<Batch> before = {}, now = {};
  };

  TensorChoice choice_;
  std::int64_t epoch_steps_;
  std::map<std::string, State, std::less<>> states_;  // by worker
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  if (!arguments.has("epoch_steps")) {
    return insufficient_error(kName, "epoch_steps is not given; it is the number of training steps of one epoch");
  }
  TORNASOLE_CHECK(check_at_least(kName, arguments, "epoch_steps", 1));
  return std::unique_ptr<Rule>(std::make_unique<DataRepeat>(arguments));
}

}  // namespace

const RuleType kDataRepeat = {.name = kName,
                              .group = "detectors",
                              .summary = "Batches come again where they should not: the data is not shuffled anew.",
                              .parameters = kParameters,
                              .make = make};

}  // namespace tornasole::rules
