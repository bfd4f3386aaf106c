#pragma once

// RunDirectory: who may write into a trial, and what became of whoever wrote there before.
//
//   1. check (at set-up, writes nothing): a finished run is an error; a live one is an error that names host and
//   process.
//   2. begin (before the first write, on the writer thread): take over from a dead run (repair leftovers of ours, move
//      the old attempt to attempts/<n>/, or continue after its last step with `resume`), claim, write run.json; other
//      workers than the chief wait for run.json.
//   3. publish_health: at most once a second, and as a heartbeat.
//      Gone before anything was published (somebody cleared the place while the run was setting up): renew.
//   4. end: health `ended` or `failed`; the last writer to finish writes the end marker; the claim is removed.
//
// Used by: writer thread of capture, and Hook::open for step 1. Not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "format/run_files.h"
#include "store/store.h"
#include "tornasole/result.h"

namespace tornasole::capture {

struct RunIdentity {
  std::string worker = "worker_0";  // as in file names
  bool is_chief = true;
  std::int64_t writer_count = 1;  // workers that write: 1, or the world size with include_workers=all
  ProcessIdentity process = {};
  std::string run_id = {};  // random, 32 hex digits; others than the chief adopt the chief's
  double start_time = 0;    // of the hook, seconds since 1970
  bool resume = false;      // resume=True, or a checkpoint state was found
  // Of a run that is continued: the last step of each mode, by its name.
  std::map<std::string, std::int64_t> mode_steps = {};
  bool in_sagemaker = false;  // no end marker
};

std::string make_run_id();

struct Survey;  // capture/run_occupancy.h

enum class Occupant { kNobody, kFinished, kLive, kDead };
struct Occupancy {
  Occupant occupant = Occupant::kNobody;
  std::string description = {};  // "process 123 on host h", for messages
  std::int64_t last_step = -1;   // last published step of the occupant
};

class RunDirectory {
 public:
  RunDirectory(store::Store* store, const Clock* clock, RunIdentity identity);

  // Looks, writes nothing. Untrusted input: health and claim files may hold anything.
  Result<Occupancy> look() const;
  // Step 1. kInvalid/RuntimeError-kind for a finished run; for a live one (after waiting, through `sleep`, up to 65 s
  // when it is on another host and may be dead); fine otherwise.
  Status check(const std::function<void(double seconds)>& sleep) const;
  // Step 2. kInvalid if somebody else won the claim meanwhile; kNotYet if the chief wrote no run.json within 30 s.
  // `first_free_step` returns the step after the last one published by the run that is continued; 0 otherwise.
  Status begin(const std::function<void(double seconds)>& sleep, std::int64_t* first_free_step);
  bool has_begun() const noexcept { return has_begun_; }
  const std::string& run_id() const noexcept { return identity_.run_id; }

  // Whether what `begin` wrote, or the directory itself, is no longer there.
  bool is_gone();
  // Takes the place again, for the same run. Nothing that lies there is moved: fellow workers may be back already. For
  // a worker that is not the chief: once the chief did. kInvalid if another run came first; after any failure it may be
  // tried again.
  Status renew(const std::function<void(double seconds)>& sleep);

  // Step 3 and 4. `health` is completed with process, run_id, start and heartbeat. kEnded: another run presumed this
  // one dead and owns the directory now; kNotFound: the directory was cleared. Nothing was written then.
  Status publish_health(format::Health health);
  Status end(format::Health health);
  // Gives the directory up without ending the run: another hook of this process takes it over.
  void release() noexcept;

 private:
  // Step 2, for the chief: what is found is continued or moved aside, then the run is claimed and announced.
  Status take_directory(const Survey& found, std::int64_t* first_free_step);
  Status refuse_occupied(const Occupancy& occupancy) const;
  Status take_claim();
  Status announce_run();
  Status take_again(const std::function<void(double seconds)>& sleep);
  // Step 2, for every other worker.
  Status join(const std::function<void(double seconds)>& sleep, std::int64_t* first_free_step);
  Status write_health(format::Health health);
  // kEnded if another run presumed this one dead and took the directory over, kNotFound if the run file is gone.
  Status check_still_ours() const;
  Status mark_end();
  void drop_claim();

  store::Store* store_;
  const Clock* clock_;
  RunIdentity identity_;
  format::Health last_health_ = {};
  bool has_begun_ = false;
};

}  // namespace tornasole::capture
