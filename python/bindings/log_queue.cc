#include "bindings/log_queue.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <fmt/format.h>

namespace tornasole::python {

namespace nb = nanobind;

void LogQueue::push(LogLevel level, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (messages_.size() < kMaxMessages) {
    messages_.emplace_back(level, message);
  } else {
    ++lost_;
  }
  has_messages_.store(true, std::memory_order_relaxed);
}

void LogQueue::drain() noexcept {
  if (is_empty()) return;
  std::vector<std::pair<LogLevel, std::string>> messages;
  std::size_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(messages_);
    std::swap(lost, lost_);
    has_messages_.store(false, std::memory_order_relaxed);
  }
  const nb::error_scope earlier;  // a call that is about to raise stays so
  try {
    if (lost > 0) messages.emplace_back(LogLevel::kWarning, fmt::format("{} further messages were lost", lost));
    const nb::object log = nb::module_::import_("tornasole.core.logger").attr("log_from_engine");
    for (const auto& [level, message] : messages) log(static_cast<int>(level), message);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("tornasole: a message could not be logged");
  } catch (...) {
    // No memory for a message; the training goes on without it.
  }
}

LogHook log_into(const std::shared_ptr<LogQueue>& queue) {
  return [queue](LogLevel level, std::string_view message) { queue->push(level, message); };
}

}  // namespace tornasole::python
