#pragma once

// SignalWatch: lets Ctrl-C end work that the engine does without the interpreter lock.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace tornasole::python {

class SignalWatch {
 public:
  // Called without the interpreter lock, as often as one likes. False from the moment that a signal handler raised.
  bool goes_on() {
    const auto now = Clock::now();
    if (error_ || now < next_look_) return !error_;
    next_look_ = now + kPause;
    const nanobind::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) keep_error();
    return !error_;
  }
  bool sleep(double seconds) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (goes_on() && Clock::now() < end) {
      std::this_thread::sleep_for(std::min<Clock::duration>(end - Clock::now(), kPause));
    }
    return !error_;
  }
  // Keeps the Python error that is set, as the reason to end.
  void keep_error() {
    try {
      nanobind::raise_python_error();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  void keep(std::exception_ptr error) noexcept { error_ = std::move(error); }
  // With the interpreter lock.
  void rethrow() {
    if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPause{50};

  Clock::time_point next_look_ = Clock::now() + kPause;
  std::exception_ptr error_;
};

}  // namespace tornasole::python
