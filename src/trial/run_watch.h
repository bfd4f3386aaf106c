#pragma once

// RunWatch: does the run still go on? Looks at the end marker and the health files of the workers, all of them
// untrusted, and remembers when each last gave a sign of life by the reader's own clock.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/process.h"
#include "format/run_files.h"
#include "store/store.h"
#include "tornasole/trial.h"

namespace tornasole::trial {

// Whether the process that wrote a health file is still alive; nothing if it runs on another host.
using ProcessProbe = std::function<std::optional<bool>(const ProcessIdentity& process)>;

class RunWatch {
 public:
  RunWatch(const Clock* clock, ProcessProbe probe);

  // Looks again. kIo if the store fails; anything odd in a file counts as no file.
  Status look(store::Store& store);
  // The end marker was there at the last look, and this old by the wall clock (negative: from the future).
  bool has_end_marker() const noexcept { return marker_age_s_.has_value(); }
  double marker_age_s() const noexcept { return marker_age_s_.value_or(0); }

  const RunStatus& status() const noexcept { return status_; }
  // Nothing more will come: it ended, failed or is presumed dead.
  bool is_over() const noexcept;
  // Somebody else saw a sign of life, such as a new file.
  void note_life() noexcept { last_life_ns_ = clock_.monotonic_ns(); }
  double silence_s() const noexcept;

 private:
  struct Writer {
    double heartbeat = 0;
    double modified_s = 0;
    std::int64_t changed_ns = 0;  // when either was seen to change
  };
  Status look_at_marker(store::Store& store);
  Status look_at_writers(store::Store& store);
  // What this worker's health file says about the run.
  RunStatus judge(const std::string& path, const store::FileStatus& file, const format::Health& health);

  const Clock& clock_;
  ProcessProbe probe_;
  std::map<std::string, Writer, std::less<>> writers_;  // by path
  std::optional<double> marker_age_s_;
  RunStatus status_;
  std::int64_t last_life_ns_;
};

}  // namespace tornasole::trial
