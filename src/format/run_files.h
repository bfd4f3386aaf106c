#pragma once

// The small files of a run: health, run, claim, checkpoint state, metrics, stop request (docs/format.md 1, 10, 11).
// Decoders take untrusted text, bound every length, and return kCorrupt with what is wrong.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/process.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole::format {

enum class RunState { kRunning, kEnded, kFailed };

struct Health {
  ProcessIdentity process = {};
  RunState state = RunState::kRunning;
  std::string reason = {};  // why it failed, if it did
  std::string run_id = {};
  double start_time = 0;  // of the hook, seconds since 1970
  double heartbeat = 0;   // seconds since 1970
  double heartbeat_interval_s = 10;
  std::int64_t due = 0;
  std::int64_t committed = 0;
  std::map<std::string, std::int64_t> dropped = {};         // steps by cause
  std::map<std::string, std::int64_t> dropped_values = {};  // values by cause
  std::int64_t last_committed = -1;
  std::int64_t queue_peak_bytes = 0;
  std::int64_t wait_ms = 0;
  std::string when_full = "drop";
  std::string fsync = "none";
  std::vector<std::string> errors = {};                 // at most 20
  std::map<std::string, std::int64_t> requests = {};    // to an object store, by kind; empty elsewhere
  std::map<std::string, std::int64_t> mode_steps = {};  // the last step of each mode, by its name
};
Bytes encode_health(const Health& health);
Result<Health> decode_health(ByteView text);

struct RunFile {
  std::string run_id = {};
  double start = 0;
  std::int64_t world_size = 1;
};
Bytes encode_run(const RunFile& run);
Result<RunFile> decode_run(ByteView text);

Bytes encode_claim(const ProcessIdentity& owner);
// An empty or foreign claim (the reference's is empty) is kNotFound.
Result<ProcessIdentity> decode_claim(ByteView text);

struct CheckpointRecord {
  std::int64_t training_run = 0;
  std::optional<std::int64_t> last_saved = {};
  std::int64_t last_seen = -1;
  std::map<Mode, std::int64_t> mode_steps = {};
};
Bytes encode_checkpoint_state(const std::vector<CheckpointRecord>& records);
// A cut file gives its longest valid prefix and *was_cut = true; damage beyond that is kCorrupt. An empty file is cut.
Result<std::vector<CheckpointRecord>> decode_checkpoint_state(ByteView text, bool* was_cut);

struct MetricRecord {
  std::string name = {};  // tensor name, without the mode
  Mode mode = Mode::kGlobal;
  double value = 0;
  double timestamp = 0;
  std::int64_t mode_step = 0;
};
// One line with its newline. Numbers that are not finite are NaN, Infinity and -Infinity, as Python reads and writes.
Bytes encode_metric(const MetricRecord& metric);

struct StopRequest {
  std::string reason = {};
  std::string rule = {};
  std::optional<std::int64_t> step = {};  // global step the rule fired at
  double time = 0;                        // of the request, seconds since 1970; 0 if unknown
  std::string prefix = {};                // empty, or a prefix of the name of the trial it is meant for
};
Bytes encode_stop_request(const StopRequest& request);
Result<StopRequest> decode_stop_request(ByteView text);

}  // namespace tornasole::format
