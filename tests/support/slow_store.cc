#include "support/slow_store.h"

#include <algorithm>
#include <chrono>

#include "base/errors.h"

namespace tornasole::store {
namespace {

class SlowFile final : public ForwardingFile {
 public:
  SlowFile(std::unique_ptr<PendingFile> base, std::shared_ptr<SlowControl> control)
      : ForwardingFile(std::move(base)), control_(std::move(control)) {}

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override {
    std::uint64_t bytes = 0;
    for (const ByteView piece : pieces) bytes += piece.size();
    control_->take(bytes);
    return base().append(pieces);
  }

 private:
  const std::shared_ptr<SlowControl> control_;  // shared with the store, which may go first
};

}  // namespace

void SlowControl::interrupt() {
  const std::lock_guard lock(mutex_);
  is_interrupted_ = true;
  woken_.notify_all();
}

void SlowControl::set_wait(std::function<void(double)> wait) {
  const std::lock_guard lock(mutex_);
  wait_ = std::move(wait);
}

void SlowControl::take(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  const double now_s = static_cast<double>(clock_.monotonic_ns()) * 1e-9;
  free_at_s_ = std::max(free_at_s_, now_s) + static_cast<double>(bytes) / bytes_per_second_;
  const double seconds = free_at_s_ - now_s;
  if (is_interrupted_) return;
  if (wait_) {
    const auto wait = wait_;
    lock.unlock();
    wait(seconds);
    return;
  }
  // A bound, since a rate near zero would be a time the clock cannot count to.
  const auto limit = std::chrono::duration<double>(std::min(seconds, 1e6));
  woken_.wait_for(lock, limit, [this] { return is_interrupted_; });
}

Result<std::unique_ptr<PendingFile>> SlowStore::create(std::string_view path) {
  TORNASOLE_TRY(auto file, base().create(path));
  return std::unique_ptr<PendingFile>(std::make_unique<SlowFile>(std::move(file), control_));
}

Status SlowStore::create_exclusive(std::string_view path, ByteView content) {
  control_->take(content.size());
  return base().create_exclusive(path, content);
}

}  // namespace tornasole::store
