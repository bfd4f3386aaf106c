#include "capture/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tornasole::capture {
namespace {

constexpr std::size_t kMaxErrors = 20;
constexpr std::size_t kMaxRepeatTexts = 1000;
constexpr int kMaxRepeats = 3;

}  // namespace

void Health::step_due() noexcept {
  const std::lock_guard lock(mutex_);
  ++counts_.due;
  ++counts_.changes;
}

void Health::step_committed(std::int64_t global_step, std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  take_back_locked();
  ++counts_.committed;
  counts_.last_committed = std::max(counts_.last_committed, global_step);
  counts_.bytes_written += bytes;
  counts_.largest_step_bytes = std::max(counts_.largest_step_bytes, bytes);
  ++counts_.changes;
  if (on_commit_) on_commit_();
}

void Health::on_commit(std::function<void()> listener) {
  const std::lock_guard lock(mutex_);
  on_commit_ = std::move(listener);
}

void Health::waited(std::int64_t nanoseconds) noexcept {
  const std::lock_guard lock(mutex_);
  counts_.wait_ns += nanoseconds;
}

void Health::step_dropped(std::string_view cause, const Error& why, LogLevel level) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    take_back_locked();
    ++counts_.changes;
    ++counts_.dropped_steps[std::string(cause)];
  } catch (...) {
    ++drops_without_cause_;  // no memory for the cause; the step is counted all the same
  }
  note(cause, why, level);
}

void Health::value_left_out(std::string_view cause, std::string_view why) noexcept {
  try {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = counts_.dropped_values[std::string(cause)]++ == 0;
      ++counts_.changes;
    }
    if (is_first) log(options_.gap_level, fmt::format("{}; it was left out, and so will others be", why));
  } catch (...) {
    emit(LogLevel::kError, "tornasole: a value that was left out could not be counted");
  }
}

void Health::value_dropped(std::string_view cause, const Error& why) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.dropped_values[std::string(cause)];
      ++counts_.changes;
    }
    report(cause, why, LogLevel::kError);
  } catch (...) {
    emit(LogLevel::kError, "tornasole: a dropped value could not be counted");
  }
}

void Health::note(std::string_view cause, const Error& why, LogLevel level) noexcept {
  try {
    report(cause, why, level);
  } catch (...) {
    emit(LogLevel::kError, "tornasole: a failure could not be reported");
  }
}

void Health::report(std::string_view cause, const Error& why, LogLevel level) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!first_error_) first_error_ = why;
    if (reported_.contains(cause)) return;
    reported_.emplace(cause);
    text = fmt::format("{}: {}", cause, why.message);
    if (counts_.errors.size() < kMaxErrors) counts_.errors.push_back(text);
    ++counts_.changes;
  }
  if (options_.is_strict) {
    std::fprintf(stderr, "tornasole: strict mode: %s\n", text.c_str());
    std::abort();
  }
  emit(level, fmt::format("{} (further ones are counted, not reported)", text));
}

void Health::log(LogLevel level, std::string_view message) noexcept {
  if (!wants_log(level)) return;
  try {
    const std::lock_guard lock(mutex_);
    if (repeats_.size() < kMaxRepeatTexts && ++repeats_[std::string(message)] > kMaxRepeats) return;
  } catch (...) {
    return;
  }
  emit(level, message);
}

void Health::emit(LogLevel level, std::string_view message) noexcept {
  if (!wants_log(level)) return;
  try {
    options_.log(level, message);
  } catch (...) {
    // A log hook that throws is the user's affair; training goes on, and there is nowhere left to report to.
    std::fputs("tornasole: the log hook threw an exception\n", stderr);
  }
}

Health::Counts Health::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  if (const std::int64_t drops = drops_without_cause_; drops > 0) counts.dropped_steps["out_of_memory"] += drops;
  return counts;
}

std::uint64_t Health::changes() const noexcept {
  const std::lock_guard lock(mutex_);
  return counts_.changes;
}

std::int64_t Health::unaccounted_steps() const noexcept {
  const std::lock_guard lock(mutex_);
  return unaccounted_locked();
}

std::int64_t Health::unaccounted_locked() const noexcept {
  std::int64_t rest = counts_.due - counts_.committed - drops_without_cause_;
  for (const auto& [cause, steps] : counts_.dropped_steps) rest -= steps;
  return rest;
}

void Health::give_up_steps(const char* cause, const Error& why) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const std::int64_t rest = unaccounted_locked();
    if (rest <= 0) return;
    given_up_ = &counts_.dropped_steps[cause];  // a map: the place stays
    *given_up_ += rest;
    ++counts_.changes;
  } catch (...) {
    drops_without_cause_ += std::max<std::int64_t>(unaccounted_steps(), 0);  // no memory for the cause
  }
  note(cause, why);
}

void Health::take_back_locked() noexcept {
  if (given_up_ != nullptr && *given_up_ > 0) --*given_up_;
}

std::optional<Error> Health::first_error() const {
  const std::lock_guard lock(mutex_);
  return first_error_;
}

}  // namespace tornasole::capture
