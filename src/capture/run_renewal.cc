// A run whose directory was removed under it, before it had published anything. Workers that start together often clear
// the place each, so the last one removes what the first has begun:
//
//   1. Gone: the root was removed, or run.json or this worker's health file is missing.
//   2. The store looks for its root again.
//   3. The chief, under the SetUpLock: no other run came first; then claim, health and run.json, with the same run_id.
//   4. Every other worker joins again: it waits for that run.json.

#include "base/errors.h"
#include "capture/run_directory.h"
#include "capture/run_lock.h"
#include "capture/run_occupancy.h"
#include "format/paths.h"

namespace tornasole::capture {

bool RunDirectory::is_gone() {
  if (!has_begun_) return false;
  if (store_->renew_root()) return true;
  for (const std::string& path : {std::string(format::kRunPath), format::health_path(identity_.worker)}) {
    const auto status = store_->status(path);
    if (!status.ok() && status.error().code == ErrorCode::kNotFound) return true;
  }
  return false;
}

Status RunDirectory::renew(const std::function<void(double seconds)>& sleep) {
  if (!has_begun_) return runtime_error("{}: renewal of a run that has not begun, or is over", store_->description());
  store_->renew_root();
  if (identity_.writer_count > 1 && !identity_.is_chief) {
    std::int64_t first_free_step = 0;  // known since the first time
    return join(sleep, &first_free_step);
  }
  if (!store_->capabilities().can_claim) return take_again(sleep);
  TORNASOLE_TRY(const SetUpLock lock, SetUpLock::acquire(store_, identity_.process, sleep));
  return take_again(sleep);
}

Status RunDirectory::take_again(const std::function<void(double seconds)>& sleep) {
  // A missing run file is why this is called.
  const Status ours = check_still_ours();
  if (!ours.ok() && ours.error().code != ErrorCode::kNotFound) return ours;
  if (identity_.writer_count > 1) {
    TORNASOLE_CHECK(check(sleep));
    TORNASOLE_CHECK(refuse_other_runs(*store_, identity_.run_id, 0));
  } else {
    SurveyOptions options{.self = &identity_.process, .own_run_id = identity_.run_id};
    TORNASOLE_TRY(const Survey found, survey(*store_, options));
    TORNASOLE_CHECK(refuse_occupied(found.occupancy));
  }
  TORNASOLE_CHECK(take_claim());
  return announce_run();
}

}  // namespace tornasole::capture
