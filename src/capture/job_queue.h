#pragma once

// JobQueue: the one channel from the training threads to the writer thread, bounded in bytes by its buffer pool.
//
// Who needs memory for a value takes it here and may have to wait; jobs themselves never wait. Waking a thread costs
// who does it about ten microseconds, so the writer is not woken for each value, but for a step's end, for half a
// megabyte, or by its own clock; and for two seconds after it had work it naps and looks by itself, a few milliseconds
// late at most, so that a training in its stride does not have to wake it at all. It looks again soon while much comes,
// which is still in the caches then, and ever more seldom while little or nothing does.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "capture/buffer_pool.h"
#include "capture/job.h"

namespace tornasole::capture {

class JobQueue {
 public:
  JobQueue(std::size_t limit_bytes, const Clock* clock);

  // ---- training threads
  enum class Wake {
    kLater,  // not for this job
    kSoon,   // at the end of a nap
    kNow,
  };
  // Where it throws, the job is still the caller's.
  void push(Job&& job, std::size_t bytes, Wake wake);
  // How long a taker may wait, and what counts as the store standing still.
  struct WaitLimits {
    std::int64_t max_wait_ns = 0;  // in all; INT64_MAX: as long as there is progress
    std::int64_t max_without_progress_ns = 0;
  };
  // A buffer of that size; an empty one when the limits are exceeded. Adds the time waited to *waited_ns.
  Buffer take_buffer(std::size_t bytes, const WaitLimits& limits, std::int64_t* waited_ns);
  std::size_t pool_peak_bytes() const { return pool_.peak_bytes(); }
  std::size_t pool_limit_bytes() const noexcept { return pool_.limit_bytes(); }

  // ---- writer thread
  // Moves all jobs to *jobs (emptied before); waits up to `wait_ns` for some. False if there are none.
  bool pop_all(std::vector<Job>* jobs, std::int64_t wait_ns);
  // Buffers came back.
  void notify_space();
  // Whether a quarter of the memory is in use: the writer then goes the way that is over soonest, otherwise the one
  // that takes least of the processor.
  bool is_filling() const { return pool_.used_bytes() > pool_.limit_bytes() / 4; }
  // Bytes reached the store.
  void note_progress() noexcept { progress_.fetch_add(1, std::memory_order_relaxed); }

 private:
  BufferPool pool_;
  const std::size_t urgent_bytes_;  // so much must not wait for the end of a nap
  const Clock* clock_;
  std::mutex mutex_;
  std::condition_variable jobs_ready_;
  std::condition_variable space_ready_;
  std::vector<Job> jobs_;          // guarded by mutex_
  std::size_t pending_bytes_ = 0;  // guarded by mutex_
  bool wake_ = false;              // guarded by mutex_; the jobs are worth a look
  bool is_urgent_ = false;         // guarded by mutex_; even in a nap
  bool is_napping_ = false;        // guarded by mutex_
  // Writer thread only: how long it naps, and until when.
  std::chrono::milliseconds nap_{1};
  std::chrono::steady_clock::time_point nap_until_;
  std::atomic<std::uint64_t> progress_ = 0;
};

}  // namespace tornasole::capture
