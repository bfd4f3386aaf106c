#pragma once

// ExclusiveUse: the lock of a trial that Python threads share, and how whoever holds it sleeps.
//
// Locks, always in this order: the interpreter lock is given up, then the trial's lock is taken. Whoever waits gives
// the trial's lock back while it sleeps, so other threads go on asking, and looks for signals, so Ctrl-C ends the wait.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <shared_mutex>
#include <thread>
#include <utility>

namespace tornasole::python {

// The trial's lock while its engine is used by one thread alone, as the sleep function of the engine sees it.
class ExclusiveUse {
 public:
  explicit ExclusiveUse(nanobind::object tick) : tick_(std::move(tick)) {}

  std::shared_mutex& mutex() noexcept { return mutex_; }

  // Called by the engine with the lock held (but for opening, when nobody else knows the trial).
  bool sleep(double seconds) {
    if (is_shared_) mutex_.unlock();
    const bool goes_on = sleep_unlocked(seconds);
    if (is_shared_) mutex_.lock();
    return goes_on;
  }
  void share() noexcept { is_shared_ = true; }
  // What ended the last wait of this thread, thrown on.
  static void rethrow() {
    if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }
  void forget_tick() { tick_.reset(); }

 private:
  static constexpr double kSliceSeconds = 0.05;

  bool sleep_unlocked(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (true) {
      if (!look_at_python()) return false;
      const double left = std::chrono::duration<double>(end - Clock::now()).count();
      if (left <= 0) return true;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kSliceSeconds)));
    }
  }

  bool look_at_python() {
    const nanobind::gil_scoped_acquire locked;
    try {
      if (PyErr_CheckSignals() != 0) nanobind::raise_python_error();
      if (tick_.is_valid() && !tick_.is_none()) tick_();
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }

  std::shared_mutex mutex_;
  nanobind::object tick_;  // used with the interpreter lock
  bool is_shared_ = false;
  static inline thread_local std::exception_ptr error_;
};

}  // namespace tornasole::python
