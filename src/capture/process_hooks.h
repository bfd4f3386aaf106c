#pragma once

// The hooks of this process: the one thing that has to be global, because fork, exit and signals are.
//
//   fork    in the child every hook becomes inert, so that nothing inherited is flushed or waited for; one that has
//           written nothing can be told to go on there
//   exit    hooks that are still open are closed
//   signals SIGTERM, SIGHUP, SIGINT, if a hook asks for it: finished steps are published, then the handler that was
//           there before gets the signal

#include <string>

#include "capture/hook_state.h"

namespace tornasole::capture {

void register_hook(HookState* hook);
void unregister_hook(HookState* hook) noexcept;
// Closes a hook of this process that writes to the same place as the first of its workers, so that a new one can take
// it over. Threads may stand for the other workers: they live beside it.
void supersede_hook_at(const std::string& location);
// Installs the signal handlers, once per process.
Status watch_signals();

}  // namespace tornasole::capture
