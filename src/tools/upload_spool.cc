#include "tools/upload_spool.h"

#include <set>
#include <utility>

#include "base/errors.h"
#include "capture/run_occupancy.h"
#include "format/paths.h"
#include "store/local/local_store.h"
#include "store/spool/spool_journal.h"
#include "tools/absolute_path.h"
#include "trial/open_location.h"

namespace tornasole::tools {
namespace {

Status refuse_live(const store::FoundSpool& spool, bool force) {
  const auto is_alive = is_process_alive(spool.owner.process);
  const std::string who = capture::describe(spool.owner.process);
  if (is_alive == true) {
    return runtime_error("{}: {} is still running, and sends it by itself; end it first", spool.directory, who);
  }
  if (!is_alive && !force) {
    return runtime_error("{}: {} wrote it, and may still be running there; pass --force if it is not", spool.directory,
                         who);
  }
  return {};
}

// A worker that ended while the store was away could not see that it was the last.
Result<bool> end_if_all_ended(store::Store& store) {
  TORNASOLE_TRY(const bool is_ended, capture::has_end_marker(store));
  if (is_ended) return false;
  const auto text = store.read_all(format::kRunPath, capture::kMaxRunBytes);
  if (!text.ok()) return false;
  const auto run = format::decode_run(*text);
  if (!run.ok()) return false;
  TORNASOLE_TRY(const auto files, capture::read_health_files(store));
  std::int64_t ended = 0;
  for (const capture::HealthFile& file : files) {
    const bool is_of_run = file.health && file.health->run_id == run->run_id;
    if (is_of_run && file.health->state != format::RunState::kRunning) ++ended;
  }
  if (ended < run->world_size) return false;
  TORNASOLE_TRY(const auto file, store.create(format::kEndMarkerPath));
  TORNASOLE_CHECK(file->publish(/*replace=*/true));
  return true;
}

Status look_at(const store::FoundSpool& spool, UploadedSpool* result) {
  TORNASOLE_TRY(const auto journal, store::open_local_store(spool.directory, {.read_only = true}));
  TORNASOLE_TRY(const auto actions, store::read_spool_actions(*journal, &result->problems));
  result->files = static_cast<std::int64_t>(actions.size());
  for (const store::SpoolAction& action : actions) result->bytes += action.size_bytes;
  return {};
}

Status send(const store::FoundSpool& spool, UploadedSpool* result) {
  TORNASOLE_TRY(const auto target, trial::open_location(result->location, /*read_only=*/false));
  store::SpoolDelivery delivery;
  const Status delivered = store::deliver_spool(spool, *target, &delivery);
  result->files = delivery.files;
  result->bytes = delivery.bytes;
  result->problems = std::move(delivery.problems);
  if (!delivered.ok()) {
    return make_error(delivered.error().code, delivered.error().kind, "{}: {}; {} files arrived, the rest stays there",
                      spool.directory, delivered.error().message, delivery.files);
  }
  return {};
}

}  // namespace

Result<std::vector<UploadedSpool>> upload_spools(const UploadOptions& options) {
  TORNASOLE_TRY(const std::string path, absolute_path(options.path));
  std::string location = options.location;
  if (!location.empty() && !location.starts_with("s3://")) {
    TORNASOLE_TRY(location, absolute_path(location));
  }
  TORNASOLE_TRY(const auto spools, store::find_spools(path));
  if (spools.empty()) return not_found_error("{}: nothing waits to be sent there", path);
  if (!options.dry_run) {
    for (const store::FoundSpool& spool : spools) TORNASOLE_CHECK(refuse_live(spool, options.force));
  }
  std::vector<UploadedSpool> results;
  std::set<std::string> locations;
  for (const store::FoundSpool& spool : spools) {
    UploadedSpool result{.directory = spool.directory, .location = location.empty() ? spool.owner.location : location};
    TORNASOLE_CHECK(options.dry_run ? look_at(spool, &result) : send(spool, &result));
    locations.insert(result.location);
    results.push_back(std::move(result));
  }
  if (options.dry_run || !options.marks_end) return results;
  // After all of them: each may have held the last words of a worker.
  for (const std::string& place : locations) {
    TORNASOLE_TRY(const auto target, trial::open_location(place, /*read_only=*/false));
    TORNASOLE_TRY(const bool is_ended, end_if_all_ended(*target));
    for (UploadedSpool& result : results) result.is_ended |= is_ended && result.location == place;
  }
  return results;
}

}  // namespace tornasole::tools
