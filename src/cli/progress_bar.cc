#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace tornasole::cli {
namespace {

constexpr std::int64_t kFirstNs = 300'000'000;
constexpr std::int64_t kEveryNs = 100'000'000;
constexpr std::size_t kBarColumns = 30;
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

ProgressBar::ProgressBar(std::string what, std::uint64_t total)
    : terminal_(Terminal::of(stderr)),
      what_(std::move(what)),
      total_(total),
      next_ns_(system_clock().monotonic_ns() + kFirstNs) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!terminal_.is_terminal) return;
  const std::int64_t now = system_clock().monotonic_ns();
  if (now < next_ns_) return;
  next_ns_ = now + kEveryNs;
  is_drawn_ = true;
  print(stderr, std::string(kClearLine) + line(what_, done, total, terminal_));
}

void ProgressBar::finish() {
  if (is_drawn_) print(stderr, kClearLine);
  is_drawn_ = false;
}

std::string ProgressBar::line(const std::string& what, std::uint64_t done, std::uint64_t total,
                              const Terminal& terminal) {
  if (total == 0) return fmt::format("{} {}", what, done).substr(0, terminal.width - 1);
  const double part = std::min(static_cast<double>(done) / static_cast<double>(total), 1.0);
  const std::string percent = fmt::format(" {:3.0f} %", part * 100);
  if (terminal.width < what.size() + percent.size() + kBarColumns + 4) return what + percent;
  const auto full = static_cast<std::size_t>(part * static_cast<double>(kBarColumns));
  std::string bar;
  for (std::size_t i = 0; i < kBarColumns; ++i) {
    bar += terminal.has_unicode ? (i < full ? "█" : "░") : (i < full ? "#" : ".");
  }
  return what + " " + bar + percent;
}

}  // namespace tornasole::cli
