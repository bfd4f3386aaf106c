#include "tools/repair.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/errors.h"
#include "capture/run_attempts.h"
#include "capture/run_lock.h"
#include "capture/run_occupancy.h"
#include "tools/absolute_path.h"
#include "tools/part_repair.h"
#include "tools/part_store.h"
#include "tools/trial_files.h"
#include "trial/open_location.h"

namespace tornasole::tools {
namespace {

// Names with a unique part are made by processes that are only starting; younger ones may be in use.
constexpr double kRootTemporaryAgeSeconds = 60;

void really_sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

Error live_error(const store::Store& store, std::string_view who) {
  return runtime_error("{}: a live run writes there: {}; end it first, a repair touches only runs that are over",
                       store.description(), who);
}

// The store's time; by the wall clock where asking would write.
Result<double> now_s(store::Store& store, bool dry_run) {
  return dry_run ? Result<double>(system_clock().wall_seconds()) : store.now_s();
}

// True if the last sign of life of every suspect is too old, by the wall clock.
bool are_silent(const std::vector<capture::Suspect>& suspects) {
  return std::ranges::all_of(suspects, [](const capture::Suspect& suspect) {
    return std::abs(system_clock().wall_seconds() - suspect.modified_s) > suspect.silence_limit_s;
  });
}

// An end marker says that all writers are over; one that is not was written off too early.
Status refuse_live_writers(store::Store& store) {
  TORNASOLE_TRY(const auto files, capture::read_health_files(store));
  for (const capture::HealthFile& file : files) {
    const bool runs = file.health && file.health->state == format::RunState::kRunning;
    if (runs && is_process_alive(file.health->process).value_or(false)) {
      return live_error(store, capture::describe(file.health->process));
    }
  }
  return {};
}

Status refuse_live_run(store::Store& store, const RepairOptions& options, capture::SurveyOptions* survey_options) {
  const capture::Sleep sleep = options.sleep ? options.sleep : capture::Sleep(really_sleep);
  TORNASOLE_TRY(const capture::Survey found, options.dry_run ? capture::survey(store, *survey_options)
                                                             : capture::survey_and_watch(store, survey_options, sleep));
  if (found.occupancy.occupant == capture::Occupant::kFinished) return refuse_live_writers(store);
  if (found.occupancy.occupant != capture::Occupant::kLive) return {};
  if (options.dry_run && !found.suspects.empty() && are_silent(found.suspects)) return {};
  return live_error(store, found.occupancy.description);
}

double newest_change(const TrialFiles& files) {
  double newest = 0;
  for (const auto* entries : {&files.collections, &files.tensorboard, &files.state, &files.temporary}) {
    for (const store::Entry& entry : *entries) newest = std::max(newest, entry.status.modified_s);
  }
  for (const auto* entries : {&files.index, &files.events}) {
    for (const StepFileEntry& entry : *entries) newest = std::max(newest, entry.status.modified_s);
  }
  return newest;
}

// A run without a health file tells nothing about its writer but when it wrote last.
Status refuse_busy_run(store::Store& store, const TrialFiles& files, const RepairOptions& options) {
  TORNASOLE_TRY(const double now, now_s(store, options.dry_run));
  const double age = now - newest_change(files);
  if (age < 0 || age >= options.quiet_s) return {};
  return live_error(store, fmt::format("no health file names the writer, and a file changed {:.0f} s ago; "
                                       "without a change for {:.0f} s it counts as dead",
                                       age, options.quiet_s));
}

Result<bool> has_health_file(store::Store& store) {
  TORNASOLE_TRY(const auto files, capture::read_health_files(store));
  return std::ranges::any_of(files, [](const capture::HealthFile& file) { return file.health.has_value(); });
}

Status finish_moves(store::Store& store, const RepairOptions& options, TrialFiles* files, RepairReport* report) {
  if (files->unfinished_moves.empty()) return {};
  for (const std::int64_t number : files->unfinished_moves) {
    report->actions.add({.kind = RepairActionKind::kFinishMove,
                         .path = attempt_directory(number),
                         .detail = "the rest of the earlier attempt joins it"});
  }
  if (options.dry_run) return {};
  TORNASOLE_CHECK(capture::finish_interrupted_moves(store));
  TORNASOLE_TRY(*files, list_trial_files(store));
  return {};
}

bool has_run_files(const TrialFiles& files) {
  return !files.collections.empty() || !files.index.empty() || !files.events.empty() || !files.state.empty() ||
         !files.temporary.empty() || !files.tensorboard.empty() || files.has_claim;
}

Status remove_root_temporaries(store::Store& store, const TrialFiles& files, bool dry_run, RepairReport* report) {
  if (files.root_temporary.empty()) return {};
  TORNASOLE_TRY(const double now, now_s(store, dry_run));
  for (const store::Entry& entry : files.root_temporary) {
    if (std::abs(now - entry.status.modified_s) < kRootTemporaryAgeSeconds) continue;
    report->actions.add({.kind = RepairActionKind::kRemove, .path = entry.path, .detail = "temporary file"});
    ++report->files_removed;
    if (dry_run) continue;
    Status removed = store.remove(entry.path);
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
  }
  return {};
}

Result<RepairReport> repair_all(store::Store& store, const RepairOptions& options) {
  RepairReport report;
  report.dry_run = options.dry_run;
  TORNASOLE_TRY(TrialFiles files, list_trial_files(store));
  TORNASOLE_CHECK(finish_moves(store, options, &files, &report));
  const std::vector<std::int64_t> attempts = files.attempts;
  TORNASOLE_CHECK(remove_root_temporaries(store, files, options.dry_run, &report));
  if (has_run_files(files)) {
    TORNASOLE_CHECK(PartRepair(&store, std::move(files), {.dry_run = options.dry_run}, &report).run());
  }
  for (const std::int64_t number : attempts) {
    const std::string directory = attempt_directory(number);
    PartStore part(&store, directory);
    TORNASOLE_TRY(TrialFiles moved, list_trial_files(part));
    if (!has_run_files(moved)) continue;
    const PartRepair::Options part_options{.dry_run = options.dry_run, .prefix = directory + "/"};
    TORNASOLE_CHECK(PartRepair(&part, std::move(moved), part_options, &report).run());
  }
  return report;
}

}  // namespace

std::string_view repair_action_name(RepairActionKind kind) noexcept {
  switch (kind) {
    case RepairActionKind::kFinishMove: return "finish move";
    case RepairActionKind::kPublishStep: return "publish step";
    case RepairActionKind::kPublishIndex: return "publish index";
    case RepairActionKind::kPublishFile: return "publish file";
    case RepairActionKind::kWriteCollections: return "write collections";
    case RepairActionKind::kRemove: return "remove";
    case RepairActionKind::kMarkFailed: return "mark failed";
    case RepairActionKind::kWriteEndMarker: return "write end marker";
  }
  return "unknown";
}

Result<RepairReport> repair(store::Store& store, const RepairOptions& options) {
  TORNASOLE_TRY(const store::FileStatus status, store.status(""));
  static_cast<void>(status);
  TORNASOLE_TRY(const TrialFiles files, list_trial_files(store));
  if (files.is_empty()) {
    return invalid_error("{} is no trial: it has no collections, index or events and nothing else of a run",
                         store.description());
  }
  capture::SurveyOptions survey_options;
  TORNASOLE_CHECK(refuse_live_run(store, options, &survey_options));
  RepairOptions look = options;
  look.dry_run = true;
  TORNASOLE_TRY(RepairReport planned, repair_all(store, look));
  planned.dry_run = options.dry_run;
  if (planned.changes_nothing()) return planned;
  TORNASOLE_TRY(const bool is_ours, has_health_file(store));
  if (!is_ours) TORNASOLE_CHECK(refuse_busy_run(store, files, options));
  if (options.dry_run) return planned;

  // Nobody may begin a run here from now on; who was faster is found by looking again.
  std::optional<capture::SetUpLock> lock;
  if (store.capabilities().can_claim) {
    const capture::Sleep sleep = options.sleep ? options.sleep : capture::Sleep(really_sleep);
    TORNASOLE_TRY(capture::SetUpLock held, capture::SetUpLock::acquire(&store, this_process(), sleep));
    lock.emplace(std::move(held));
  }
  TORNASOLE_TRY(const capture::Survey again, capture::survey(store, survey_options));
  if (again.occupancy.occupant == capture::Occupant::kLive) return live_error(store, again.occupancy.description);
  return repair_all(store, options);
}

Result<RepairReport> repair(const RepairOptions& options) {
  TORNASOLE_TRY(const std::string root, absolute_path(options.path));
  TORNASOLE_TRY(const auto store, trial::open_location(root, options.dry_run));
  return repair(*store, options);
}

}  // namespace tornasole::tools
