#pragma once

// Where a run that is continued goes on, if no checkpoint state says it: after the last step that was published.
//
// Used by: Hook::open.

#include <cstdint>
#include <map>

#include "capture/run_directory.h"
#include "store/store.h"
#include "tornasole/mode.h"

namespace tornasole::capture {

struct ResumePoint {
  std::int64_t last_step = -1;                   // of all workers, so that all go on with the same one
  std::map<Mode, std::int64_t> mode_steps = {};  // the last published one of each mode
};

// Only looks. A health file of the run says most of it; index files younger than it say the rest.
Result<ResumePoint> find_resume_point(store::Store& store, const RunIdentity& identity);

}  // namespace tornasole::capture
