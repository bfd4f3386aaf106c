#pragma once

// SetUpLock: one process at a time decides what becomes of a directory.
//
//   1. Announce: create a file of one's own, claim-<32 hex digits>.tmp, holding the identity of the process.
//   2. Look: list the announcements. Nobody else alive: the lock is held.
//   3. Somebody else alive: whoever has the larger name takes its announcement back and comes again; the smaller one
//      stays and looks again.
//   4. Release: remove the announcement.
//
// Two cannot hold it: both announced before they looked, so the later of the two saw the earlier. A holder that dies
// leaves an announcement that counts for nothing, so nobody has to break a lock, which is where two would race.
//
// Used by: RunDirectory, on stores that can create exclusively.

#include <string>
#include <string_view>

#include "capture/run_occupancy.h"

namespace tornasole::capture {

class SetUpLock {
 public:
  // kInvalid, with the name of the other process, if it does not get its turn within 10 s of `sleep`.
  static Result<SetUpLock> acquire(store::Store* store, const ProcessIdentity& self, const Sleep& sleep);
  ~SetUpLock();
  SetUpLock(SetUpLock&& other) noexcept : store_(other.store_), path_(std::move(other.path_)) { other.path_.clear(); }
  SetUpLock(const SetUpLock&) = delete;
  SetUpLock& operator=(const SetUpLock&) = delete;
  SetUpLock& operator=(SetUpLock&&) = delete;

  // An announcement, or what a store makes on the way to one: no part of a run.
  static bool owns_name(std::string_view name) noexcept;

 private:
  SetUpLock(store::Store* store, std::string path) : store_(store), path_(std::move(path)) {}

  store::Store* store_;
  std::string path_;  // empty: moved from
};

}  // namespace tornasole::capture
