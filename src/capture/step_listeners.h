#pragma once

// The adapters that a hook tells about its steps. Used on the thread of the steps alone.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tornasole/hook.h"

namespace tornasole::capture {

class StepListeners {
 public:
  void add(std::shared_ptr<StepListener> listener) {
    if (listener) listeners_.push_back(std::move(listener));
  }
  bool is_any() const noexcept { return !listeners_.empty(); }

  // Of the first that knows one.
  std::optional<Mode> mode() const noexcept {
    for (const auto& listener : listeners_) {
      if (const std::optional<Mode> mode = listener->mode()) return mode;
    }
    return std::nullopt;
  }
  void step_began(std::uint64_t serial, const StepRef& step) noexcept {
    open_ = step;
    open_serial_ = serial;
    for (const auto& listener : listeners_) listener->step_began(step);
  }
  // Each step ends once, whoever ends it: its scope, the next step, a change of mode, or the hook.
  void step_ends(std::uint64_t serial) noexcept {
    if (open_serial_ == 0 || serial != open_serial_) return;
    open_serial_ = 0;
    for (const auto& listener : listeners_) listener->step_ends(open_);
  }
  void open_step_ends() noexcept { step_ends(open_serial_); }
  void hook_closed() noexcept {
    open_step_ends();
    for (const auto& listener : listeners_) listener->hook_closed();
  }

 private:
  std::vector<std::shared_ptr<StepListener>> listeners_;  // shared with what they hang on models
  StepRef open_;
  std::uint64_t open_serial_ = 0;
};

}  // namespace tornasole::capture
