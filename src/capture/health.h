#pragma once

// Health: what capture did and what went wrong. Each cause is reported once and counted afterwards; in strict mode the
// first failure ends the program.
//
// Thread-safe. Written by the training threads and the writer thread, read by report() and the health file.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/options.h"
#include "tornasole/result.h"

namespace tornasole::capture {

class Health {
 public:
  struct Options {
    LogHook log = {};
    LogLevel log_level = LogLevel::kWarning;
    bool is_strict = false;
    LogLevel gap_level = LogLevel::kWarning;  // at which things are told that were asked for and are nowhere
  };
  struct Counts {
    std::int64_t due = 0;
    std::int64_t committed = 0;
    std::map<std::string, std::int64_t> dropped_steps = {};
    std::map<std::string, std::int64_t> dropped_values = {};
    std::int64_t last_committed = -1;
    std::int64_t wait_ns = 0;
    std::int64_t bytes_written = 0;
    std::int64_t largest_step_bytes = 0;
    std::vector<std::string> errors = {};
    std::uint64_t changes = 0;  // grows with every change
  };

  explicit Health(Options options) : options_(std::move(options)) {}

  void step_due() noexcept;
  void step_committed(std::int64_t global_step, std::int64_t bytes) noexcept;
  // Calls back after each step that is committed, on whatever thread that is.
  void on_commit(std::function<void()> listener);
  // `cause` is a short key for counting ("queue_full", "io", ...); `why` is for people.
  void step_dropped(std::string_view cause, const Error& why, LogLevel level = LogLevel::kError) noexcept;
  void value_dropped(std::string_view cause, const Error& why) noexcept;
  // A value that could not be made of what was given: counted, logged once per cause, and no failure.
  void value_left_out(std::string_view cause, std::string_view why) noexcept;
  // A failure that cost no step: reported once per cause.
  void note(std::string_view cause, const Error& why, LogLevel level = LogLevel::kError) noexcept;
  void waited(std::int64_t nanoseconds) noexcept;
  LogLevel gap_level() const noexcept { return options_.gap_level; }
  // To the log hook, if the level asks for it. A text repeated more than three times is left out.
  void log(LogLevel level, std::string_view message) noexcept;
  bool wants_log(LogLevel level) const noexcept { return options_.log != nullptr && level >= options_.log_level; }

  Counts counts() const;
  std::uint64_t changes() const noexcept;
  // Due steps that are neither committed nor dropped yet.
  std::int64_t unaccounted_steps() const noexcept;
  // Counts all of those as dropped. A writer that was left behind may still come through with one: it is then taken
  // back from the count, so that every step is in one count alone.
  void give_up_steps(const char* cause, const Error& why) noexcept;
  // The first failure of the run, if there was one.
  std::optional<Error> first_error() const;

 private:
  void report(std::string_view cause, const Error& why, LogLevel level);
  void take_back_locked() noexcept;
  std::int64_t unaccounted_locked() const noexcept;
  void emit(LogLevel level, std::string_view message) noexcept;

  const Options options_;  // constant
  mutable std::mutex mutex_;
  Counts counts_;                                    // guarded by mutex_
  std::set<std::string, std::less<>> reported_;      // guarded by mutex_
  std::map<std::string, int, std::less<>> repeats_;  // guarded by mutex_
  std::atomic<std::int64_t> drops_without_cause_ = 0;
  std::int64_t* given_up_ = nullptr;  // guarded by mutex_: the count of steps given up, once there is one
  std::optional<Error> first_error_;  // guarded by mutex_
  std::function<void()> on_commit_;   // guarded by mutex_
};

}  // namespace tornasole::capture
