#pragma once

// How far a long job is, on standard error and on a terminal only; it leaves nothing behind.

#include <cstdint>
#include <string>

#include "cli/terminal.h"

namespace tornasole::cli {

class ProgressBar {
 public:
  // `total` 0: not known, only what was done is shown. Nothing is drawn before the job took a third of a second.
  ProgressBar(std::string what, std::uint64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  void update(std::uint64_t done) { update(done, total_); }
  void finish();

  // The line for a state, without escape sequences.
  static std::string line(const std::string& what, std::uint64_t done, std::uint64_t total, const Terminal& terminal);

 private:
  Terminal terminal_;
  std::string what_;
  std::uint64_t total_;
  std::int64_t next_ns_;
  bool is_drawn_ = false;
};

}  // namespace tornasole::cli
