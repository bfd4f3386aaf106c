#pragma once

// Which steps are complete, passed over or still to come: pure functions of what the index says and how far the run is.

#include <cstdint>
#include <vector>

#include "tornasole/trial.h"
#include "trial/index_columns.h"

namespace tornasole::trial {

struct Progress {
  std::int64_t num_workers = 1;
  std::int64_t last_complete_step = -1;
  bool loaded_all_steps = false;
};

// All workers wrote it, a later one is complete, or everything was loaded. Whether it is partial is another question.
bool is_complete(const StepRow& row, const Progress& progress) noexcept;
bool is_shown(const StepRow& row, const Progress& progress, StepFilter filter) noexcept;
// The same of a step of a mode: of the first that was written under its number.
bool is_shown(const IndexColumns& columns, const Progress& progress, ModeStep step, StepFilter filter);

// Ascending; global steps for kGlobal.
std::vector<ModeStep> list_steps(const IndexColumns& columns, const Progress& progress, Mode mode, StepFilter filter);

// A partial step counts as passed over: it will never be whole.
StepState has_passed_step(const IndexColumns& columns, const Progress& progress, ModeStep step) noexcept;

// The last complete step, after steps were added; and, if more than `window` steps wait for workers, moved over half a
// window of them.
std::int64_t advance_last_complete(const IndexColumns& columns, const Progress& progress, std::int64_t window);

}  // namespace tornasole::trial
