#include "capture/writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"
#include "format/collections_file.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kHeartbeatNs = 10 * kSecondNs;
// Where each file is a request over the network.
constexpr std::int64_t kRemoteHealthNs = 10 * kSecondNs;
constexpr std::int64_t kRemoteHeartbeatNs = 60 * kSecondNs;
constexpr std::int64_t kRetryNs = 60 * kSecondNs;
constexpr int kFailuresUntilOff = 5;

}  // namespace

Writer::Writer(const config::Config& config, std::unique_ptr<store::Store> store, const Clock* clock,
               const RunIdentity& identity, std::shared_ptr<Health> health)
    : config_(config),
      store_(std::move(store)),
      clock_(clock),
      health_ns_(store_->capabilities().is_remote ? kRemoteHealthNs : kSecondNs),
      heartbeat_ns_(store_->capabilities().is_remote ? kRemoteHeartbeatNs : kHeartbeatNs),
      refusal_level_(identity.writer_count == 1 ? LogLevel::kWarning : LogLevel::kError),
      health_(std::move(health)),
      queue_(static_cast<std::size_t>(config.queue_bytes), clock),
      run_(store_.get(), clock, identity),
      worker_(identity.worker),
      summaries_(config_, store_.get(), health_.get()),
      packer_(store_.get(), worker_, config.keep_steps.has_value()),
      mode_steps_(identity.mode_steps),
      metrics_(config.metrics_dir) {}

Writer::~Writer() {
  // The thread holds a reference, so it has ended, or it is the one that runs this.
  if (thread_.joinable()) thread_.detach();
}

// ---- hook's side

void Writer::push(Job&& job, std::size_t bytes, JobQueue::Wake wake) {
  if (!is_started_.load(std::memory_order_relaxed)) start();
  pushed_.fetch_add(1, std::memory_order_relaxed);
  queue_.push(std::move(job), bytes, wake);
}

void Writer::start() {
  const std::lock_guard lock(mutex_);
  if (is_started_) return;
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
  is_started_ = true;
}

bool Writer::has_started() const noexcept { return pushed_.load(std::memory_order_relaxed) > 0; }

bool Writer::is_untouched() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && !is_started_ && !has_started();
}

bool Writer::accepts_step() noexcept {
  if (is_refused_.load(std::memory_order_relaxed)) return false;
  std::int64_t until = off_until_ns_.load(std::memory_order_relaxed);
  if (until == 0) return true;
  const std::int64_t now = clock_->monotonic_ns();
  return now >= until && off_until_ns_.compare_exchange_strong(until, now + kRetryNs);
}

bool Writer::wait_idle(double seconds) {
  std::unique_lock lock(mutex_);
  const std::uint64_t target = pushed_;
  return idle_.wait_for(lock, std::chrono::duration<double>(seconds),
                        [&] { return handled_ >= target || has_ended_ || !thread_.joinable(); });
}

bool Writer::close(CloseJob job, double seconds) {
  try {
    push(std::move(job), 0, JobQueue::Wake::kNow);
  } catch (...) {
    is_abandoned_ = true;  // no memory for one job: the thread must not outlive its hook for that
    health_->note("close", error_from_current_exception());
    return false;
  }
  std::unique_lock lock(mutex_);
  bool ended = idle_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return has_ended_; });
  if (!ended) {
    // What waits for the network stops waiting; the rest is counted and the thread ends by itself.
    store_->cancel();
    summaries_.cancel();
    if (store_->capabilities().is_remote) {
      ended = idle_.wait_for(lock, std::chrono::seconds(2), [&] { return has_ended_; });
    }
  }
  std::thread thread = std::move(thread_);
  lock.unlock();
  if (!thread.joinable()) return ended;
  if (ended) {
    thread.join();
  } else {
    thread.detach();
  }
  return ended;
}

const std::string* Writer::keep_name(std::string name) { return &names_.emplace_back(std::move(name)); }

// ---- the thread

