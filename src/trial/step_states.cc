#include "trial/step_states.h"

#include <algorithm>

namespace tornasole::trial {

bool is_complete(const StepRow& row, const Progress& progress) noexcept {
  return progress.loaded_all_steps || row.worker_count >= progress.num_workers ||
         row.number <= progress.last_complete_step;
}

bool is_shown(const StepRow& row, const Progress& progress, StepFilter filter) noexcept {
  switch (filter) {
    case StepFilter::kComplete: return !row.is_partial && is_complete(row, progress);
    case StepFilter::kIncludingIncomplete: return true;
    case StepFilter::kPartial: return row.is_partial;
  }
  return false;
}

bool is_shown(const IndexColumns& columns, const Progress& progress, ModeStep step, StepFilter filter) {
  const auto global = columns.global_step(step);
  const StepRow* row = global ? columns.find_step(*global) : nullptr;
  return row != nullptr && is_shown(*row, progress, filter);
}

std::vector<ModeStep> list_steps(const IndexColumns& columns, const Progress& progress, Mode mode, StepFilter filter) {
  std::vector<ModeStep> steps;
  if (mode == Mode::kGlobal) {
    for (const StepRow& row : columns.steps()) {
      if (is_shown(row, progress, filter)) steps.push_back({mode, row.number});
    }
    return steps;
  }
  for (const std::int64_t number : columns.mode_steps(mode)) {
    if (is_shown(columns, progress, {mode, number}, filter)) steps.push_back({mode, number});
  }
  return steps;
}

StepState has_passed_step(const IndexColumns& columns, const Progress& progress, ModeStep step) noexcept {
  const auto next = columns.next_step(step);
  if (!next) return progress.loaded_all_steps ? StepState::kUnavailable : StepState::kNotYetAvailable;
  const std::int64_t global = *columns.global_step({step.mode, *next});
  if (*next > step.number) {
    return progress.last_complete_step >= global ? StepState::kUnavailable : StepState::kNotYetAvailable;
  }
  const StepRow* row = columns.find_step(global);
  if (row == nullptr || !is_complete(*row, progress)) return StepState::kNotYetAvailable;
  return row->is_partial ? StepState::kUnavailable : StepState::kAvailable;
}

std::int64_t advance_last_complete(const IndexColumns& columns, const Progress& progress, std::int64_t window) {
  const auto& steps = columns.steps();
  std::int64_t last = progress.last_complete_step;
  const auto by_number = [](std::int64_t number, const StepRow& row) { return number < row.number; };
  const auto first_open = std::upper_bound(steps.begin(), steps.end(), last, by_number);
  for (auto at = steps.end(); at != first_open; --at) {
    if (std::prev(at)->worker_count < progress.num_workers) continue;
    last = std::prev(at)->number;
    break;
  }
  const auto waiting = std::upper_bound(steps.begin(), steps.end(), last, by_number);
  if (steps.end() - waiting <= window) return last;
  return (waiting + std::max<std::int64_t>(window / 2, 1) - 1)->number;
}

}  // namespace tornasole::trial
