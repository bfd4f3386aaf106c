// Writer: what becomes visible of a run: steps as they end, and the small files beside them.

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "capture/writer.h"
#include "format/collections_file.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

// Each look is a request over the network.
constexpr std::int64_t kRemoteLookNs = 10'000'000'000;
constexpr std::size_t kMaxHeld = 64;

}  // namespace

void Writer::handle_job(StepEndJob& job) {
  if (job.id.serial == unbegun_) {
    unbegun_ = 0;
    health_->step_dropped("write", io_error("step {}: there was no memory to begin it", job.id.global_step));
  }
  if (!is_current(job.id.serial)) return;
  check_current(renew_if_gone());
  if (current_ && job.collections) {
    check_current(write_or_renew([&] { return write_collections(job.collections); }));
  }
  if (!current_) return;
  if (config_.fsync == config::FsyncPolicy::kInterval) {
    if (const Status flushed = current_->flush(); !flushed.ok()) {
      check_current(flushed);
      return;
    }
    held_.push_back({std::move(*current_), std::move(job)});
    summaries_.publish();  // whoever watches need not wait for the disk
    current_.reset();
    if (held_.size() >= kMaxHeld) publish_held();
    return;
  }
  const Status published = publish(&*current_, job);
  check_current(published);
  if (!published.ok()) return;
  const StepFiles files = std::move(*current_);
  current_.reset();  // whatever fails from here on, the step is not lost any more
  after_commit(files, job);
  summaries_.publish();
}

Status Writer::publish(StepFiles* files, const StepEndJob& end) {
  return write_or_renew([&] {
    // The values may be gone that an index would speak of.
    if (files->is_half_published()) return Status(io_error("its index could not be written"));
    return files->publish(
        {.is_partial = end.is_partial, .facts = end.facts, .sync = config_.fsync != config::FsyncPolicy::kNone});
  });
}

void Writer::publish_held() {
  last_sync_ns_ = clock_->monotonic_ns();
  if (held_.empty()) return;
  if (const Status renewed = renew_if_gone(); !renewed.ok()) health_->note("io", renewed.error());
  for (Finished& finished : held_) {
    const Status published = publish(&finished.files, finished.end);
    if (published.ok()) {
      after_commit(finished.files, finished.end);
      continue;
    }
    std::optional<StepFiles> open = std::exchange(current_, std::move(finished.files));
    check_current(published);
    current_ = std::move(open);
  }
  held_.clear();
}

void Writer::after_commit(const StepFiles& files, const StepEndJob& end) noexcept {
  failures_in_a_row_ = 0;
  last_published_ = std::max(last_published_, files.id().global_step);
  has_published_ = true;
  collections_.reset();
  health_->step_committed(files.id().global_step, static_cast<std::int64_t>(files.size_bytes()));
  try {
    follow_up(files, end);
  } catch (...) {
    health_->note("writer", error_from_current_exception());
  }
}

// What comes after a step and is no part of it.
void Writer::follow_up(const StepFiles& files, const StepEndJob& end) {
  if (off_until_ns_.exchange(0) != 0) {
    health_->log(LogLevel::kWarning, fmt::format("capture is on again: step {} was written", files.id().global_step));
  }
  mode_steps_[std::string(mode_name(files.id().mode))] = files.id().mode_step;
  for (const format::MetricRecord& metric : end.metrics) {
    const Status written = metrics_.append(metric, clock_->wall_seconds());
    if (!written.ok()) health_->value_dropped("metric", written.error());
  }
  look_for_stop_request();
  packer_.add(files.published_index());
  if (packer_.is_due()) write_index_pack();
  if (!config_.keep_steps) return;
  published_.push_back(files.id().global_step);
  if (const Status removed = remove_oldest(); !removed.ok()) health_->note("keep_steps", removed.error());
}

