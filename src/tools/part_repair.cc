#include "tools/part_repair.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/index.h"
#include "format/paths.h"
#include "tools/event_file.h"
#include "tools/salvage.h"

namespace tornasole::tools {
namespace {

constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxCollectionsBytes = std::uint64_t{64} << 20;
constexpr std::int64_t kMaxWorkers = 65'536;
// One number in one file must not make a directory of files.
constexpr std::int64_t kMaxAddedWorkers = 1024;

Status write_file(store::Store& store, std::string_view path, ByteView content, bool replace) {
  TORNASOLE_TRY(const auto file, store.create(path));
  TORNASOLE_CHECK(file->append(content));
  return file->publish(replace);
}

std::string values_text(const Salvage& salvage) {
  std::string text = fmt::format("{} values", salvage.index.tensors.size());
  if (salvage.lost_bytes > 0) text += fmt::format(", {} bytes of unfinished records left out", salvage.lost_bytes);
  return text;
}

}  // namespace

PartRepair::PartRepair(store::Store* store, TrialFiles files, Options options, RepairReport* report)
    : store_(*store), files_(std::move(files)), options_(std::move(options)), report_(*report) {}

template <typename Work>
Status PartRepair::act(RepairActionKind kind, const std::string& path, std::string detail, const Work& work) {
  report_.actions.add({.kind = kind, .path = options_.prefix + path, .detail = std::move(detail)});
  return options_.dry_run ? Status() : work();
}

Status PartRepair::remove(const std::string& path, std::string detail) {
  ++report_.files_removed;
  return act(RepairActionKind::kRemove, path, std::move(detail), [&]() -> Status {
    Status removed = store_.remove(path);
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
    // The directory of a step that has no file left; one that has some is not removed by this.
    if (path.starts_with("events/")) {
      const Status emptied = store_.remove(path.substr(0, path.rfind('/')));
      static_cast<void>(emptied);
    }
    return {};
  });
}

Status PartRepair::publish_by_rename(RepairActionKind kind, const std::string& temporary, const std::string& path,
                                     std::string detail) {
  return act(kind, path, std::move(detail), [&] { return store_.rename(temporary, path); });
}

void PartRepair::problem(const std::string& path, const Error& error) {
  report_.problems.add({.path = options_.prefix + path, .what = error.message});
}

Status PartRepair::run() {
  for (const Damage& unlisted : files_.unlisted) problem(unlisted.path, {.message = unlisted.what});
  // Without a full listing, a published file could be taken for one that is missing, or for nobody's.
  if (!files_.unlisted.empty()) return {};
  TORNASOLE_CHECK(read_published_indices());
  TORNASOLE_CHECK(finish_index_files());
  TORNASOLE_CHECK(salvage_event_files());
  TORNASOLE_CHECK(finish_other_files());
  TORNASOLE_CHECK(write_missing_collections());
  return close_run();
}

Status PartRepair::read_published_indices() {
  for (const StepFileEntry& file : files_.index) indexed_.insert({file.step, file.worker});
  // Only an index that names a file of another step makes a difference, so most need not be read.
  std::set<StepKey> without_own_index;
  for (const StepFileEntry& file : files_.events) {
    if (!indexed_.contains({file.step, file.worker})) without_own_index.insert({file.step, file.worker});
  }
  if (without_own_index.empty()) return {};
  for (const StepFileEntry& file : files_.index) {
    const auto text = store_.read_all(file.path, kMaxIndexBytes);
    if (!text.ok() && text.error().code == ErrorCode::kIo) return text.error();
    const auto index = text.ok() ? format::decode_index(*text) : Result<format::Index>(text.error());
    if (index.ok()) event_files_in_use_.insert(index->event_file);
  }
  return {};
}

std::optional<PartRepair::StepKey> PartRepair::whole_step(const store::Entry& temporary) {
  const auto step = format::parse_step_file(without_temporary_suffix(temporary.path), ".json");
  if (!step || indexed_.contains({step->step, step->worker_file_name})) return std::nullopt;
  const auto text = store_.read_all(temporary.path, kMaxIndexBytes);
  const auto index = text.ok() ? format::decode_index(*text) : Result<format::Index>(text.error());
  if (!index.ok()) return std::nullopt;
  const StepKey key{step->step, step->worker_file_name};
  if (index->event_file.empty()) return index->tensors.empty() ? std::optional(key) : std::nullopt;
  // Values come first, so an index that was written whole finds them under their final name.
  auto events = EventFile::open(store_, index->event_file);
  if (!events.ok()) return std::nullopt;
  const bool are_there =
      std::ranges::all_of(index->tensors, [&](const auto& entry) { return events->value(entry).ok(); });
  if (!are_there) return std::nullopt;
  event_files_in_use_.insert(index->event_file);
  return key;
}

Status PartRepair::finish_index_files() {
  for (const store::Entry& entry : files_.temporary) {
    if (!entry.path.starts_with("index/")) continue;
    if (const auto step = whole_step(entry)) {
      indexed_.insert(*step);
      ++report_.steps_published;
      TORNASOLE_CHECK(publish_by_rename(RepairActionKind::kPublishIndex, entry.path,
                                        std::string(without_temporary_suffix(entry.path)), "the step was complete"));
    } else {
      TORNASOLE_CHECK(remove(entry.path, "temporary index file that is not whole, or not needed"));
    }
  }
  return {};
}

// The index goes last: until it is there, the next repair finds what this one found, or the event file alone.
Status PartRepair::publish_step_of(const std::string& event_path, const StepFileEntry& source, bool is_published) {
  const StepKey key{source.step, source.worker};
  auto events = EventFile::open(store_, source.path);
  if (!events.ok()) {
    problem(source.path, events.error());
    return {};
  }
  TORNASOLE_TRY(Salvage salvage, salvage_records(*events, source.step));
  report_.bytes_lost += salvage.lost_bytes;
  if (salvage.index.tensors.empty()) return remove(source.path, "event file without a whole value");
  salvage.index.event_file = event_path;
  const std::string index_path = format::index_path(source.step, source.worker);
  indexed_.insert(key);
  salvaged_.insert(key);
  ++report_.steps_published;
  report_.values_published += static_cast<std::int64_t>(salvage.index.tensors.size());
  return act(RepairActionKind::kPublishStep, index_path, values_text(salvage), [&]() -> Status {
    if (!is_published) TORNASOLE_CHECK(store_.rename(source.path, event_path));
    return write_file(store_, index_path, format::encode_index(salvage.index), /*replace=*/false);
  });
}

Status PartRepair::salvage_event_files() {
  // Published ones first: they held the step when it was complete.
  for (const StepFileEntry& file : files_.events) {
    const bool is_used = event_files_in_use_.contains(file.path) || indexed_.contains({file.step, file.worker});
    if (!is_used) TORNASOLE_CHECK(publish_step_of(file.path, file, /*is_published=*/true));
  }
  for (const store::Entry& entry : files_.temporary) {
    if (!entry.path.starts_with("events/")) continue;
    const std::string published(without_temporary_suffix(entry.path));
    const auto step = format::parse_step_file(published, ".tfevents");
    if (!step || indexed_.contains({step->step, step->worker_file_name}) || store_.status(published).ok()) {
      TORNASOLE_CHECK(remove(entry.path, "temporary file of a step that is published, or of none"));
      continue;
    }
    const StepFileEntry source{entry.path, entry.status, step->step, step->worker_file_name};
    TORNASOLE_CHECK(publish_step_of(published, source, /*is_published=*/false));
  }
  return {};
}

bool PartRepair::is_whole_tensorboard_file(const std::string& path) {
  auto file = EventFile::open(store_, path);
  return file.ok() && file->frame_at(0).ok();
}

Status PartRepair::finish_other_files() {
  for (const store::Entry& entry : files_.temporary) {
    const bool is_done = entry.path.starts_with("index/") || entry.path.starts_with("events/");
    if (is_done) continue;
    const std::string published(without_temporary_suffix(entry.path));
    const bool is_free = !store_.status(published).ok();
    if (is_free && !collections_worker(published).empty()) {
      const auto text = store_.read_all(entry.path, kMaxCollectionsBytes);
      if (text.ok() && format::decode_collections(*text).ok()) {
        files_.collections.push_back({published, entry.status});
        TORNASOLE_CHECK(publish_by_rename(RepairActionKind::kPublishFile, entry.path, published,
                                          "collections file that was complete"));
        continue;
      }
    }
    if (is_free && published.starts_with("tensorboard/") && published.ends_with(".tfevents") &&
        is_whole_tensorboard_file(entry.path)) {
      TORNASOLE_CHECK(publish_by_rename(RepairActionKind::kPublishFile, entry.path, published,
                                        "TensorBoard file, as far as it was written"));
      continue;
    }
    TORNASOLE_CHECK(remove(entry.path, "temporary file"));
  }
  if (files_.has_claim) TORNASOLE_CHECK(remove(std::string(format::kClaimPath), "claim of a process that is gone"));
  return {};
}

Status PartRepair::write_collections(const std::string& worker, const format::CollectionsFile& content) {
  const std::string path = format::collections_path(worker);
  return act(RepairActionKind::kWriteCollections, path, fmt::format("{} collections", content.collections.size()),
             [&] { return write_file(store_, path, format::encode_collections(content), /*replace=*/false); });
}

// Without as many collections files as they say there are workers, no reader would open the trial once it is closed.
Status PartRepair::write_missing_collections() {
  std::set<std::string> present;
  format::CollectionsFile content{.num_workers = 0};
  for (const store::Entry& entry : files_.collections) {
    const std::string worker(collections_worker(entry.path));
    present.insert(worker);
    // A dry run has not renamed it yet.
    auto text = store_.read_all(entry.path, kMaxCollectionsBytes);
    if (!text.ok()) text = store_.read_all(entry.path + ".tmp", kMaxCollectionsBytes);
    auto file = text.ok() ? format::decode_collections(*text) : Result<format::CollectionsFile>(text.error());
    if (!file.ok()) continue;
    content.num_workers = std::max(content.num_workers, file->num_workers);
    if (content.collections.empty()) content.collections = std::move(file->collections);
  }
  if (const auto text = store_.read_all(format::kRunPath, capture::kMaxRunBytes); text.ok() && present.empty()) {
    if (const auto run = format::decode_run(*text); run.ok()) content.num_workers = run->world_size;
  }
  std::set<std::string> wanted;
  for (const auto& [step, worker] : indexed_) {
    if (format::is_safe_worker(worker)) wanted.insert(worker);
  }
  if (wanted.empty() && present.empty()) return {};
  wanted.insert(present.begin(), present.end());
  content.num_workers =
      std::clamp(std::max(content.num_workers, static_cast<std::int64_t>(wanted.size())), std::int64_t{1}, kMaxWorkers);
  if (content.num_workers - static_cast<std::int64_t>(wanted.size()) > kMaxAddedWorkers) {
    problem("collections", invalid_error("{} workers are claimed and {} are there; at most {} are added",
                                         content.num_workers, wanted.size(), kMaxAddedWorkers));
    return {};
  }
  for (std::int64_t n = 0; static_cast<std::int64_t>(wanted.size()) < content.num_workers; ++n) {
    wanted.insert(fmt::format("worker_{}", n));
  }
  for (const std::string& worker : wanted) {
    if (!present.contains(worker)) TORNASOLE_CHECK(write_collections(worker, content));
  }
  return {};
}

Status PartRepair::mark_failed(const capture::HealthFile& file) {
  format::Health health = *file.health;
  health.state = format::RunState::kFailed;
  health.reason =
      fmt::format("{} stopped without a word; the run was closed by a repair", capture::describe(health.process));
  // The file is written at most once a second, so the last steps are not in its numbers.
  std::string_view worker = last_component(file.path);
  worker.remove_suffix(std::string_view("_health.json").size());
  const std::int64_t known = health.last_committed;
  for (const auto& key : indexed_) {
    if (key.second != worker || key.first <= known || salvaged_.contains(key)) continue;
    ++health.committed;
    health.last_committed = std::max(health.last_committed, key.first);
  }
  std::int64_t dropped = 0;
  for (const auto& [cause, steps] : health.dropped) dropped += steps;
  const std::int64_t rest = health.due - health.committed - dropped;
  if (rest > 0) health.dropped["process_died"] += rest;
  health.due = std::max(health.due, health.committed + dropped);
  return act(RepairActionKind::kMarkFailed, file.path, health.reason,
             [&] { return write_file(store_, file.path, format::encode_health(health), /*replace=*/true); });
}

Status PartRepair::close_run() {
  TORNASOLE_TRY(const auto health_files, capture::read_health_files(store_));
  bool is_dead = health_files.empty();  // nobody said that it ended
  for (const capture::HealthFile& file : health_files) {
    if (!file.health) {
      problem(file.path, {.message = file.problem});
      is_dead = true;
    } else if (file.health->state == format::RunState::kRunning) {
      is_dead = true;
      TORNASOLE_CHECK(mark_failed(file));
    }
  }
  // A run whose writers all ended and that has no marker is one of a managed job, which has none.
  if (files_.has_end_marker || !is_dead) return {};
  return act(RepairActionKind::kWriteEndMarker, std::string(format::kEndMarkerPath), "the run is over",
             [&]() -> Status {
               Status marked = store_.create_exclusive(format::kEndMarkerPath, "");
               return !marked.ok() && marked.error().code == ErrorCode::kInvalid ? Status() : marked;
             });
}

}  // namespace tornasole::tools
