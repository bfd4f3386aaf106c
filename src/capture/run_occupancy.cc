#include "capture/run_occupancy.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

constexpr std::string_view kHealthSuffix = "_health.json";
constexpr double kWatchSeconds = 65;
constexpr double kMinSilenceSeconds = 60;
constexpr double kMaxSilenceSeconds = 360;
constexpr std::size_t kMaxHealthFiles = 65'536;  // workers a trial may claim

bool is_same_sign(const Suspect& a, const Suspect& b) {
  return a.path == b.path && a.modified_s == b.modified_s && a.heartbeat == b.heartbeat;
}

// Absent and unreadable directories hold nothing for us; a store that fails is an error.
Result<std::vector<store::Entry>> list_or_nothing(store::Store& store, std::string_view directory, bool recursive) {
  auto entries = store.list(directory, recursive);
  if (entries.ok() || entries.error().code == ErrorCode::kIo) return entries;
  return std::vector<store::Entry>();
}

// What is known about the writers, before anybody counts steps.
struct Writers {
  bool is_finished = false;
  bool has_traces = false;
  std::string alive = {};     // description of a writer that certainly lives
  std::string maybe = {};     // of one that may
  std::string last = {};      // of the dead one heard of last
  std::string problems = {};  // files that could not be read
  double last_heartbeat = -1;
  std::vector<Suspect> suspects = {};

  void note(Liveness liveness, const ProcessIdentity& process, const Suspect& sign,
            const std::vector<Suspect>& presumed_dead) {
    has_traces = true;
    const bool was_watched = std::any_of(presumed_dead.begin(), presumed_dead.end(),
                                         [&](const Suspect& known) { return is_same_sign(known, sign); });
    if (liveness == Liveness::kAlive) {
      if (alive.empty()) alive = describe(process);
    } else if (liveness == Liveness::kMaybe && !was_watched) {
      if (maybe.empty()) maybe = describe(process);
      suspects.push_back(sign);
    } else if (last.empty() || sign.heartbeat > last_heartbeat) {
      last = describe(process);
      last_heartbeat = sign.heartbeat;
    }
  }
  void note_problem(std::string_view path, std::string_view problem) {
    has_traces = true;
    if (problems.empty()) problems = fmt::format("{} is unreadable: {}", path, problem);
  }
};

Status note_claim(store::Store& store, const SurveyOptions& options, const std::vector<HealthFile>& files,
                  StoreTime& time, Writers* writers) {
  const auto text = store.read_all(format::kClaimPath, kMaxClaimBytes);
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return {};
    if (text.error().code == ErrorCode::kIo) return text.error();
    writers->note_problem(format::kClaimPath, text.error().message);
    return {};
  }
  const auto owner = format::decode_claim(*text);
  if (!owner.ok()) {
    // The original debugger leaves its claim empty; nobody of ours is behind it.
    writers->has_traces = true;
    if (owner.error().code != ErrorCode::kNotFound) writers->note_problem(format::kClaimPath, owner.error().message);
    return {};
  }
  if (options.self != nullptr && !options.own_run_id.empty() && *owner == *options.self) return {};
  writers->has_traces = true;
  // A health file of the same process knows more than its claim: its state and its heartbeat.
  if (std::any_of(files.begin(), files.end(),
                  [&](const HealthFile& file) { return file.health && file.health->process == *owner; })) {
    return {};
  }
  const auto status = store.status(format::kClaimPath);
  const double modified_s = status.ok() ? status->modified_s : 0;
  writers->note(judge(*owner, modified_s, kMinSilenceSeconds, time), *owner,
                {.path = std::string(format::kClaimPath), .modified_s = modified_s}, options.presumed_dead);
  return {};
}

