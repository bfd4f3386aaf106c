#pragma once

// verify: reads everything of a trial and says what is sound, damaged, missing, partial or cannot be checked.
//
//   in:  a directory; whatever lies there is untrusted
//   out: VerifyReport; nothing is written
//
// Works on the files themselves, so that it sees what a Trial leaves out. A trial that is being written may be
// verified: what its writer has not published yet is listed as temporary, not as damage.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tornasole/result.h"
#include "tornasole/trial.h"

namespace tornasole {
namespace store {
class Store;
}  // namespace store

namespace tools {

// A list that names the first kMaxListed and counts them all, so that a hostile trial cannot fill the memory.
inline constexpr std::size_t kMaxListed = 1000;
template <typename T>
struct Findings {
  std::int64_t count = 0;
  std::vector<T> listed = {};

  void add(T finding) {
    ++count;
    if (listed.size() < kMaxListed) listed.push_back(std::move(finding));
  }
  bool empty() const noexcept { return count == 0; }
};

// The files of one step of one worker.
struct StepPart {
  std::int64_t global_step = 0;
  std::string worker;
  auto operator<=>(const StepPart&) const = default;
};

struct VerifyOptions {
  std::string path = {};  // absolute, or relative to the current directory
  // Called now and then with the bytes read so far and in all. False: verify ends with kEnded.
  std::function<bool(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress = {};
};

// Of one attempt: the trial itself, or one of those moved aside to attempts/.
struct VerifyReport {
  std::string path = {};  // as in the options, or "attempts/<n>"

  std::int64_t steps = 0;       // global steps with a readable index file; partial ones are counted too
  std::int64_t step_parts = 0;  // readable index files: one per step and worker
  std::int64_t values = 0;      // values read whole and not damaged, stored reductions included
  std::int64_t shapes = 0;      // shapes without a value
  std::uint64_t bytes = 0;      // read

  Findings<Damage> damaged = {};    // a file, or a part of one: path, offset where it is known, what is wrong
  Findings<Damage> missing = {};    // files that should be there: event files named by an index, collections files
  Findings<StepPart> partial = {};  // steps cut by an exception, a signal or a repair
  // Global steps that some workers saved and others did not; normal where a worker stopped early.
  Findings<std::int64_t> incomplete = {};

  std::int64_t unverified_values = 0;          // no checksum: read, well formed, but a changed number cannot be noticed
  std::int64_t unverified_files = 0;           // index and collections files without a checksum
  Findings<std::string> temporary_files = {};  // *.tmp: of the writer at work, or left by a dead one (see repair)
  Findings<std::string> debris = {};           // event files that no index names, interrupted moves, stale claims
  Findings<std::string> foreign_files = {};    // in the trial's directories, but no part of a trial
  // To an object store, by kind, for this report; empty elsewhere.
  std::map<std::string, std::int64_t> requests = {};
  RunStatus run = {};                       // ended, running, failed, presumed dead, or unknown
  std::vector<VerifyReport> attempts = {};  // attempts/<n>, in order of n; at most kMaxListed
  std::int64_t attempt_count = 0;

  // Nothing damaged and nothing missing; attempts are judged by themselves.
  bool is_sound() const noexcept { return damaged.empty() && missing.empty(); }
  bool is_sound_with_attempts() const noexcept;
};

// kNotFound if there is no such directory; kInvalid if it holds nothing of a trial; kIo if it cannot be read. Damage is
// no error.
Result<VerifyReport> verify(const VerifyOptions& options);
// The same on a store; options.path is for the report alone.
Result<VerifyReport> verify(store::Store& store, const VerifyOptions& options);

}  // namespace tools
}  // namespace tornasole
