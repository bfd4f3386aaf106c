// How a worker that is not the chief begins:
//
//   1. Wait, up to 30 s, for a run.json of this run. It is if it was written after this worker started, if it appears
//   or
//      changes while the worker waits, if its writer is alive on this host, or if it gives a new heartbeat. One that
//      was there before may be of an attempt that died a minute ago, which the chief is about to move aside.
//   2. A live worker with another run_id: stop.
//   3. Copy the run_id, write the first health file.

#include <algorithm>
#include <map>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/run_directory.h"
#include "capture/run_occupancy.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

constexpr double kPollSeconds = 0.05;
constexpr double kJoinSeconds = 30;
constexpr double kOldSeconds = 600;  // before the worker's own start
constexpr double kClockSlackSeconds = 1;
constexpr std::size_t kMaxRunIdBytes = 128;

struct FoundRun {
  format::RunFile run = {};
  double modified_s = 0;
};
enum class Belief { kNo, kPerhaps, kYes };

// Nothing: no run.json, or one that cannot be read, which *problem explains.
Result<std::optional<FoundRun>> read_run(store::Store& store, std::string* problem) {
  const auto status = store.status(format::kRunPath);
  const auto text = store.read_all(format::kRunPath, kMaxRunBytes);
  if (!text.ok() && text.error().code == ErrorCode::kIo) return text.error();
  if (!text.ok() || !status.ok()) {
    *problem = fmt::format("there is no {}", format::kRunPath);
    return std::optional<FoundRun>();
  }
  auto run = format::decode_run(*text);
  if (!run.ok()) {
    *problem = fmt::format("{} is unreadable: {}", format::kRunPath, run.error().message);
    return std::optional<FoundRun>();
  }
  if (run->run_id.empty() || run->run_id.size() > kMaxRunIdBytes) {
    *problem = fmt::format("{} has a run_id of {} bytes: 1 to {} are allowed", format::kRunPath, run->run_id.size(),
                           kMaxRunIdBytes);
    return std::optional<FoundRun>();
  }
  return std::optional(FoundRun{.run = std::move(*run), .modified_s = status->modified_s});
}

// Watches the run.json that was there first, until it is known to be of this run.
class RunWatch {
 public:
  RunWatch(store::Store* store, double start_time) : store_(*store), start_time_(start_time) {}

  // `elapsed_s`: since this worker started.
  Result<Belief> judge_run(const std::optional<FoundRun>& found, double elapsed_s) {
    const bool is_first_look = std::exchange(is_first_look_, false);
    if (!found) {
      first_run_id_.clear();
      return Belief::kNo;
    }
    if (found->run.start < start_time_ - kOldSeconds) return Belief::kNo;
    if (is_first_look) {
      first_run_id_ = found->run.run_id;
      TORNASOLE_TRY(const double now_s, store_.now_s());
      is_written_since_start_ = now_s - found->modified_s <= elapsed_s + kClockSlackSeconds;
    }
    if (found->run.run_id != first_run_id_ || is_written_since_start_) return Belief::kYes;
    return judge_writers(found->run.run_id);
  }

 private:
  Result<Belief> judge_writers(const std::string& run_id) {
    TORNASOLE_TRY(const std::vector<HealthFile> files, read_health_files(store_));
    StoreTime time(&store_);
    bool has_writer = false;
    bool may_live = false;
    for (const HealthFile& file : files) {
      if (!file.health || file.health->run_id != run_id) continue;
      has_writer = true;
      const Liveness liveness = judge(file, time);
      if (liveness == Liveness::kAlive) return Belief::kYes;
      if (liveness != Liveness::kMaybe) continue;
      may_live = true;
      const auto [seen, is_new] = heartbeats_.emplace(file.path, file.health->heartbeat);
      if (!is_new && seen->second != file.health->heartbeat) return Belief::kYes;
    }
    return has_writer && !may_live ? Belief::kNo : Belief::kPerhaps;
  }

  store::Store& store_;
  double start_time_;
  bool is_first_look_ = true;
  bool is_written_since_start_ = false;
  std::string first_run_id_ = {};
  std::map<std::string, double> heartbeats_ = {};
};

}  // namespace

Status RunDirectory::join(const std::function<void(double seconds)>& sleep, std::int64_t* first_free_step) {
  TORNASOLE_CHECK(check(sleep));
  RunWatch watch(store_, identity_.start_time);
  const std::int64_t begin_ns = clock_->monotonic_ns();
  std::optional<FoundRun> found;
  std::string problem;
  Belief belief = Belief::kNo;
  for (double waited_s = 0;; waited_s += kPollSeconds) {
    TORNASOLE_TRY(found, read_run(*store_, &problem));
    TORNASOLE_TRY(belief, watch.judge_run(found, clock_->wall_seconds() - identity_.start_time));
    if (belief == Belief::kYes) break;
    // Both are counted: the sleeper may return early, and the store may be what takes the time.
    const double passed_s = static_cast<double>(clock_->monotonic_ns() - begin_ns) * 1e-9;
    if (std::max(waited_s, passed_s) >= kJoinSeconds || !sleep) break;
    sleep(kPollSeconds);
  }
  if (belief == Belief::kNo) {
    if (found) problem = fmt::format("{} is of an earlier run, {}", format::kRunPath, printable(found->run.run_id));
    return not_yet_error("{}: {} waited {} s for the chief to begin the run: {}", store_->description(),
                         identity_.worker, kJoinSeconds, problem);
  }
  TORNASOLE_CHECK(refuse_other_runs(*store_, found->run.run_id, found->modified_s));
  if (identity_.resume) {
    // The chief may have published new steps already: the run that is continued ends where this one began.
    TORNASOLE_TRY(const std::int64_t last_step, last_published_step(*store_, found->modified_s));
    *first_free_step = last_step + 1;
  }
  identity_.run_id = found->run.run_id;
  TORNASOLE_CHECK(write_health({}));
  has_begun_ = true;
  return {};
}

}  // namespace tornasole::capture
