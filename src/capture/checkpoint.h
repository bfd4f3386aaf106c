#pragma once

// CheckpointWatch: remembers, beside the user's own checkpoints, how far capture had come (docs/format.md 11).
//
//   in:  the checkpoint directory, the counters at each step boundary
//   out: counters restored at start; metadata.json rewritten when the checkpoints changed

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/run_files.h"
#include "tornasole/checkpoint_files.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole::capture {

struct Counters {
  std::int64_t global_step = -1;
  std::optional<std::int64_t> last_saved = {};
  std::map<Mode, std::int64_t> mode_steps = {};  // modes seen
};

class CheckpointWatch {
 public:
  explicit CheckpointWatch(std::string directory);
  // The newest record of the state file, if there is one. A cut file: its longest valid prefix, with a warning; one
  // that is damaged otherwise: nothing, with a warning. The checkpoints there are now are taken as seen.
  Result<std::optional<format::CheckpointRecord>> load(std::vector<std::string>* warnings);
  // At a step boundary, before counting: appends a record and rewrites the file (temporary name, rename) if any
  // checkpoint was added, removed, resized or touched since the last look.
  Status note(const Counters& counters);
  std::int64_t training_run() const noexcept { return training_run_; }

 private:
  Status write_state(const std::vector<format::CheckpointRecord>& records) const;

  std::string directory_;
  CheckpointFiles files_;
  std::int64_t training_run_ = 0;
  std::vector<format::CheckpointRecord> records_;  // sorted by last_seen, one for each
};

// MetricsFile: the SageMaker metrics file, <directory>/<pid>.json, one line per record, appended.
class MetricsFile {
 public:
  explicit MetricsFile(std::string directory) : directory_(std::move(directory)) {}
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  // kInvalid for a value that is not finite or a time stamp older than 14 days or more than 2 hours ahead of `now`. The
  // file is opened at the first record; a line is written whole or not at all.
  Status append(const format::MetricRecord& metric, double now);
  void close() noexcept;

 private:
  std::string directory_;
  int file_ = -1;
};

}  // namespace tornasole::capture
