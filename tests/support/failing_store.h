#pragma once

// FailingStore: fails the calls it is told to, and passes on the others.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "support/forwarding_store.h"

namespace tornasole::store {

// The calls of Store and PendingFile that can fail; kAny and kAnyWrite stand for several.
enum class Call {
  kCreate,
  kAppend,
  kSync,
  kPublish,
  kCreateExclusive,
  kSyncDirectory,
  kRemove,
  kRename,
  kNow,  // the last one that writes
  kStatus,
  kList,
  kRead,
  kReadAll,
  kAny,
  kAnyWrite,
};
// "create", "append", "create_exclusive", ..., "any", "any_write".
std::string_view call_name(Call call) noexcept;
std::optional<Call> call_from_name(std::string_view name) noexcept;

struct FailurePlan {
  Call call = Call::kAny;   // which calls are counted
  std::int64_t first = 1;   // the one that fails, counted from 1; 0: none
  bool is_lasting = false;  // all later ones fail too
  bool is_short = false;    // an append that fails has written the first half of its bytes
  ErrorCode code = ErrorCode::kIo;
};

// What a test keeps in its hands. Thread-safe.
class FailureControl {
 public:
  explicit FailureControl(FailurePlan plan) : plan_(plan) {}

  // A new plan; counting starts again.
  void set_plan(FailurePlan plan);
  // From now on nothing fails.
  void heal() { set_plan({.first = 0}); }
  std::int64_t counted_calls() const;
  std::int64_t failed_calls() const;

  struct Failure {
    Error error;
    bool is_short = false;
  };
  // Counts one call; the failure it meets, if any.
  std::optional<Failure> meet(Call call, std::string_view path);

 private:
  mutable std::mutex mutex_;
  // guarded by mutex_
  FailurePlan plan_;
  std::int64_t counted_ = 0;
  std::int64_t failed_ = 0;
};

class FailingStore final : public ForwardingStore {
 public:
  // Shared: the test looks at it and changes it while the store is owned by somebody else.
  FailingStore(std::unique_ptr<Store> base, std::shared_ptr<FailureControl> control)
      : ForwardingStore(std::move(base)), control_(std::move(control)) {}

  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override;
  Status create_exclusive(std::string_view path, ByteView content) override;
  Status sync_directory(std::string_view directory) override;
  Result<FileStatus> status(std::string_view path) override;
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override;
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override;
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override;
  Status remove(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Result<double> now_s() override;

 private:
  std::shared_ptr<FailureControl> control_;
};

}  // namespace tornasole::store
