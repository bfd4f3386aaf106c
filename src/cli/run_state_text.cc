#include "cli/run_state_text.h"

namespace tornasole::cli {

std::string_view run_state_name(RunState state) noexcept {
  switch (state) {
    case RunState::kRunning: return "running";
    case RunState::kEnded: return "ended";
    case RunState::kFailed: return "failed";
    case RunState::kPresumedDead: return "presumed dead";
    case RunState::kUnknown: break;
  }
  return "unknown";
}

std::string run_status_text(const RunStatus& status) {
  if (status.state == RunState::kUnknown && status.reason.empty()) {
    return "not known to have ended: no end marker, and no word from its writer";
  }
  std::string text(run_state_name(status.state));
  if (!status.reason.empty()) text += ": " + status.reason;
  return text;
}

}  // namespace tornasole::cli