void Writer::look_for_stop_request() {
  if (!config_.honour_stop || is_stop_requested_) return;
  const std::int64_t now = clock_->monotonic_ns();
  if (store_->capabilities().is_remote && last_stop_look_ns_ != 0 && now - last_stop_look_ns_ < kRemoteLookNs) return;
  last_stop_look_ns_ = now;
  if (!store_->status(format::kStopRequestPath).ok()) return;
  is_stop_requested_ = true;
  health_->log(LogLevel::kWarning, "a stop of the training was requested (stop_request.json)");
}

Status Writer::remove_oldest() {
  while (static_cast<std::int64_t>(published_.size()) > *config_.keep_steps) {
    const std::int64_t oldest = published_.front();
    published_.pop_front();
    // The index first: nobody may find a step whose values are gone.
    TORNASOLE_CHECK(store_->remove(format::index_path(oldest, worker_)));
    const Status removed = store_->remove(format::event_path(oldest, worker_));
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
  }
  return published_.empty() ? Status() : packer_.remove_before(published_.front());
}

void Writer::write_index_pack() {
  const Status written = packer_.write();
  if (written.ok() || std::exchange(is_pack_failure_told_, true)) return;
  health_->log(LogLevel::kWarning,
               fmt::format("an index pack is left out, readers do without: {}", written.error().message));
}

// ---- files beside the steps

Status Writer::write_small_file(const std::string& path, ByteView content) {
  TORNASOLE_TRY(const auto file, store_->create(path));
  TORNASOLE_CHECK(file->append(content));
  if (config_.fsync != config::FsyncPolicy::kNone) TORNASOLE_CHECK(file->sync());
  return file->publish(/*replace=*/true);
}

Status Writer::write_collections(const std::shared_ptr<const format::CollectionsFile>& file) {
  if (!has_published_) collections_ = file;
  return write_small_file(format::collections_path(worker_), format::encode_collections(*file));
}

format::Health Writer::make_health() const {
  const Health::Counts counts = health_->counts();
  format::Health health;
  health.state = failed_reason_.empty() ? format::RunState::kRunning : format::RunState::kFailed;
  health.reason = failed_reason_;
  health.due = counts.due;
  health.committed = counts.committed;
  health.dropped = counts.dropped_steps;
  health.dropped_values = counts.dropped_values;
  health.last_committed = counts.last_committed;
  health.queue_peak_bytes = static_cast<std::int64_t>(queue_.pool_peak_bytes());
  health.wait_ms = counts.wait_ns / 1'000'000;
  health.when_full = config_.when_full == WhenFull::kDrop ? "drop" : "block";
  switch (config_.fsync) {
    case config::FsyncPolicy::kNone: health.fsync = "none"; break;
    case config::FsyncPolicy::kStep: health.fsync = "step"; break;
    case config::FsyncPolicy::kInterval: health.fsync = fmt::format("{}s", config_.fsync_interval_s); break;
  }
  health.errors = counts.errors;
  health.requests = store_->traffic().by_name();
  health.mode_steps = mode_steps_;
  return health;
}

void Writer::publish_health(bool is_urgent) {
  if (!run_.has_begun() || is_refused_) return;
  const std::int64_t age = clock_->monotonic_ns() - last_health_ns_;
  if (!is_urgent && age < (health_->changes() != published_changes_ ? health_ns_ : heartbeat_ns_)) return;
  if (const Status renewed = renew_if_gone(); !renewed.ok()) {
    last_health_ns_ = clock_->monotonic_ns();
    health_->note("health", renewed.error());
    return;
  }
  write_health();
}

void Writer::write_health() {
  last_health_ns_ = clock_->monotonic_ns();
  published_changes_ = health_->changes();
  const Status published = run_.publish_health(make_health());
  if (!published.ok()) health_->note("health", published.error());
  failed_reason_.clear();
}

void Writer::tick() {
  const std::int64_t now = clock_->monotonic_ns();
  if (current_ && current_->has_unflushed() && now - last_flush_ns_ >= kFlushNs) {
    last_flush_ns_ = now;
    check_current(current_->flush());
  }
  if (!held_.empty() && static_cast<double>(now - last_sync_ns_) >= config_.fsync_interval_s * 1e9) publish_held();
  publish_health(/*is_urgent=*/false);
}

}  // namespace tornasole::capture