void Writer::run() noexcept {
  std::vector<Job> jobs;
  last_health_ns_ = clock_->monotonic_ns();
  while (!is_closing_ && !is_abandoned_.load(std::memory_order_relaxed)) {
    std::size_t count = 0;
    try {
      queue_.pop_all(&jobs, wait_ns());
      count = jobs.size();
      const bool has_last =
          std::ranges::any_of(jobs, [](const Job& job) { return std::holds_alternative<CloseJob>(job); });
      may_keep_ = !has_last && !queue_.is_filling();
      if (current_) current_->let_keep(may_keep_);
      for (Job& job : jobs) handle(&job);
      // Also when there was no memory to keep it for later: nothing follows that could end this thread.
      is_closing_ |= has_last && deferred_.empty();
      jobs.clear();
      tick();
    } catch (...) {
      health_->note("writer", error_from_current_exception());
      jobs.clear();
    }
    queue_.notify_space();
    const std::lock_guard lock(mutex_);
    handled_ += count;
    idle_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  idle_.notify_all();
}

std::int64_t Writer::wait_ns() const {
  // Jobs of an open step need not wake the thread, so while there is one it looks by itself.
  if (current_ || stream_ != 0) return kFlushNs;
  const std::int64_t age = clock_->monotonic_ns() - last_health_ns_;
  const bool is_changed = run_.has_begun() && health_->changes() != published_changes_;
  std::int64_t wait = std::max(kFlushNs, (is_changed ? health_ns_ : heartbeat_ns_) - age);
  if (!held_.empty())
    wait = std::min(wait, std::max(kFlushNs, static_cast<std::int64_t>(config_.fsync_interval_s * 0.25e9)));
  return wait;
}

// Nothing that becomes of a job keeps those after it from being handled.
void Writer::handle(Job* job) noexcept {
  try {
    // While a stream is open its pieces go first; the rest keeps its order behind it.
    if (stream_ != 0 && !std::holds_alternative<PieceJob>(*job) && !std::holds_alternative<StepDropJob>(*job)) {
      deferred_.push_back(std::move(*job));
      return;
    }
    std::visit([this](auto& typed) { handle_job(typed); }, *job);
  } catch (...) {
    stream_ = 0;
    try {
      step_failed("write", error_from_current_exception());
    } catch (...) {
      current_.reset();  // no memory to say so either
      health_->note("writer", error_from_current_exception());
    }
  }
  if (stream_ == 0 && !deferred_.empty()) {
    std::vector<Job> waiting = std::exchange(deferred_, {});
    for (Job& next : waiting) handle(&next);
  }
}

void Writer::check_current(const Status& status) {
  queue_.note_progress();
  if (!status.ok()) step_failed(status.error().code == ErrorCode::kIo ? "io" : "write", status.error());
}

void Writer::note_unaccepted_step() {
  health_->step_dropped(cause_of("off"), io_error("capture is off: {} could not be written to", store_->description()),
                        level());
}

void Writer::step_failed(std::string_view cause, const Error& error) {
  if (!current_) {
    health_->note(cause_of(cause), error, level());
    return;
  }
  current_->abandon();
  summaries_.drop();
  const std::int64_t step = current_->id().global_step;
  current_.reset();
  health_->step_dropped(cause_of(cause), make_error(error.code, error.kind, "step {}: {}", step, error.message),
                        level());
  if (is_refused_ || ++failures_in_a_row_ < kFailuresUntilOff) return;
  if (off_until_ns_.exchange(clock_->monotonic_ns() + kRetryNs) == 0) {
    health_->note("off",
                  io_error("{} steps in a row could not be written to {}; capture is off, one step a minute is tried",
                           failures_in_a_row_, store_->description()));
  }
}

void Writer::handle_job(StepStartJob& job) {
  if (current_) {  // a step that was neither ended nor dropped: its owner lost track of it
    current_->abandon();
    health_->step_dropped("unfinished", io_error("step {} was never ended", current_->id().global_step));
  }
  try {
    current_.emplace(store_.get(), job.id, worker_);
    current_->let_keep(may_keep_);
  } catch (...) {  // no memory: counted at its end, unless the hook gives it up before
    unbegun_ = job.id.serial;
    health_->note("write", error_from_current_exception());
    return;
  }
  summaries_.begin(job.id);
  if (const Status begun = ensure_begun(); !begun.ok()) {
    step_failed("io", begun.error());
    return;
  }
  if (job.id.global_step > last_published_) return;
  const auto existing = store_->status(format::index_path(job.id.global_step, worker_));
  if (existing.ok()) {
    current_.reset();
    summaries_.drop();
    health_->step_dropped("already_published",
                          io_error("step {} is already published and is never written again", job.id.global_step));
  }
}

void Writer::handle_job(ValueJob& job) {
  if (is_current(job.serial)) {
    if (!job.summary.is_alone) {
      open_first_event_file();
      if (current_) check_current(current_->add_value(job));
    }
    if (current_) summaries_.add(job);
  }
  if (job.buffer) {
    job.buffer.reset();
    queue_.notify_space();
  }
}

void Writer::handle_job(NumbersJob& job) {
  if (!is_current(job.serial)) return;
  open_first_event_file();
  for (const Number& number : job.numbers) {
    if (!current_) return;
    check_current(current_->add_value({.name = number.name,
                                       .dtype = number.value.dtype(),
                                       .shape = Shape{1},
                                       .wall_time = job.wall_time,
                                       .content = number.value.bytes()}));
  }
}

void Writer::handle_job(StreamJob& job) {
  if (!is_current(job.serial)) return;  // its pieces are then nobody's
  is_stream_stored_ = !job.summary.is_alone;
  if (is_stream_stored_) {
    open_first_event_file();
    if (current_) check_current(current_->begin_stream(job));
  }
  if (current_) summaries_.begin_stream(job);
  if (current_) stream_ = job.stream;
}

void Writer::handle_job(PieceJob& job) {
  if (job.stream == stream_ && current_) {
    const std::string_view piece(reinterpret_cast<const char*>(job.buffer.data()), job.is_cut ? 0 : job.bytes);
    if (job.is_cut) {  // counted by who gave up
      stream_ = 0;
      summaries_.cut_stream();
      if (is_stream_stored_) {
        current_->abandon();
        summaries_.drop();
        current_.reset();
      }
    } else if (is_stream_stored_) {
      check_current(current_->add_piece(piece));
      if (current_) summaries_.add_piece(piece);
      if (!current_ || !current_->is_streaming()) stream_ = 0;
    } else {
      summaries_.add_piece(piece);
      if (!summaries_.is_streaming()) stream_ = 0;
    }
  }
  job.buffer.reset();
  queue_.notify_space();
}

void Writer::handle_job(ShapeJob& job) {
  if (is_current(job.serial)) current_->add_shape(job);
}

void Writer::handle_job(ChunkDoneJob& job) {
  job.chunk.reset();
  queue_.notify_space();
}

void Writer::handle_job(StepDropJob& job) {
  if (!is_current(job.serial)) return;
  stream_ = 0;
  current_->abandon();
  summaries_.drop();
  current_.reset();
}

void Writer::handle_job(ReadySummaryJob& job) { summaries_.add_ready(std::move(job)); }

void Writer::handle_job(ModelJob& job) {
  model_text_ = std::move(job.text);
  if (!run_.has_begun()) return;
  const Status written = write_small_file(format::model_path(worker_), model_text_);
  if (!written.ok()) health_->note("model", written.error());
}

void Writer::handle_job(CollectionsJob& job) {
  Status written = ensure_begun();
  if (written.ok()) written = write_or_renew([&] { return write_collections(job.file); });
  if (!written.ok()) health_->note(cause_of("collections"), written.error(), level());
}

void Writer::handle_job(FlushJob& job) {
  failed_reason_ = job.failed_reason;
  if (current_) check_current(current_->flush());
  publish_held();
  publish_health(/*is_urgent=*/true);
}

void Writer::handle_job(CloseJob& job) {
  is_closing_ = true;
  publish_held();
  if (current_) {
    current_->abandon();
    summaries_.drop();
    health_->step_dropped("unfinished", io_error("step {} was never ended", current_->id().global_step));
    current_.reset();
  }
  metrics_.close();
  if (run_.has_begun()) summaries_.finish();
  if (job.is_superseded) {
    run_.release();
    return;
  }
  if (!run_.has_begun() && job.is_failed) return;  // nothing was written, so there is nothing to end
  const Status begun = ensure_begun();
  if (!begun.ok()) {
    health_->note(cause_of("close"), begun.error(), level());
    return;
  }
  if (job.collections) {
    const Status written = write_collections(job.collections);
    if (!written.ok()) health_->note("close", written.error());
  }
  write_index_pack();
  // The end is said when everything before it has arrived, if that can be waited for.
  settle();
  format::Health health = make_health();
  health.state = job.is_failed ? format::RunState::kFailed : format::RunState::kEnded;
  health.reason = job.reason;
  const Status ended = run_.end(std::move(health));
  if (!ended.ok()) health_->note("close", ended.error());
  settle();
}

void Writer::settle() {
  const Status settled = store_->settle();
  if (!settled.ok()) health_->log(LogLevel::kWarning, settled.error().message);
}

}  // namespace tornasole::capture
