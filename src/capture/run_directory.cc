// The protocol of a run in its directory, for the chief (a lone writer is its own chief):
//
//   1. Survey, and watch a writer on another host that may be dead. A finished or a live run: stop.
//   2. Take the SetUpLock, so that of several processes one decides, and survey again.
//   3. Complete a move that was interrupted. Continue the dead run (clear its debris) or move it aside.
//   4. Claim (a lone writer): claim.smd is created exclusively. Health: `running`. Both name this process, so whoever
//      comes later finds a live run.
//   5. run.json: the other workers may begin. They copy its run_id into their health files.
//   6. Give the lock back.
//
// A process that dies before 4 leaves what it found, perhaps half moved; after 4 it is a dead run without steps.

#include "capture/run_directory.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/run_attempts.h"
#include "capture/run_lock.h"
#include "capture/run_occupancy.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

constexpr double kRemoteHeartbeat_s = 60;

Status write_file(store::Store& store, std::string_view path, ByteView content) {
  TORNASOLE_TRY(const auto file, store.create(path));
  TORNASOLE_CHECK(file->append(content));
  return file->publish(/*replace=*/true);
}

Error cannot_move_error(const store::Store& store, const Occupancy& occupancy) {
  const std::string reach =
      occupancy.last_step < 0 ? "without a step" : fmt::format("that ends with step {}", occupancy.last_step);
  return runtime_error(
      "{}: holds an unfinished run {}, written by {}, and nothing can be moved aside there; "
      "pass resume=True to continue after its last step, or choose another prefix",
      store.description(), reach, occupancy.description);
}

// Told apart by its reason: whoever may choose goes elsewhere.
template <typename... Args>
Error occupied_error(fmt::format_string<Args...> format, Args&&... args) {
  Error error = runtime_error(format, std::forward<Args>(args)...);
  error.details = std::make_shared<const ErrorDetails>(ErrorDetails{.reason = "occupied"});
  return error;
}

Status remove_if_there(store::Store& store, std::string_view path) {
  Status removed = store.remove(path);
  return removed.ok() || removed.error().code == ErrorCode::kNotFound ? Status() : removed;
}

// A request to stop was meant for the run that is continued; one made since this process set up is for this one.
Status drop_old_stop_request(store::Store& store, double seconds_since_start) {
  const auto request = store.status(format::kStopRequestPath);
  if (!request.ok()) return {};
  TORNASOLE_TRY(const double now_s, store.now_s());
  if (now_s - request->modified_s <= seconds_since_start) return {};
  return remove_if_there(store, format::kStopRequestPath);
}

}  // namespace

RunDirectory::RunDirectory(store::Store* store, const Clock* clock, RunIdentity identity)
    : store_(store), clock_(clock), identity_(std::move(identity)) {}

Status RunDirectory::refuse_occupied(const Occupancy& occupancy) const {
  switch (occupancy.occupant) {
    case Occupant::kFinished:
      return occupied_error("{}: a finished run lives there ({} exists); choose another out_dir, or remove that run",
                            store_->description(), format::kEndMarkerPath);
    case Occupant::kLive:
      return occupied_error("{}: a live run writes there: {}; end it, or choose another out_dir", store_->description(),
                            occupancy.description);
    case Occupant::kNobody:
    case Occupant::kDead: break;
  }
  return {};
}

Result<Occupancy> RunDirectory::look() const {
  SurveyOptions options{.self = &identity_.process};
  if (has_begun_) options.own_run_id = identity_.run_id;
  TORNASOLE_TRY(Survey found, survey(*store_, options));
  return std::move(found.occupancy);
}

Status RunDirectory::check(const std::function<void(double seconds)>& sleep) const {
  SurveyOptions options{.self = &identity_.process};
  if (identity_.writer_count > 1) {
    // Its fellow workers may be writing already; only the chief, at its first write, can tell an old run from its own.
    TORNASOLE_TRY(const bool is_finished, has_end_marker(*store_));
    return is_finished ? refuse_occupied({.occupant = Occupant::kFinished}) : Status();
  }
  TORNASOLE_TRY(const Survey found, survey_and_watch(*store_, &options, sleep));
  TORNASOLE_CHECK(refuse_occupied(found.occupancy));
  const bool must_move = found.has_files && !identity_.resume;
  if (must_move && !store_->capabilities().can_rename) return cannot_move_error(*store_, found.occupancy);
  return {};
}

