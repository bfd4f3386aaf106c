#pragma once

// Stores with faults around any other store. A test keeps the shared control of a fault after the store itself has gone
// into a hook; a program takes the fault from its command line with wrap_store.

#include <memory>
#include <string_view>

#include "store/store.h"
#include "support/crash_store.h"
#include "support/failing_store.h"
#include "support/hang_store.h"
#include "support/slow_store.h"

namespace tornasole::store {

// slow:RATE            RATE in bytes a second: 1000000, 1MB/s, 512KiB/s; units B kB MB GB KiB MiB GiB
// hang:N               the N-th append and all later ones block for ever
// fail:N[+][@CALL]     the N-th call fails, with + all later ones too; CALL: only calls of that kind are counted
// short:N              the N-th append writes half of its bytes and fails
// crash:SEED[@N]       loses power when destroyed, or at the N-th call that writes
// kInvalid, with the forms above, for anything else.
Result<std::unique_ptr<Store>> wrap_store(std::string_view spec, std::unique_ptr<Store> base);

}  // namespace tornasole::store
