#pragma once

// The boundary that training never crosses: whatever goes wrong behind it is counted and reported, never thrown.

#include <utility>

#include "base/errors.h"
#include "capture/hook_state.h"

namespace tornasole::capture {

template <typename Call>
void HookState::guarded(const char* call, Call&& run) noexcept {
  if (!takes_calls(call)) return;
  try {
    std::forward<Call>(run)();
  } catch (...) {
    health_->note(call, error_from_current_exception());
  }
}

inline bool HookState::takes_calls(const char* call) noexcept {
  if (is_inert()) return false;
  if (!is_closed_.load(std::memory_order_relaxed)) return true;
  if (!is_late_call_reported_.exchange(true)) {
    try {
      health_->log(LogLevel::kWarning,
                   fmt::format("{} after the hook was closed; it and later calls are ignored", call));
    } catch (...) {
      health_->log(LogLevel::kWarning, "a call after the hook was closed is ignored");
    }
  }
  return false;
}

}  // namespace tornasole::capture