Status RunDirectory::begin(const std::function<void(double seconds)>& sleep, std::int64_t* first_free_step) {
  *first_free_step = 0;
  if (has_begun_) return runtime_error("{}: the run has begun already", store_->description());
  if (identity_.writer_count > 1 && !identity_.is_chief) {
    return join(sleep, first_free_step);
  }
  SurveyOptions options{.self = &identity_.process};
  options.own_run_id = identity_.run_id;  // of an earlier try that failed half way
  TORNASOLE_TRY(const Survey before, survey_and_watch(*store_, &options, sleep));
  TORNASOLE_CHECK(refuse_occupied(before.occupancy));
  if (!store_->capabilities().can_claim) return take_directory(before, first_free_step);

  TORNASOLE_TRY(const SetUpLock lock, SetUpLock::acquire(store_, identity_.process, sleep));
  TORNASOLE_TRY(const Survey found, survey(*store_, options));
  TORNASOLE_CHECK(refuse_occupied(found.occupancy));
  return take_directory(found, first_free_step);
}

Status RunDirectory::take_directory(const Survey& found, std::int64_t* first_free_step) {
  bool has_files = found.has_files;
  if (store_->capabilities().can_rename) {
    TORNASOLE_CHECK(finish_interrupted_moves(*store_));
    if (has_files) {
      TORNASOLE_TRY(has_files, has_run_files(*store_));
    }
  }
  if (has_files && identity_.resume) {
    TORNASOLE_CHECK(clear_debris(*store_));
    TORNASOLE_CHECK(drop_old_stop_request(*store_, clock_->wall_seconds() - identity_.start_time));
    TORNASOLE_TRY(const std::int64_t last_step, last_published_step(*store_));
    *first_free_step = last_step + 1;
  } else if (has_files) {
    if (!store_->capabilities().can_rename) return cannot_move_error(*store_, found.occupancy);
    TORNASOLE_CHECK(move_aside(*store_));
  }
  TORNASOLE_CHECK(take_claim());
  Status announced = announce_run();
  if (!announced.ok()) {
    // begin will be tried again: what was announced must not be taken for a live run then.
    for (const std::string& path : {format::health_path(identity_.worker), std::string(format::kRunPath)}) {
      const Status removed = remove_if_there(*store_, path);
      static_cast<void>(removed);
    }
    drop_claim();
  }
  return announced;
}

Status RunDirectory::take_claim() {
  if (identity_.writer_count != 1 || !store_->capabilities().can_claim) return {};
  // The survey found its owner dead or unknown, and nobody of ours claims while the lock is held.
  TORNASOLE_CHECK(remove_if_there(*store_, format::kClaimPath));
  Status claimed = store_->create_exclusive(format::kClaimPath, format::encode_claim(identity_.process));
  if (!claimed.ok() && claimed.error().code == ErrorCode::kInvalid) {
    return occupied_error("{}: another process claimed the directory first ({} exists)", store_->description(),
                          format::kClaimPath);
  }
  return claimed;
}

Status RunDirectory::announce_run() {
  TORNASOLE_CHECK(write_health({}));
  const format::RunFile run{
      .run_id = identity_.run_id, .start = identity_.start_time, .world_size = identity_.writer_count};
  TORNASOLE_CHECK(write_file(*store_, format::kRunPath, format::encode_run(run)));
  has_begun_ = true;
  return {};
}

void RunDirectory::drop_claim() {
  if (!store_->capabilities().can_claim) return;
  const auto text = store_->read_all(format::kClaimPath, kMaxClaimBytes);
  if (!text.ok()) return;
  const auto owner = format::decode_claim(*text);
  if (!owner.ok() || *owner != identity_.process) return;
  // Left behind it still names this process: the next run takes it over when the process has ended.
  const Status removed = store_->remove(format::kClaimPath);
  static_cast<void>(removed);
}

