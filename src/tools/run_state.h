#pragma once

// What became of a run, judged from its files without writing any: for reports. Who wants to write into a trial asks
// capture/run_occupancy.h, which is stricter.

#include "base/clock.h"
#include "store/store.h"
#include "tornasole/result.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

// kIo if the store cannot be read; damaged files count as no sign of life. The wall clock stands in for the store's,
// since asking the store would make a file.
Result<RunStatus> judge_run(store::Store& store, const Clock& clock = system_clock());

}  // namespace tornasole::tools
