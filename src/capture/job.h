#pragma once

// What the training threads hand to the writer thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "capture/buffer_pool.h"
#include "format/collections_file.h"
#include "format/run_files.h"
#include "reduce/reduce.h"
#include "tornasole/mode.h"
#include "tornasole/model.h"
#include "tornasole/tensor.h"

namespace tornasole::capture {

struct StepId {
  std::uint64_t serial = 0;  // of the hook; never repeats
  std::int64_t global_step = 0;
  Mode mode = Mode::kGlobal;
  std::int64_t mode_step = 0;
};

// What TensorBoard gets of a tensor. The tags live as long as the hook.
struct SummaryOrder {
  const std::string* histogram_tag = nullptr;  // null: no histogram
  const std::string* scalar_tag = nullptr;     // null: no scalar
  bool is_alone = false;                       // the elements were sent for this alone and are not stored
  bool is_empty() const noexcept { return histogram_tag == nullptr && scalar_tag == nullptr; }
};

// One tensor to be written. The name lives as long as the hook.
struct ValueJob {
  std::uint64_t serial = 0;
  const std::string* name = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  double wall_time = 0;
  std::string_view content = {};  // row-major elements: in `buffer`, in a chunk released later, or in `small`
  Buffer buffer = {};             // keeps `content` alive, if it is not in a chunk
  std::vector<std::string> texts = {};
  SummaryOrder summary = {};
};
// One number that was computed of a tensor, under a name of its own.
struct Number {
  const std::string* name = nullptr;
  reduce::Scalar value = {};
};
// The numbers of one tensor; they lie in a chunk.
struct NumbersJob {
  std::uint64_t serial = 0;
  double wall_time = 0;
  std::span<const Number> numbers = {};
};
// A tensor too large for the queue: its pieces follow, possibly mixed with jobs of other threads.
struct StreamJob {
  std::uint64_t serial = 0;
  std::uint64_t stream = 0;
  const std::string* name = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  double wall_time = 0;
  std::uint64_t content_bytes = 0;
  SummaryOrder summary = {};
};
struct PieceJob {
  std::uint64_t stream = 0;
  std::size_t bytes = 0;
  Buffer buffer = {};
  bool is_cut = false;  // the caller gave up: the step is lost
};
struct ShapeJob {
  std::uint64_t serial = 0;
  const std::string* name = nullptr;
  Shape shape = {};
};
// The chunk is not referred to by any later job.
struct ChunkDoneJob {
  Buffer chunk = {};
};
struct StepStartJob {
  StepId id = {};
};
struct StepEndJob {
  StepId id = {};
  bool is_partial = false;
  StepFacts facts = {};
  std::vector<format::MetricRecord> metrics = {};
  std::shared_ptr<const format::CollectionsFile> collections = {};  // to be written before this step's index
};
// Whatever was written of the step is removed; it was counted by who dropped it.
struct StepDropJob {
  std::uint64_t serial = 0;
};
// A graph or summary for TensorBoard that is serialized already, of the step it was given at.
struct ReadySummaryJob {
  StepId id = {};
  double wall_time = 0;
  Bytes content = {};
  bool is_graph = false;
};
struct ModelJob {
  std::string text = {};
};
// The collections as they are before the first step, for whoever waits for a run to begin.
struct CollectionsJob {
  std::shared_ptr<const format::CollectionsFile> file = {};
};
struct CloseJob {
  bool is_failed = false;
  std::string reason = {};
  bool is_superseded = false;  // another hook of this process takes the directory over
  std::shared_ptr<const format::CollectionsFile> collections = {};
};
// Publish health now and tell the waiting thread (flush on a signal).
struct FlushJob {
  std::string failed_reason = {};
};

using Job = std::variant<ValueJob, NumbersJob, StreamJob, PieceJob, ShapeJob, ChunkDoneJob, StepStartJob, StepEndJob,
                         StepDropJob, ReadySummaryJob, ModelJob, CollectionsJob, FlushJob, CloseJob>;

}  // namespace tornasole::capture
