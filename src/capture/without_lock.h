#pragma once

#include <mutex>

#include "capture/hook_state.h"

namespace tornasole::capture {

// While one lives the lock is not held, and the step does not end.
class HookState::WithoutLock {
 public:
  WithoutLock(HookState* hook, std::unique_lock<std::mutex>* lock) : hook_(hook), lock_(lock) {
    ++hook_->in_flight_;
    lock_->unlock();
  }
  ~WithoutLock() {
    lock_->lock();
    --hook_->in_flight_;
    hook_->copies_done_.notify_all();
  }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  HookState* hook_;
  std::unique_lock<std::mutex>* lock_;
};

}  // namespace tornasole::capture
