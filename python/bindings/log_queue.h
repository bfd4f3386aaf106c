#pragma once

// LogQueue: messages of the engine on their way to Python's logging.
//
// Any thread puts them in, the writer thread among them, without the interpreter lock; a thread that came from Python
// takes them out and hands them on. So no thread of ours ever waits for the interpreter, and none can deadlock on it.

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tornasole/options.h"

namespace tornasole::python {

class LogQueue {
 public:
  void push(LogLevel level, std::string_view message);
  bool is_empty() const noexcept { return !has_messages_.load(std::memory_order_relaxed); }
  // Hands them to tornasole.core.logger, in order. With the interpreter lock; leaves no Python error behind.
  void drain() noexcept;

 private:
  static constexpr std::size_t kMaxMessages = 10'000;

  std::atomic<bool> has_messages_ = false;
  std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> messages_;  // guarded by mutex_
  std::size_t lost_ = 0;                                    // guarded by mutex_
};

// The log hook of a hook: shared, since the writer thread may outlive it.
LogHook log_into(const std::shared_ptr<LogQueue>& queue);

}  // namespace tornasole::python
