#include "support/hang_store.h"

#include "base/errors.h"

namespace tornasole::store {
namespace {

class HangFile final : public ForwardingFile {
 public:
  HangFile(std::unique_ptr<PendingFile> base, std::string path, std::shared_ptr<HangControl> control)
      : ForwardingFile(std::move(base)), path_(std::move(path)), control_(std::move(control)) {}

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override {
    // A copy of its own: the wait must not depend on the life of this object.
    const std::shared_ptr<HangControl> control = control_;
    if (Status passed = control->pass(path_); !passed.ok()) {
      is_damaged_ = true;
      return passed;
    }
    return base().append(pieces);
  }
  Status publish(bool replace) override {
    if (is_damaged_) return io_error("publish {}: an earlier write of this file failed", path_);
    return base().publish(replace);
  }

 private:
  const std::string path_;
  const std::shared_ptr<HangControl> control_;  // shared with the store and the test
  bool is_damaged_ = false;
};

}  // namespace

void HangControl::release() {
  const std::lock_guard lock(mutex_);
  state_ = State::kReleased;
  changed_.notify_all();
}

void HangControl::destroy() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kActive) state_ = State::kDestroyed;
  changed_.notify_all();
}

std::int64_t HangControl::hanging_count() const {
  const std::lock_guard lock(mutex_);
  return hanging_;
}

void HangControl::wait_until_hanging() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return hanging_ > 0; });
}

Status HangControl::pass(std::string_view path) {
  std::unique_lock lock(mutex_);
  ++appends_;
  if (first_ == 0 || appends_ < first_ || state_ == State::kReleased) return {};
  ++hanging_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return state_ != State::kActive; });
  --hanging_;
  if (state_ == State::kReleased) return {};
  return io_error("append to {}: the store was destroyed while the write was hanging", path);
}

Result<std::unique_ptr<PendingFile>> HangStore::create(std::string_view path) {
  TORNASOLE_TRY(auto file, base().create(path));
  return std::unique_ptr<PendingFile>(std::make_unique<HangFile>(std::move(file), std::string(path), control_));
}

}  // namespace tornasole::store
