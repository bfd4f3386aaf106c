#pragma once

// What the steps of one hook for PyTorch depend on.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/torch_callbacks.h"

namespace tornasole::python {

struct StepState {
  std::int64_t changes = 0;          // of anything that a captured step depends on
  std::int64_t copies = 0;           // from other devices, under way
  std::int64_t untold_steps = 0;     // of the training, from now on, of which a preset need not be told
  std::int64_t optimizer_steps = 0;  // taken so far
  bool counts_steps = true;          // before PyTorch 2.0 only those of optimizers that were named are seen
  std::int64_t backward_passes = 0;  // that were told of
  // The last step was like others: of this model, in training, with gradients, and with no facts but the usual ones.
  const void* usual = nullptr;
  bool is_pass_new = false;  // no backward pass was told of since it began

  std::optional<std::int64_t> known_steps() const {
    return counts_steps ? std::optional(optimizer_steps) : std::nullopt;
  }

  void begin_step(bool has_gradients) noexcept {
    has_gradients_ = has_gradients;
    begun_at_ = optimizer_steps;
    passes_before_ = backward_passes;
  }
  // Whether an optimizer has used what the open step is for. A loss that is computed without gradients from then on is
  // of something else, such as a model of averaged weights that is evaluated.
  bool is_used() const noexcept { return has_gradients_ && optimizer_steps > begun_at_; }
  // Whether the program has gone on to train something else, of which no step knows: there is no end to its losses.
  bool is_left() const noexcept { return backward_passes - passes_before_ >= kMostPasses; }

  // By group of parameters; whether they are to be saved. A model may be called often for one step of an optimizer:
  // they are saved once for it.
  using Rates = std::vector<std::optional<double>>;
  bool tell_rates(Rates rates) {
    if (told_at_ == optimizer_steps && told_rates_ == rates) return false;
    told_at_ = optimizer_steps;
    told_rates_ = std::move(rates);
    return true;
  }

 private:
  std::int64_t told_at_ = -1;
  static constexpr std::int64_t kMostPasses = 100;  // backward, of one step
  std::int64_t begun_at_ = 0, passes_before_ = 0;
  bool has_gradients_ = false;
  Rates told_rates_;
};

// Whether a loss that is computed now is none of the open step's.
inline bool is_of_another_step(const StepState& state) {
  return state.is_left() || (state.is_used() && !is_grad_enabled());
}

}  // namespace tornasole::python
