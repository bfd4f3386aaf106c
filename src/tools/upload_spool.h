#pragma once

// upload_spool: sends what writers could not, while their store was away (spool_dir), from a local disk to where it
// belongs.
//
//   1. The spools at or below the path, oldest first. One whose process lives is refused: it sends by itself.
//   2. Each file of a spool in the order it was saved: values before their index. What arrived is removed from the
//   disk.
//   3. If that was all, and every worker of the run has said that it ended: the end marker.
//
// Interrupted, it can be run again: what is there already with the same bytes counts as sent.

#include <cstdint>
#include <string>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::tools {

struct UploadOptions {
  std::string path = {};      // a spool, or a directory above spools; absolute or relative
  std::string location = {};  // s3://... or a directory; empty: where each spool belongs
  bool dry_run = false;       // only say what waits
  bool marks_end = true;      // not in a SageMaker job, where the platform says the end
  bool force = false;         // also spools of a process on another host, which may still live
};

struct UploadedSpool {
  std::string directory = {};
  std::string location = {};
  std::int64_t files = 0;  // sent, or with dry_run to be sent
  std::uint64_t bytes = 0;
  std::vector<std::string> problems = {};  // damaged, or other bytes are there under that name; they stay in the spool
  bool is_ended = false;                   // the end marker was written
};

// kNotFound if nothing waits there; kInvalid (RuntimeError-kind) for a spool that is in use; kIo if a store fails, with
// everything that did not arrive still on the disk.
Result<std::vector<UploadedSpool>> upload_spools(const UploadOptions& options);

}  // namespace tornasole::tools
