#include "support/failing_store.h"

#include <array>

#include "base/errors.h"

namespace tornasole::store {
namespace {

constexpr std::array<std::string_view, 15> kCallNames = {
    "create",         "append", "sync",     "publish", "create_exclusive",
    "sync_directory", "remove", "rename",   "now",     "status",
    "list",           "read",   "read_all", "any",     "any_write",
};

bool is_counted(Call wanted, Call call) {
  return wanted == Call::kAny || wanted == call || (wanted == Call::kAnyWrite && call <= Call::kNow);
}

// Half of the bytes of the pieces, rounded down.
std::vector<ByteView> first_half(std::span<const ByteView> pieces) {
  std::size_t total = 0;
  for (const ByteView piece : pieces) total += piece.size();
  std::size_t room = total / 2;
  std::vector<ByteView> half;
  for (const ByteView piece : pieces) {
    half.push_back(piece.substr(0, room));
    room -= half.back().size();
  }
  return half;
}

class FailingFile final : public ForwardingFile {
 public:
  FailingFile(std::unique_ptr<PendingFile> base, std::string path, std::shared_ptr<FailureControl> control)
      : ForwardingFile(std::move(base)), path_(std::move(path)), control_(std::move(control)) {}

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override {
    TORNASOLE_CHECK(check_content("append"));
    auto failure = control_->meet(Call::kAppend, path_);
    if (!failure) return base().append(pieces);
    is_damaged_ = true;
    if (failure->is_short) TORNASOLE_CHECK(base().append(first_half(pieces)));
    return failure->error;
  }
  Status sync() override {
    TORNASOLE_CHECK(check_content("sync"));
    auto failure = control_->meet(Call::kSync, path_);
    if (!failure) return base().sync();
    is_damaged_ = true;
    return failure->error;
  }
  Status publish(bool replace) override {
    TORNASOLE_CHECK(check_content("publish"));
    if (auto failure = control_->meet(Call::kPublish, path_)) return failure->error;
    return base().publish(replace);
  }

 private:
  // As every store: once a write failed the content is unknown.
  Status check_content(const char* action) const {
    if (is_damaged_) return io_error("{} {}: an earlier write of this file failed", action, path_);
    return {};
  }

  const std::string path_;
  const std::shared_ptr<FailureControl> control_;  // shared with the store and the test
  bool is_damaged_ = false;
};

}  // namespace

std::string_view call_name(Call call) noexcept { return kCallNames[static_cast<std::size_t>(call)]; }

std::optional<Call> call_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kCallNames.size(); ++i) {
    if (kCallNames[i] == name) return static_cast<Call>(i);
  }
  return std::nullopt;
}

void FailureControl::set_plan(FailurePlan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = plan;
  counted_ = 0;
}

std::int64_t FailureControl::counted_calls() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

std::int64_t FailureControl::failed_calls() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::optional<FailureControl::Failure> FailureControl::meet(Call call, std::string_view path) {
  const std::lock_guard lock(mutex_);
  if (!is_counted(plan_.call, call)) return std::nullopt;
  ++counted_;
  const bool fails = plan_.first > 0 && (counted_ == plan_.first || (plan_.is_lasting && counted_ > plan_.first));
  if (!fails) return std::nullopt;
  ++failed_;
  return Failure{make_error(plan_.code, ErrorKind::kBase, "{} {}: injected failure", call_name(call), path),
                 plan_.is_short};
}

Result<std::unique_ptr<PendingFile>> FailingStore::create(std::string_view path) {
  if (auto failure = control_->meet(Call::kCreate, path)) return failure->error;
  TORNASOLE_TRY(auto file, base().create(path));
  return std::unique_ptr<PendingFile>(std::make_unique<FailingFile>(std::move(file), std::string(path), control_));
}

Status FailingStore::create_exclusive(std::string_view path, ByteView content) {
  if (auto failure = control_->meet(Call::kCreateExclusive, path)) return failure->error;
  return base().create_exclusive(path, content);
}

Status FailingStore::sync_directory(std::string_view directory) {
  if (auto failure = control_->meet(Call::kSyncDirectory, directory)) return failure->error;
  return base().sync_directory(directory);
}

Result<FileStatus> FailingStore::status(std::string_view path) {
  if (auto failure = control_->meet(Call::kStatus, path)) return failure->error;
  return base().status(path);
}

Result<std::vector<Entry>> FailingStore::list(std::string_view directory, bool recursive) {
  if (auto failure = control_->meet(Call::kList, directory)) return failure->error;
  return base().list(directory, recursive);
}

Result<Bytes> FailingStore::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  if (auto failure = control_->meet(Call::kRead, path)) return failure->error;
  return base().read(path, offset, length);
}

Result<Bytes> FailingStore::read_all(std::string_view path, std::uint64_t limit) {
  if (auto failure = control_->meet(Call::kReadAll, path)) return failure->error;
  return base().read_all(path, limit);
}

Status FailingStore::remove(std::string_view path) {
  if (auto failure = control_->meet(Call::kRemove, path)) return failure->error;
  return base().remove(path);
}

Status FailingStore::rename(std::string_view from, std::string_view to) {
  if (auto failure = control_->meet(Call::kRename, from)) return failure->error;
  return base().rename(from, to);
}

Result<double> FailingStore::now_s() {
  if (auto failure = control_->meet(Call::kNow, "the clock")) return failure->error;
  return base().now_s();
}

}  // namespace tornasole::store