Result<Writers> survey_writers(store::Store& store, const SurveyOptions& options) {
  Writers writers;
  TORNASOLE_TRY(writers.is_finished, has_end_marker(store));
  if (writers.is_finished) return writers;
  TORNASOLE_TRY(const std::vector<HealthFile> files, read_health_files(store));
  StoreTime time(&store);
  for (const HealthFile& file : files) {
    if (!file.health) {
      writers.note_problem(file.path, file.problem);
      continue;
    }
    const format::Health& health = *file.health;
    const bool is_own = options.self != nullptr && health.process == *options.self && !options.own_run_id.empty() &&
                        health.run_id == options.own_run_id;
    if (is_own) continue;
    writers.note(judge(file, time), health.process,
                 {.path = file.path,
                  .modified_s = file.status.modified_s,
                  .heartbeat = health.heartbeat,
                  .silence_limit_s = silence_limit_s(health)},
                 options.presumed_dead);
  }
  TORNASOLE_CHECK(note_claim(store, options, files, time, &writers));
  return writers;
}

Occupancy conclude(const Writers& writers, bool has_files, std::int64_t last_step) {
  Occupancy result{.last_step = last_step};
  if (writers.is_finished) {
    result.occupant = Occupant::kFinished;
    result.description = "a finished run";
  } else if (!writers.alive.empty()) {
    result.occupant = Occupant::kLive;
    result.description = writers.alive;
  } else if (!writers.maybe.empty()) {
    result.occupant = Occupant::kLive;
    result.description = writers.maybe;
  } else if (has_files || writers.has_traces) {
    result.occupant = Occupant::kDead;
    result.description = writers.last.empty() ? "a writer that left no name" : writers.last;
  }
  if (!writers.problems.empty()) result.description += fmt::format(" ({})", writers.problems);
  return result;
}

}  // namespace

Result<bool> has_end_marker(store::Store& store) {
  const auto marker = store.status(format::kEndMarkerPath);
  if (marker.ok()) return true;
  // Something odd under that name (a link, say) is still the name: only its absence permits a run.
  if (marker.error().code == ErrorCode::kCorrupt) return true;
  if (marker.error().code == ErrorCode::kNotFound) return false;
  return marker.error();
}

Result<bool> has_run_files(store::Store& store) {
  if (store.status(format::kStopRequestPath).ok()) return true;
  for (const std::string_view directory : {"index", "collections", "tornasole", "events"}) {
    TORNASOLE_TRY(const auto entries, list_or_nothing(store, directory, true));
    if (!entries.empty()) return true;
  }
  return false;
}

std::string describe(const ProcessIdentity& process) {
  return fmt::format("process {} on host {}", process.pid, printable(std::string_view(process.host).substr(0, 255)));
}

std::optional<double> StoreTime::now_s() {
  if (!is_asked_) {
    is_asked_ = true;
    if (const auto now = store_.now_s(); now.ok()) now_s_ = *now;
  }
  return now_s_;
}

double silence_limit_s(const format::Health& health) {
  const double limit = 6 * health.heartbeat_interval_s;
  return std::isfinite(limit) ? std::clamp(limit, kMinSilenceSeconds, kMaxSilenceSeconds) : kMinSilenceSeconds;
}

Liveness judge(const ProcessIdentity& process, double modified_s, double limit_s, StoreTime& time) {
  if (const auto is_alive = is_process_alive(process)) return *is_alive ? Liveness::kAlive : Liveness::kDead;
  const auto now_s = time.now_s();
  // Both times are the store's own, so one far in the future is no better sign of life than one far in the past.
  return now_s && std::abs(*now_s - modified_s) > limit_s ? Liveness::kDead : Liveness::kMaybe;
}

Liveness judge(const HealthFile& file, StoreTime& time) {
  if (!file.health) return Liveness::kDead;
  if (file.health->state != format::RunState::kRunning) return Liveness::kDone;
  return judge(file.health->process, file.status.modified_s, silence_limit_s(*file.health), time);
}

