#include "capture/job_queue.h"

#include <algorithm>
#include <chrono>

namespace tornasole::capture {
namespace {

constexpr std::size_t kWakeBytes = std::size_t{512} << 10;
constexpr std::size_t kUrgentBytes = std::size_t{16} << 20;
constexpr std::int64_t kSliceNs = 20'000'000;  // a waiting taker looks again this often
constexpr std::chrono::seconds kNapsFor{2};    // after the last job
constexpr std::chrono::milliseconds kShortNap{1};
constexpr std::chrono::milliseconds kLongNap{8};

}  // namespace

JobQueue::JobQueue(std::size_t limit_bytes, const Clock* clock)
    : pool_(limit_bytes), urgent_bytes_(std::min(kUrgentBytes, limit_bytes / 4)), clock_(clock) {}

void JobQueue::push(Job&& job, std::size_t bytes, Wake wake) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    pending_bytes_ += bytes;
    const bool is_urgent = wake == Wake::kNow || pending_bytes_ >= urgent_bytes_;
    const bool is_worth_it = is_urgent || wake == Wake::kSoon || pending_bytes_ >= kWakeBytes;
    notify = (is_urgent && !is_urgent_) || (is_worth_it && !wake_ && !is_napping_);
    wake_ = wake_ || is_worth_it;
    is_urgent_ = is_urgent_ || is_urgent;
  }
  if (notify) jobs_ready_.notify_one();
}

Buffer JobQueue::take_buffer(std::size_t bytes, const WaitLimits& limits, std::int64_t* waited_ns) {
  Buffer buffer = pool_.try_take(bytes);
  if (buffer || limits.max_wait_ns <= 0) return buffer;
  const std::int64_t start = clock_->monotonic_ns();
  std::int64_t progress_at = start;
  std::uint64_t progress = progress_.load(std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  // The writer may be asleep over jobs that were not worth waking it for.
  wake_ = is_urgent_ = true;
  jobs_ready_.notify_one();
  for (;;) {
    buffer = pool_.try_take(bytes);
    const std::int64_t now = clock_->monotonic_ns();
    if (const std::uint64_t latest = progress_.load(std::memory_order_relaxed); latest != progress) {
      progress = latest;
      progress_at = now;
    }
    *waited_ns = now - start;
    if (buffer || *waited_ns >= limits.max_wait_ns || now - progress_at >= limits.max_without_progress_ns)
      return buffer;
    const std::int64_t rest = std::min(limits.max_wait_ns - *waited_ns, kSliceNs);
    space_ready_.wait_for(lock, std::chrono::nanoseconds(rest));
  }
}

bool JobQueue::pop_all(std::vector<Job>* jobs, std::int64_t wait_ns) {
  using Steady = std::chrono::steady_clock;
  jobs->clear();
  const auto end = Steady::now() + std::chrono::nanoseconds(wait_ns);
  std::unique_lock lock(mutex_);
  is_napping_ = true;
  while (!wake_ && Steady::now() < std::min(end, nap_until_)) {
    jobs_ready_.wait_for(lock, nap_, [this] { return is_urgent_; });
    nap_ = std::min(2 * nap_, kLongNap);
  }
  is_napping_ = false;
  if (!wake_) jobs_ready_.wait_until(lock, end, [this] { return wake_; });
  jobs->swap(jobs_);
  if (!jobs->empty()) {
    nap_ = pending_bytes_ >= kWakeBytes ? kShortNap : kLongNap;
    nap_until_ = Steady::now() + kNapsFor;
  }
  wake_ = is_urgent_ = false;
  pending_bytes_ = 0;
  return !jobs->empty();
}

void JobQueue::notify_space() {
  // Taken so that a taker between its look and its wait does not miss the call.
  {
    const std::lock_guard lock(mutex_);
  }
  space_ready_.notify_all();
}

}  // namespace tornasole::capture
