#include "store/spool/spool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"

namespace tornasole::store {
namespace {

Status write_file(Store& store, std::string_view path, ByteView content, bool is_durable) {
  TORNASOLE_TRY(const auto file, store.create(path));
  TORNASOLE_CHECK(file->append(content));
  if (is_durable) TORNASOLE_CHECK(file->sync());
  TORNASOLE_CHECK(file->publish(/*replace=*/false));
  return is_durable ? store.sync_directory("") : Status();
}

std::string files_text(std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "file" : "files"); }

}  // namespace

Spool::Spool(std::unique_ptr<Store> target, std::unique_ptr<Store> journal, SpoolOptions options, FoundSpool self)
    : target_(std::move(target)), journal_(std::move(journal)), options_(std::move(options)), self_(std::move(self)) {}

Spool::~Spool() {
  cancel();
  std::thread thread;
  bool is_clean = false;
  {
    const std::lock_guard lock(mutex_);
    thread = std::move(thread_);
    is_clean = has_owner_ && actions_.empty() && refused_ == 0;
  }
  if (thread.joinable()) thread.join();
  if (!is_clean) return;
  try {
    remove_empty_spool(*journal_, self_);
  } catch (...) {
    static_cast<void>(error_from_current_exception());  // an empty directory stays behind
  }
}

void Spool::log(const std::string& message) const {
  if (options_.log) options_.log(message);
}

bool Spool::must_wait() {
  const std::lock_guard lock(mutex_);
  return is_cancelled_ || !actions_.empty();
}

Status Spool::check_reachable() {
  const std::lock_guard lock(mutex_);
  if (is_cancelled_ || is_away_) return io_error("{} is away", target_->description());
  return {};
}

void Spool::note_away(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_away_, true)) return;
  }
  log(fmt::format("{} is away; what is saved waits in {} until it is back: {}", target_->description(), self_.directory,
                  why.message));
}

Status Spool::reserve(std::uint64_t bytes) {
  if (bytes > options_.max_bytes) {
    return io_error("{} bytes do not fit the spool {}, which has room for {}; give a larger spool_bytes", bytes,
                    self_.directory, options_.max_bytes);
  }
  std::unique_lock lock(mutex_);
  const auto fits = [&] { return used_bytes_ + bytes <= options_.max_bytes; };
  changed_.wait(lock, [&] { return is_cancelled_ || fits(); });
  if (!fits()) {
    return io_error("the spool {} is full: {} of {} bytes are taken", self_.directory, used_bytes_, options_.max_bytes);
  }
  used_bytes_ += bytes;
  return {};
}

void Spool::release(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= std::min(bytes, used_bytes_);
  }
  changed_.notify_all();
}

std::int64_t Spool::next_number() {
  const std::lock_guard lock(mutex_);
  return next_number_++;
}

Status Spool::add(SpoolAction action, bool is_durable) {
  bool has_owner = false;
  {
    const std::lock_guard lock(mutex_);
    has_owner = std::exchange(has_owner_, true);
  }
  if (!has_owner) {
    Status owned = write_file(*journal_, kSpoolOwnerPath, encode_spool_owner(self_.owner), is_durable);
    if (!owned.ok()) {
      const std::lock_guard lock(mutex_);
      has_owner_ = false;
      return owned;
    }
  }
  TORNASOLE_CHECK(write_file(*journal_, spool_action_path(action.number), encode_spool_action(action), is_durable));
  {
    const std::lock_guard lock(mutex_);
    newest_[action.path] = action.number;
    actions_.push_back(std::move(action));
    ++spooled_;
    if (!thread_.joinable() && !is_cancelled_) thread_ = std::thread([this] { carry(); });
  }
  changed_.notify_all();
  return {};
}

std::optional<SpoolAction> Spool::waiting(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const auto found = newest_.find(path);
  if (found == newest_.end()) return std::nullopt;
  const auto action = std::ranges::find(actions_, found->second, &SpoolAction::number);
  if (action == actions_.end()) return std::nullopt;
  return *action;
}

std::vector<SpoolAction> Spool::waiting_below(std::string_view directory) {
  const std::string prefix = directory.empty() ? std::string() : std::string(directory) + '/';
  std::vector<SpoolAction> found;
  const std::lock_guard lock(mutex_);
  for (const SpoolAction& action : actions_) {
    const auto newest = newest_.find(action.path);
    if (newest != newest_.end() && newest->second == action.number && action.path.starts_with(prefix)) {
      found.push_back(action);
    }
  }
  std::ranges::sort(found, {}, &SpoolAction::path);
  return found;
}

double Spool::spooled_at_s(std::int64_t number) {
  const auto status = journal_->status(spool_action_path(number));
  return status.ok() ? status->modified_s : 0;
}

Status Spool::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_cancelled_ || actions_.empty(); });
  if (actions_.empty() && refused_ == 0) return {};
  const std::size_t left = actions_.size() + refused_;
  return io_error("{} of {} {} in {}; to send {}: tornasole upload {}", files_text(left), target_->description(),
                  left == 1 ? "waits" : "wait", self_.directory, left == 1 ? "it" : "them", self_.directory);
}

void Spool::cancel() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  changed_.notify_all();
  target_->cancel();
}

StoreTraffic Spool::traffic() {
  StoreTraffic traffic = target_->traffic();
  const std::lock_guard lock(mutex_);
  traffic.spooled = spooled_;
  traffic.waiting = actions_.size() + refused_;
  return traffic;
}

// The thread.
void Spool::carry() noexcept {
  double wait_s = options_.first_wait_s;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_cancelled_ || !actions_.empty(); });
    if (is_cancelled_) return;
    bool is_done = false;
    try {
      const SpoolAction action = actions_.front();
      lock.unlock();
      is_done = carry_one(action);
      lock.lock();
    } catch (...) {
      static_cast<void>(error_from_current_exception());  // no memory: as if the store had not answered
      if (!lock.owns_lock()) lock.lock();
    }
    if (is_done) {
      wait_s = options_.first_wait_s;
      continue;
    }
    is_away_ = true;
    changed_.wait_for(lock, std::chrono::duration<double>(wait_s), [this] { return is_cancelled_; });
    wait_s = std::min(wait_s * 2, options_.max_wait_s);
  }
}

bool Spool::carry_one(const SpoolAction& action) {
  const Status done = perform_spool_action(*journal_, action, *target_);
  const bool is_refused =
      !done.ok() && (done.error().code == ErrorCode::kInvalid || done.error().code == ErrorCode::kCorrupt);
  if (!done.ok() && !is_refused) return false;
  if (is_refused) {
    log(fmt::format("{} is not sent and stays in {}: {}", action.path, self_.directory, done.error().message));
  } else if (const Status forgotten = forget_spool_action(*journal_, action); !forgotten.ok()) {
    log(fmt::format("{} was sent, and its copy in {} cannot be removed: {}", action.path, self_.directory,
                    forgotten.error().message));
  }
  bool is_back = false;
  {
    const std::lock_guard lock(mutex_);
    actions_.pop_front();
    const auto newest = newest_.find(action.path);
    if (newest != newest_.end() && newest->second == action.number) newest_.erase(newest);
    if (is_refused) {
      ++refused_;
    } else {
      used_bytes_ -= std::min(action.size_bytes, used_bytes_);
    }
    is_away_ = false;
    is_back = actions_.empty();
  }
  changed_.notify_all();
  if (is_back) log(fmt::format("{} is back, and has everything that waited", target_->description()));
  return true;
}

}  // namespace tornasole::store
