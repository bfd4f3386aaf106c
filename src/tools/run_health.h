#pragma once

// What the writers of a run say of themselves: steps kept and dropped, and how long the training waited for them.

#include <cstdint>
#include <map>
#include <string>

#include "tornasole/result.h"

namespace tornasole::tools {

struct RunHealth {
  std::int64_t workers = 0;  // that say something; 0: nobody does (runs of smdebug)
  std::int64_t due = 0;      // steps that were to be saved, of all workers together
  std::int64_t committed = 0;
  std::map<std::string, std::int64_t> dropped = {};  // steps by cause
  double wait_s = 0;     // how long the training waited, of the worker that waited the largest share of its time
  double elapsed_s = 0;  // of that worker, from its start to its last word
  std::int64_t queue_peak_bytes = 0;                  // of the worker with most
  std::map<std::string, std::int64_t> requests = {};  // to an object store, by kind; of all workers together

  // Of the time of the training; 0 where nothing is known.
  double wait_share() const noexcept { return elapsed_s > 0 ? wait_s / elapsed_s : 0; }
};

// kIo if the directory cannot be read; health files that are damaged count as none.
Result<RunHealth> read_run_health(const std::string& path);

}  // namespace tornasole::tools
