#pragma once

// HangStore: from the n-th append on, appends block, as on a file server that went away.
//
// A thread that hangs holds only its file and the shared control, both on the heap. It may be left hanging when the
// process ends: nothing it waits on is ever destroyed under it.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "support/forwarding_store.h"

namespace tornasole::store {

// Thread-safe.
class HangControl {
 public:
  // The n-th append hangs, counted from 1; 0: none.
  explicit HangControl(std::int64_t first) : first_(first) {}

  // The server is back: whoever hangs goes on, and nobody hangs again.
  void release();
  // The store is gone: whoever hangs gets an error.
  void destroy();
  std::int64_t hanging_count() const;
  // Returns once a thread hangs.
  void wait_until_hanging();

  // Counts one append, and hangs if it is its turn.
  Status pass(std::string_view path);

 private:
  enum class State { kActive, kReleased, kDestroyed };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const std::int64_t first_;
  // guarded by mutex_
  State state_ = State::kActive;
  std::int64_t appends_ = 0;
  std::int64_t hanging_ = 0;
};

class HangStore final : public ForwardingStore {
 public:
  // Shared: a hanging thread waits in it, whatever became of the store and of the test.
  HangStore(std::unique_ptr<Store> base, std::shared_ptr<HangControl> control)
      : ForwardingStore(std::move(base)), control_(std::move(control)) {}
  ~HangStore() override { control_->destroy(); }
  HangStore(const HangStore&) = delete;
  HangStore& operator=(const HangStore&) = delete;

  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override;

 private:
  const std::shared_ptr<HangControl> control_;
};

}  // namespace tornasole::store
