#include "capture/run_resume.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "capture/run_occupancy.h"
#include "format/index.h"
#include "format/json_fields.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20U;
// Where no health file tells, so many of the last steps are looked into: one of each mode is among them, unless a mode
// is rarer than that, and then it starts afresh.
constexpr std::size_t kMaxLookedAt = 1000;
// Each is a request over the network there.
constexpr std::size_t kRemoteThreads = 16;
// A run.json this much older than the worker is not of the same start.
constexpr double kOldSeconds = 60;

// Of several workers another may have begun the new run already: its steps are none of the old one's. When, by the
// store's clock; nothing if nobody has.
Result<std::optional<double>> new_run_began_s(store::Store& store) {
  const auto status = store.status(format::kRunPath);
  const auto text = store.read_all(format::kRunPath, kMaxRunBytes);
  if (!status.ok() || !text.ok()) return std::optional<double>();
  const auto run = format::decode_run(*text);
  if (!run.ok()) return std::optional<double>();
  TORNASOLE_TRY(const auto files, read_health_files(store));
  StoreTime time(&store);
  for (const HealthFile& file : files) {
    if (!file.health || file.health->run_id != run->run_id) continue;
    const Liveness liveness = judge(file, time);
    const auto now_s = liveness == Liveness::kMaybe ? time.now_s() : std::nullopt;
    const bool is_new = now_s && *now_s - status->modified_s < kOldSeconds;
    if (liveness == Liveness::kAlive || is_new) return std::optional(status->modified_s);
  }
  return std::optional<double>();
}

// What the worker itself said last; up to which step that goes.
std::int64_t take_health(store::Store& store, const std::string& worker, ResumePoint* point) {
  const auto text = store.read_all(format::health_path(worker), kMaxHealthBytes);
  if (!text.ok()) return -1;
  const auto health = format::decode_health(*text);
  if (!health.ok() || health->mode_steps.empty()) return -1;
  for (const auto& [name, step] : health->mode_steps) {
    const auto mode = format::parse_mode_name(name);
    if (mode && step >= 0) point->mode_steps[*mode] = step;
  }
  return health->last_committed;
}

// The last step of each mode among some index files. Ones that cannot be read say nothing.
std::map<Mode, std::int64_t> read_mode_steps(store::Store& store, const std::vector<std::string>& paths) {
  std::map<Mode, std::int64_t> steps;
  std::mutex mutex;  // of steps
  std::atomic<std::size_t> next = 0;
  const auto work = [&]() noexcept {
    try {
      for (std::size_t at = next++; at < paths.size(); at = next++) {
        const auto text = store.read_all(paths[at], kMaxIndexBytes);
        if (!text.ok()) continue;
        const auto index = format::decode_index(*text);
        if (!index.ok()) continue;
        const std::lock_guard lock(mutex);
        std::int64_t& last = steps.try_emplace(index->mode, -1).first->second;
        last = std::max(last, index->mode_step);
      }
    } catch (...) {
      static_cast<void>(error_from_current_exception());  // no memory for a file: it says nothing
    }
  };
  std::vector<std::thread> threads;
  const std::size_t count = store.capabilities().is_remote ? std::min(kRemoteThreads, paths.size()) : 1;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return steps;
}

}  // namespace

Result<ResumePoint> find_resume_point(store::Store& store, const RunIdentity& identity) {
  std::optional<double> before_s;
  if (identity.writer_count > 1) {
    TORNASOLE_TRY(before_s, new_run_began_s(store));
  }
  ResumePoint point;
  const std::int64_t told = before_s ? -1 : take_health(store, identity.worker, &point);
  TORNASOLE_TRY(const auto entries, store.list("index", /*recursive=*/true));
  std::vector<std::string> untold;
  std::int64_t looked_at = -1;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->status.is_directory || (before_s && entry->status.modified_s >= *before_s)) continue;
    const auto file = format::parse_step_file(entry->path, ".json");
    if (!file) continue;
    point.last_step = std::max(point.last_step, file->step);
    // Of each step one file: all workers of a step are in the same mode, and go on with the same numbers.
    if (file->step <= told || file->step == looked_at || untold.size() == kMaxLookedAt) continue;
    looked_at = file->step;
    untold.push_back(entry->path);
  }
  for (const auto& [mode, step] : read_mode_steps(store, untold)) {
    std::int64_t& last = point.mode_steps.try_emplace(mode, -1).first->second;
    last = std::max(last, step);
  }
  return point;
}

}  // namespace tornasole::capture