Status RunDirectory::write_health(format::Health health) {
  health.process = identity_.process;
  health.run_id = identity_.run_id;
  health.start_time = identity_.start_time;
  health.heartbeat = clock_->wall_seconds();
  if (store_->capabilities().is_remote) health.heartbeat_interval_s = kRemoteHeartbeat_s;
  last_health_ = std::move(health);
  return write_file(*store_, format::health_path(identity_.worker), format::encode_health(last_health_));
}

Status RunDirectory::check_still_ours() const {
  const auto text = store_->read_all(format::kRunPath, kMaxRunBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) {
    // Whoever clears the directory at this moment is not to find it filled again.
    return not_found_error("{}: {} was removed while the run goes on", store_->description(), format::kRunPath);
  }
  if (!text.ok()) return {};
  const auto run = format::decode_run(*text);
  if (!run.ok() || run->run_id == identity_.run_id) return {};
  return make_error(ErrorCode::kEnded, ErrorKind::kRuntime,
                    "{}: another run ({}) took the directory over, presuming this one dead", store_->description(),
                    printable(std::string_view(run->run_id).substr(0, 128)));
}

Status RunDirectory::publish_health(format::Health health) {
  if (!has_begun_) return runtime_error("{}: health of a run that has not begun, or is over", store_->description());
  TORNASOLE_CHECK(check_still_ours());
  return write_health(std::move(health));
}

Status RunDirectory::end(format::Health health) {
  if (!has_begun_) return runtime_error("{}: end of a run that has not begun, or is over", store_->description());
  if (health.state == format::RunState::kRunning) health.state = format::RunState::kEnded;
  // Each part is tried whatever became of the others; the first failure is reported.
  Status result = publish_health(std::move(health));
  has_begun_ = false;
  if (!result.ok() && result.error().code == ErrorCode::kEnded) return result;
  if (!identity_.in_sagemaker) {
    Status marked = mark_end();
    if (result.ok()) result = std::move(marked);
  }
  drop_claim();
  return result;
}

// Every writer says `ended` before it looks, so of two that end at the same time at least one sees both.
Status RunDirectory::mark_end() {
  if (identity_.writer_count > 1) {
    TORNASOLE_TRY(const std::vector<HealthFile> files, read_health_files(*store_));
    const std::string own = format::health_path(identity_.worker);
    StoreTime time(store_);
    std::int64_t over = 1;  // this one, whatever became of its file
    for (const HealthFile& file : files) {
      if (file.path == own || !file.health || file.health->run_id != identity_.run_id) continue;
      const Liveness liveness = judge(file, time);
      if (liveness == Liveness::kDone || liveness == Liveness::kDead) ++over;
    }
    if (over < identity_.writer_count) return {};
  }
  if (store_->status(format::kEndMarkerPath).ok()) return {};
  if (!store_->capabilities().can_claim) return write_file(*store_, format::kEndMarkerPath, "");
  Status marked = store_->create_exclusive(format::kEndMarkerPath, "");
  if (!marked.ok() && marked.error().code == ErrorCode::kInvalid) return {};  // another writer was faster
  return marked;
}

void RunDirectory::release() noexcept {
  if (!has_begun_) return;
  try {
    has_begun_ = false;
    format::Health health = last_health_;
    health.state = format::RunState::kFailed;
    health.reason = "superseded by a new hook of the same process";
    if (!check_still_ours().ok()) return;
    if (!write_health(std::move(health)).ok()) {
      // `running` must not stay: this process lives on, and its next hook would find a live run.
      const Status removed = store_->remove(format::health_path(identity_.worker));
      static_cast<void>(removed);
    }
    drop_claim();
  } catch (...) {
    // Nobody is left to tell: the caller is about to start another run, which surveys the directory itself.
  }
}

}  // namespace tornasole::capture
