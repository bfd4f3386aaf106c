#pragma once

// A store with a spool behind it: what it does not take waits on a local disk and is sent when it is back (see
// spool.h for the order). A file above 16 MiB is collected on that disk, not in memory, and sent from there.
//
// Reading sees what waits as if it had arrived. While the store is away everything else is kIo at once.

#include <memory>

#include "store/spool/spool.h"
#include "store/store.h"

namespace tornasole::store {

// kInvalid or kIo if the spool's directory cannot be one; nothing is made there before something has to wait.
Result<std::unique_ptr<Store>> open_spool_store(std::unique_ptr<Store> target, SpoolOptions options);

}  // namespace tornasole::store
