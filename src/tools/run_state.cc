#include "tools/run_state.h"

#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/run_occupancy.h"

namespace tornasole::tools {
namespace {

bool is_alive(const capture::HealthFile& file, const Clock& clock) {
  if (const auto alive = is_process_alive(file.health->process)) return *alive;
  return std::abs(clock.wall_seconds() - file.status.modified_s) <= capture::silence_limit_s(*file.health);
}

}  // namespace

Result<RunStatus> judge_run(store::Store& store, const Clock& clock) {
  TORNASOLE_TRY(const bool has_marker, capture::has_end_marker(store));
  TORNASOLE_TRY(const auto files, capture::read_health_files(store));
  RunStatus status;
  bool has_health = false;
  bool is_running = false;
  std::string dead;
  for (const capture::HealthFile& file : files) {
    if (!file.health) continue;
    has_health = true;
    if (file.health->state == format::RunState::kFailed && status.state != RunState::kFailed) {
      status = {RunState::kFailed, printable(std::string_view(file.health->reason).substr(0, 1000))};
    }
    if (file.health->state != format::RunState::kRunning) continue;
    if (is_alive(file, clock)) {
      is_running = true;
    } else if (dead.empty()) {
      dead = fmt::format("{} stopped without a word", capture::describe(file.health->process));
    }
  }
  if (!has_marker && is_running) return RunStatus{RunState::kRunning, {}};
  if (status.state == RunState::kFailed) return status;
  if (has_marker) return RunStatus{RunState::kEnded, {}};
  if (!dead.empty()) return RunStatus{RunState::kPresumedDead, dead};
  // Every writer ended, and managed jobs leave no marker.
  return RunStatus{has_health ? RunState::kEnded : RunState::kUnknown, {}};
}

}  // namespace tornasole::tools
