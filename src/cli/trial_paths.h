#pragma once

// Where trials are, before any is opened.

#include <cstdint>
#include <string>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::cli {

// True if the directory looks like a trial: it has one of a trial's own folders.
bool is_trial_directory(const std::string& dir);

// True if a writer is setting a run up in the directory, or did: its claim or its folder of health files is there, its
// trial's own folders may not be yet.
bool has_run_begun(const std::string& dir);

// Trials below a directory that is none itself, sorted; links are not followed. At most kMaxTrials, from at most three
// levels down; *is_cut says if there may be more.
inline constexpr std::size_t kMaxTrials = 1000;
std::vector<std::string> trials_below(const std::string& dir, bool* is_cut);

// kNotFound or kInvalid, with a message for people, unless `dir` is a directory with something in it. kNotYet if it is
// empty.
Status check_directory(const std::string& dir);

// The same, unless it is a trial: kInvalid, naming the trials below it if there are some; kNotYet if a run has begun
// there and written nothing yet.
Status check_trial_directory(const std::string& dir);

// A line for a directory that holds nothing but the signs of a run that begins; else empty.
std::string begun_note(const std::string& dir);

struct DiskUse {
  std::uint64_t bytes = 0;
  std::int64_t files = 0;
};
// Of all regular files; attempts that were moved aside are included.
DiskUse disk_use_of(const std::string& dir);

}  // namespace tornasole::cli
