#include "tools/run_health.h"

#include <algorithm>

#include "base/errors.h"
#include "capture/run_occupancy.h"
#include "tools/absolute_path.h"
#include "trial/open_location.h"

namespace tornasole::tools {

Result<RunHealth> read_run_health(const std::string& path) {
  TORNASOLE_TRY(const std::string root, absolute_path(path));
  TORNASOLE_TRY(const std::unique_ptr<store::Store> store, trial::open_location(root, /*read_only=*/true));
  TORNASOLE_TRY(const auto files, capture::read_health_files(*store));
  RunHealth sum;
  for (const capture::HealthFile& file : files) {
    if (!file.health) continue;
    const format::Health& health = *file.health;
    ++sum.workers;
    sum.due += health.due;
    sum.committed += health.committed;
    for (const auto& [cause, count] : health.dropped) sum.dropped[cause] += count;
    for (const auto& [kind, count] : health.requests) sum.requests[kind] += count;
    sum.queue_peak_bytes = std::max(sum.queue_peak_bytes, health.queue_peak_bytes);
    const RunHealth own{.wait_s = static_cast<double>(health.wait_ms) / 1000,
                        .elapsed_s = std::max(health.heartbeat - health.start_time, 0.0)};
    if (sum.workers == 1 || own.wait_share() > sum.wait_share()) {
      sum.wait_s = own.wait_s;
      sum.elapsed_s = own.elapsed_s;
    }
  }
  return sum;
}

}  // namespace tornasole::tools
