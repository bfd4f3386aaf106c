// Writer: how its directory is taken, and taken again if somebody removes it before a step was published.

#include <chrono>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "capture/writer.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

// Each worker of a host may clear the directory once.
constexpr int kMaxRenewals = 16;
// Whoever removes a directory needs a moment to finish.
constexpr double kRemovalSeconds = 0.05;

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

Status Writer::ensure_begun() {
  if (is_refused_) return runtime_error("{} belongs to another process", store_->description());
  if (run_.has_begun()) return renew_if_gone();
  std::int64_t first_free = 0;
  Status begun = begin_run(&first_free);
  if (!begun.ok()) {
    if (begun.error().code == ErrorCode::kInvalid) is_refused_ = true;
    return begun;
  }
  last_published_ = first_free - 1;
  if (config_.keep_steps && first_free > 0) {
    TORNASOLE_TRY(const auto entries, store_->list("index", /*recursive=*/true));
    for (const store::Entry& entry : entries) {
      const auto file = format::parse_step_file(entry.path, ".json");
      if (file && file->worker_file_name == worker_) published_.push_back(file->step);
    }
    TORNASOLE_CHECK(packer_.find_made());
  }
  if (!model_text_.empty()) {
    TORNASOLE_CHECK(write_or_renew([this] { return write_small_file(format::model_path(worker_), model_text_); }));
  }
  publish_health(/*is_urgent=*/true);
  return {};
}

Status Writer::begin_run(std::int64_t* first_free_step) {
  while (true) {
    store_->renew_root();
    Status begun = run_.begin(sleep_seconds, first_free_step);
    if (begun.ok() || begun.error().code != ErrorCode::kIo || renewals_ == kMaxRenewals) return begun;
    sleep_seconds(kRemovalSeconds);
    if (!store_->renew_root()) return begun;
    ++renewals_;
  }
}

Status Writer::write_or_renew(const std::function<Status()>& write) {
  Status written = write();
  while (!written.ok() && written.error().code == ErrorCode::kIo && !has_published_) {
    const int renewals = renewals_;
    sleep_seconds(kRemovalSeconds);
    TORNASOLE_CHECK(renew_if_gone());
    if (renewals_ == renewals) break;
    written = write();
  }
  return written;
}

void Writer::open_first_event_file() {
  if (has_published_ || current_->has_event_file()) return;
  check_current(write_or_renew([this] { return current_->open_event_file(); }));
}

Status Writer::renew_if_gone() {
  if (has_published_ || renewals_ == kMaxRenewals) return {};
  bool is_gone = run_.is_gone() || (current_ && current_->is_lost());
  for (const Finished& finished : held_) is_gone |= finished.files.is_lost();
  if (!is_gone) return {};
  if (!std::exchange(is_removal_told_, true)) {
    health_->log(LogLevel::kWarning,
                 fmt::format("{} was removed before a step was published; it is taken again", store_->description()));
  }
  Status renewed;
  do {
    ++renewals_;
    sleep_seconds(kRemovalSeconds);
    renewed = renew();
  } while (!renewed.ok() && renewed.error().code == ErrorCode::kIo && renewals_ < kMaxRenewals && run_.is_gone());
  const bool is_taken =
      !renewed.ok() && (renewed.error().code == ErrorCode::kInvalid || renewed.error().code == ErrorCode::kEnded);
  if (is_taken) is_refused_ = true;
  return renewed;
}

Status Writer::renew() {
  TORNASOLE_CHECK(run_.renew(sleep_seconds));
  if (!model_text_.empty()) TORNASOLE_CHECK(write_small_file(format::model_path(worker_), model_text_));
  if (collections_) TORNASOLE_CHECK(write_collections(collections_));
  for (Finished& finished : held_) TORNASOLE_CHECK(finished.files.rescue());
  if (current_) TORNASOLE_CHECK(current_->rescue());
  write_health();
  return {};
}

}  // namespace tornasole::capture
