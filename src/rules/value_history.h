#pragma once

// ValueHistory: values of earlier steps, for rules that compare.
//
// Values are kept as they come by. At the first sight of a tensor those that the trial knows from before are read: a
// pass that begins in the middle of a trial sees what one from its beginning would.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "rules/tensor_states.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

struct PastValue {
  std::int64_t step = 0;                     // of the mode asked for
  std::shared_ptr<const Tensor> value = {};  // shared: as a StepTensor gives it
};

class ValueHistory {
 public:
  struct Window {
    std::size_t count = 0;                        // at most so many; 0: any number
    std::optional<std::int64_t> first_step = {};  // and none before this one
  };
  // The values of complete steps before this one, oldest first. The caller adds that of this step when done. The mode
  // is that of the step, or kGlobal for all steps.
  std::deque<PastValue>& before(const StepView& step, const StepTensor& tensor, Mode mode, const Window& window);
  void clear() { kept_.clear(); }

 private:
  struct Kept {
    bool is_filled = false;
    std::deque<PastValue> values = {};
  };
  TensorStates<Kept> kept_;
};

// The number of a step in a mode; of kGlobal: the global one.
std::int64_t step_number(const StepView& step, Mode mode) noexcept;

}  // namespace tornasole::rules
