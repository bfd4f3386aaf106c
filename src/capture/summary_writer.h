#pragma once

// SummaryWriter: what TensorBoard gets of the steps of a hook, worked out on the writer thread.
//
//   1. begin: a step starts. add, begin_stream and add_piece: its values, of which some have a scalar or a histogram.
//   2. publish: the step is committed, its file gets its name. drop: the step is lost, and so are its summaries.
//
// Nothing here can fail a step: what cannot be written is counted under "tensorboard". Writer thread only.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/health.h"
#include "capture/job.h"
#include "config/config.h"
#include "reduce/histogram.h"
#include "store/store.h"
#include "tensorboard/step_summaries.h"

namespace tornasole::capture {

// Whether summaries could go there, as far as that can be told without asking anybody.
Status check_summary_root(const std::string& root);

class SummaryWriter {
 public:
  // Inside the run's directory the files go through its own store. `store` and `health` outlive the writer.
  SummaryWriter(const config::Config& config, store::Store* store, Health* health);

  void begin(const StepId& id) noexcept;
  void add(const ValueJob& value) noexcept;
  void begin_stream(const StreamJob& stream) noexcept;
  void add_piece(std::string_view piece) noexcept;
  void cut_stream() noexcept { stream_.reset(); }
  bool is_streaming() const noexcept { return stream_.has_value(); }
  // Kept until a step begins, whose file it goes into, or until the end.
  void add_ready(ReadySummaryJob job) noexcept;
  void drop() noexcept;
  void finish() noexcept;
  void publish() noexcept;
  // From any thread: a root on an object store is not waited for any more.
  void cancel() noexcept;

 private:
  struct Stream {
    StreamJob job = {};
    std::uint64_t rest_bytes = 0;
    reduce::PiecewiseHistogram histogram = {};
  };
  Status try_add(const ValueJob& value);
  Status add_histogram(const std::string& tag, double wall_time, const reduce::Histogram& histogram);
  Status try_add_piece(std::string_view piece);
  void write_ready() noexcept;
  Status find_place();
  Status flush_if_large();
  void lose(std::int64_t count, const Error& why) noexcept;
  template <typename Call>
  void guarded(Call&& call) noexcept;

  const std::string root_;  // empty: no TensorBoard
  const bool is_shared_;
  store::Store* const run_store_;
  Health* const health_;
  std::int64_t step_ = 0;
  std::mutex mutex_;
  bool is_cancelled_ = false;                // guarded by mutex_
  std::unique_ptr<store::Store> own_store_;  // of a root outside the run's directory; set under mutex_
  tensorboard::SummaryPlace place_;
  std::optional<tensorboard::StepSummaries> summaries_;
  std::optional<Stream> stream_;
  std::vector<ReadySummaryJob> ready_;
  std::vector<std::uint64_t> aligned_;
};

}  // namespace tornasole::capture
