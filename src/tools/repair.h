#pragma once

// repair: brings back what a dead run had written but not published, and closes the run.
//
//   1. Refuse a live run, and one that may be live, by the rules a new run goes by (capture/run_occupancy.h).
//   2. Take the lock that starting runs take, look again, complete a move to attempts/ that was interrupted.
//   3. Publish each step whose values are in a temporary file: its whole records, an index made from them, marked
//      partial. A step whose index was complete and only lacked its name is published as it is, not partial.
//   4. Write collections files that are missing, without which the trial would not open.
//   5. Remove debris: temporary files, event files that belong to no step, a stale claim.
//   6. Close the run: health state `failed` with the reason, then the end marker.
//   7. The same, 3 to 6, for each of attempts/<n>/.
//
// A published event, index or collections file is never changed. A second repair finds nothing to do. Killed half way,
// a repair can be run again.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/verify.h"
#include "tornasole/result.h"

namespace tornasole::tools {

struct RepairOptions {
  std::string path = {};  // absolute, or relative to the current directory
  bool dry_run = false;   // report what would be done; nothing is written
  // A run without a health file (smdebug wrote it) counts as live until nothing changed in it for so long.
  double quiet_s = 60;
  // Waits while a writer on another host is watched for a sign of life, up to 65 s. Nothing: really sleeps.
  std::function<void(double seconds)> sleep = {};
};

enum class RepairActionKind : std::uint8_t {
  kFinishMove,        // an interrupted move to attempts/ completed
  kPublishStep,       // a step's whole records published, partial
  kPublishIndex,      // a step that lacked only the name of its index file
  kPublishFile,       // another whole file that lacked only its name: collections, TensorBoard
  kWriteCollections,  // a collections file that was missing
  kRemove,            // debris
  kMarkFailed,        // a health file: running -> failed
  kWriteEndMarker,    //
};
std::string_view repair_action_name(RepairActionKind kind) noexcept;  // "publish step", "remove", ...

struct RepairAction {
  RepairActionKind kind = RepairActionKind::kRemove;
  std::string path;    // relative to the trial: the file that came to be, went, or changed
  std::string detail;  // for people: "3 values, 120 bytes cut off at the end"
};

struct RepairReport {
  bool dry_run = false;
  Findings<RepairAction> actions = {};  // in the order they were done, or would be
  std::int64_t steps_published = 0;
  std::int64_t values_published = 0;  // stored reductions included
  std::uint64_t bytes_lost = 0;       // in temporary event files, after their last whole record
  std::int64_t files_removed = 0;
  // What cannot be mended; damage in published files is for verify to find.
  Findings<Damage> problems = {};

  bool changes_nothing() const noexcept { return actions.empty(); }
};

// kInvalid (RuntimeError-kind), naming host and process, for a run that is live or may be; kNotFound if there is no
// such directory; kInvalid if it holds nothing of a trial; kIo if it cannot be written to.
Result<RepairReport> repair(const RepairOptions& options);
// The same on a store; options.path is not used.
Result<RepairReport> repair(store::Store& store, const RepairOptions& options);

}  // namespace tornasole::tools
