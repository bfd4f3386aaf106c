#pragma once

// StepSummaries: the TensorBoard file of one step, while it is being written.
//
//   in:  payloads (summary_event.h), in any number
//   out: <directory>/<MODE>/<step>_<process>_<host>.tfevents, once it is whole; nothing if nothing was added
//   who: the writer thread of capture
//
// TensorBoard walks the files of a run in the order of their names and never goes back, which the step at the front of
// the name serves. Until it is whole the file has the suffix .tmp: with another name in front TensorBoard, which reads
// it under either name, would take its points twice.

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "store/store.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole::tensorboard {

// Where the files of a process go.
struct SummaryPlace {
  store::Store* store = nullptr;  // outlives everything written to it
  std::string directory = {};     // in the store; "" for its root
  std::int64_t process = 0;
  std::string host = {};
};

class StepSummaries {
 public:
  StepSummaries(Mode mode, std::int64_t step) : mode_(mode), step_(step) {}

  // The first one is put behind a version record of the same time.
  void add(double wall_time, ByteView payload);
  std::int64_t count() const noexcept { return count_; }
  std::uint64_t gathered_bytes() const noexcept { return gathered_.size(); }
  // What was gathered leaves the process, under the temporary name.
  Status flush(const SummaryPlace& place);
  // After an error nothing is left of the file.
  Status publish(const SummaryPlace& place);

 private:
  std::string path(const SummaryPlace& place) const;

  Mode mode_;
  std::int64_t step_;
  std::int64_t count_ = 0;
  Bytes gathered_;
  std::unique_ptr<store::PendingFile> file_;
};

}  // namespace tornasole::tensorboard
