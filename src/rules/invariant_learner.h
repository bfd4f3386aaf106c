#pragma once

// InvariantLearner: looks at good runs, one after the other, and keeps what always held.

#include <map>
#include <set>
#include <string>
#include <utility>

#include "rules/invariant_facts.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {

// What was seen of the tensors of one pattern in one mode.
struct LearnedFacts {
  // How often something held, until it did not.
  struct Held {
    std::int64_t count = 0;
    bool is_broken = false;
    void note(bool holds) {
      ++count;
      is_broken |= !holds;
    }
  };
  struct Bounds {
    Held held = {};  // the number was finite
    double low = 0, high = 0;
    void note(double number);
  };
  Held finite = {}, changes = {}, constant = {}, equal_workers = {}, distinct_workers = {}, present = {};
  Held same_shape = {}, kept_shape = {}, same_dtype = {};
  std::optional<Shape> shape = {};
  std::string dtype = {};
  std::array<Bounds, kRangeStats.size()> ranges = {};
  Bounds ratio = {};  // log10
  std::set<std::size_t> trials = {};
};

// A rule that never meets a condition, for the one pass over each trial.
class InvariantLearner final : public Rule {
 public:
  using Facts = std::map<std::pair<std::string, Mode>, LearnedFacts>;
  InvariantLearner(Facts* facts, std::size_t trial) : facts_(*facts), trial_(trial) {}

  std::vector<Need> needs() const override { return {invariant_need()}; }
  void look_at(const StepView& step, Findings& findings) override;
  void reset() override {}
  // After the last step of the trial.
  void finish();
  std::int64_t steps() const noexcept { return steps_; }

 private:
  struct Last {
    std::optional<std::int64_t> hash = {};
    std::optional<Shape> shape = {};
  };
  void note_tensor(const StepTensor& tensor, Mode mode, const StepIndex& index, LearnedFacts& facts);
  void note_workers(const std::vector<const StepTensor*>& copies, LearnedFacts& facts);

  Facts& facts_;
  std::size_t trial_;
  std::int64_t steps_ = 0;
  TensorStates<Last> last_;
  std::map<Mode, std::int64_t> mode_steps_;
  std::map<std::pair<std::string, Mode>, std::int64_t> seen_;  // steps a name was saved at
};

// Those that always held, in the order of pattern and mode.
std::vector<Invariant> kept_invariants(const InvariantLearner::Facts& facts,
                                       const std::map<Mode, std::set<std::size_t>>& trials_with_mode);

}  // namespace tornasole::rules