Result<std::vector<HealthFile>> read_health_files(store::Store& store) {
  TORNASOLE_TRY(const auto entries, list_or_nothing(store, format::kHealthDirectory, false));
  std::vector<HealthFile> files;
  for (const store::Entry& entry : entries) {
    const std::string_view path = entry.path;
    if (entry.status.is_directory || !path.ends_with(kHealthSuffix)) continue;
    std::string_view worker = path.substr(0, path.size() - kHealthSuffix.size());
    worker = worker.substr(std::min(worker.rfind('/') + 1, worker.size()));
    if (!format::is_safe_worker(worker)) continue;
    if (files.size() == kMaxHealthFiles) break;
    HealthFile file{.path = entry.path, .status = entry.status};
    const auto text = store.read_all(entry.path, kMaxHealthBytes);
    if (!text.ok()) {
      if (text.error().code == ErrorCode::kNotFound) continue;  // gone since the listing
      if (text.error().code == ErrorCode::kIo) return text.error();
      file.problem = text.error().message;
    } else if (auto health = format::decode_health(*text); health.ok()) {
      file.health = std::move(*health);
    } else {
      file.problem = health.error().message;
    }
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::int64_t> last_published_step(store::Store& store, std::optional<double> before_s) {
  TORNASOLE_TRY(const auto entries, list_or_nothing(store, "index", true));
  std::int64_t last = -1;
  for (const store::Entry& entry : entries) {
    if (entry.status.is_directory || (before_s && entry.status.modified_s >= *before_s)) continue;
    if (const auto file = format::parse_step_file(entry.path, ".json")) last = std::max(last, file->step);
  }
  return last;
}

Status refuse_other_runs(store::Store& store, std::string_view run_id, double since_s) {
  TORNASOLE_TRY(const std::vector<HealthFile> files, read_health_files(store));
  StoreTime time(&store);
  for (const HealthFile& file : files) {
    if (!file.health || file.health->run_id == run_id) continue;
    const Liveness liveness = judge(file, time);
    const bool is_live =
        liveness == Liveness::kAlive || (liveness == Liveness::kMaybe && file.status.modified_s > since_s);
    if (!is_live) continue;
    return runtime_error("{}: {} writes there for another run ({}, not {}); end it, or choose another out_dir",
                         store.description(), describe(file.health->process), printable(file.health->run_id),
                         printable(run_id));
  }
  return {};
}

Result<Survey> survey(store::Store& store, const SurveyOptions& options) {
  TORNASOLE_TRY(Writers writers, survey_writers(store, options));
  Survey result;
  TORNASOLE_TRY(const std::int64_t last_step, last_published_step(store));
  result.has_files = last_step >= 0;
  if (!result.has_files) {
    TORNASOLE_TRY(result.has_files, has_run_files(store));
  }
  result.occupancy = conclude(writers, result.has_files, last_step);
  if (writers.alive.empty()) result.suspects = std::move(writers.suspects);
  return result;
}

Result<Survey> survey_and_watch(store::Store& store, SurveyOptions* options, const Sleep& sleep) {
  TORNASOLE_TRY(const Writers first, survey_writers(store, *options));
  const bool needs_watch = !first.is_finished && first.alive.empty() && !first.suspects.empty();
  if (!needs_watch || !sleep) return survey(store, *options);

  bool has_changed = false;
  double watched_s = 0;
  for (; watched_s < kWatchSeconds && !has_changed; ++watched_s) {
    sleep(1);
    TORNASOLE_TRY(const Writers now, survey_writers(store, *options));
    if (now.is_finished || !now.alive.empty() || now.suspects.empty()) return survey(store, *options);
    for (const Suspect& suspect : now.suspects) {
      has_changed |= std::none_of(first.suspects.begin(), first.suspects.end(),
                                  [&](const Suspect& before) { return is_same_sign(before, suspect); });
    }
  }
  if (!has_changed) {
    for (const Suspect& suspect : first.suspects) {
      if (watched_s >= suspect.silence_limit_s) options->presumed_dead.push_back(suspect);
    }
  }
  return survey(store, *options);
}

}  // namespace tornasole::capture
