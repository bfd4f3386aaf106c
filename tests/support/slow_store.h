#pragma once

// SlowStore: appends take as long as a device of a given speed would need. The device is one: files written at the same
// time share its speed.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "support/forwarding_store.h"

namespace tornasole::store {

// The device. Thread-safe.
class SlowControl {
 public:
  explicit SlowControl(double bytes_per_second, const Clock& clock = system_clock())
      : bytes_per_second_(bytes_per_second), clock_(clock) {}

  // From now on nothing waits, and whoever waits goes on at once.
  void interrupt();
  // Waits by other means than sleeping, for tests: called with the seconds until the device has taken the bytes.
  void set_wait(std::function<void(double seconds)> wait);

  // Takes bytes: returns when the device has them.
  void take(std::uint64_t bytes);

 private:
  const double bytes_per_second_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable woken_;
  // guarded by mutex_
  std::function<void(double)> wait_;
  double free_at_s_ = 0;  // when the device will have taken all it was given
  bool is_interrupted_ = false;
};

class SlowStore final : public ForwardingStore {
 public:
  // Shared: files use it after the store is gone, and a test interrupts it from outside.
  SlowStore(std::unique_ptr<Store> base, std::shared_ptr<SlowControl> control)
      : ForwardingStore(std::move(base)), control_(std::move(control)) {}
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override;
  Status create_exclusive(std::string_view path, ByteView content) override;

 private:
  std::shared_ptr<SlowControl> control_;
};

}  // namespace tornasole::store
