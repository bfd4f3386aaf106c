#pragma once

// Opening a hook with other dependencies than the real ones: for tests that choose the store or the clock.

#include <memory>

#include "capture/hook_state.h"
#include "tornasole/hook.h"

namespace tornasole::capture {

Result<Hook> open_hook(HookOptions options, HookDependencies dependencies);

struct HookAccess {
  static Hook make(std::unique_ptr<HookState> state);
  static HookState& state_of(const Hook& hook) noexcept;
};

}  // namespace tornasole::capture
