#pragma once

// For front ends whose every call is dear: steps that may be counted later or are like the one before, and values that
// need not be made ready.

#include <cstdint>

#include "tornasole/export.h"
#include "tornasole/hook.h"

namespace tornasole {

// How many of the next steps of the current mode nothing is due in, as far as it is known: a change of a collection or
// a mode, a value that is handed over or a listener ends that. 0 unless the open step is such a step. Whoever begins
// these steps late calls nothing else of the hook before.
TORNASOLE_EXPORT std::int64_t idle_steps(const Hook& hook) noexcept;

// Ends the step and begins the next one with these facts, in one call: for steps of one mode that want the same tensors
// as the one before, and have nothing to be done between them. False if that is not so, as before the first steps or
// where a schedule changes: nothing was done then, and begin_step has to.
TORNASOLE_EXPORT bool repeat_step(const Hook& hook, StepScope& step, const StepFacts& facts) noexcept;

// Whether the next input or output of a module is known to be wanted by nobody in the open step. It is counted then,
// as if it had been offered.
TORNASOLE_EXPORT bool skip_input(const Hook& hook, ModuleName& module) noexcept;
TORNASOLE_EXPORT bool skip_output(const Hook& hook, ModuleName& module) noexcept;

}  // namespace tornasole
