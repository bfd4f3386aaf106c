// 1. List; sort by name.
// 2. Collections files: decode each; are there as many as they say?
// 3. Index files, in order: decode, then read every value it points at.
// 4. Event files that no index names; small files of the run; index packs, compared with what they repeat; TensorBoard
//    files.
// 5. The same for each attempt.

#include "tools/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "format/collections_file.h"
#include "format/index.h"
#include "format/index_pack.h"
#include "format/paths.h"
#include "format/run_files.h"
#include "tools/absolute_path.h"
#include "tools/event_file.h"
#include "tools/part_store.h"
#include "tools/run_state.h"
#include "tools/trial_files.h"
#include "trial/open_location.h"

namespace tornasole::tools {
namespace {

constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMaxCollectionsBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxSmallFileBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxModelBytes = std::uint64_t{64} << 20;

// How far all of it is, over the trial and its attempts.
class Progress {
 public:
  explicit Progress(const VerifyOptions& options) : report_(options.progress) {}
  void expect(std::uint64_t bytes) noexcept { total_bytes_ += bytes; }
  Status advance(std::uint64_t bytes) {
    done_bytes_ += bytes;
    total_bytes_ = std::max(total_bytes_, done_bytes_);  // a live run grows meanwhile
    if (!report_ || report_(done_bytes_, total_bytes_)) return {};
    return make_error(ErrorCode::kEnded, ErrorKind::kBase, "verify was stopped by its caller after {} bytes",
                      done_bytes_);
  }

 private:
  const std::function<bool(std::uint64_t, std::uint64_t)>& report_;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

class Verification {
 public:
  Verification(store::Store& store, TrialFiles files, Progress& progress, VerifyReport* report)
      : store_(store), files_(std::move(files)), progress_(progress), report_(*report) {}

  Status run() {
    TORNASOLE_TRY(report_.run, judge_run(store_));
    for (const Damage& unlisted : files_.unlisted) report_.damaged.add(unlisted);
    TORNASOLE_CHECK(check_collections());
    TORNASOLE_CHECK(check_steps());
    note_unused_event_files();
    TORNASOLE_CHECK(check_state_files());
    for (const store::Entry& entry : files_.packs) TORNASOLE_CHECK(check_pack(entry.path));
    for (const store::Entry& entry : files_.tensorboard) TORNASOLE_CHECK(check_tensorboard(entry));
    note_leftovers();
    return {};
  }

 private:
  bool is_running() const noexcept { return report_.run.state == RunState::kRunning; }
  void damaged(std::string_view path, std::string what, std::optional<std::uint64_t> offset = {}) {
    report_.damaged.add({.path = std::string(path), .offset = offset, .what = std::move(what)});
  }

  // The file, or nothing after its damage was noted. Gone since the listing is no damage in a run that goes on.
  Result<std::optional<Bytes>> read_file(std::string_view path, std::uint64_t limit) {
    auto text = store_.read_all(path, limit);
    if (text.ok()) {
      report_.bytes += text->size();
      TORNASOLE_CHECK(progress_.advance(text->size()));
      return std::optional<Bytes>(std::move(*text));
    }
    if (text.error().code == ErrorCode::kNotFound && is_running()) return std::optional<Bytes>();
    // A file without permission, or on a bad sector, is as lost as a damaged one; the rest can still be looked at.
    damaged(path, text.error().message);
    return std::optional<Bytes>();
  }

  Status check_collections() {
    std::int64_t wanted = 0;
    for (const store::Entry& entry : files_.collections) {
      TORNASOLE_TRY(const auto text, read_file(entry.path, kMaxCollectionsBytes));
      if (!text) continue;
      const auto file = format::decode_collections(*text);
      if (!file.ok()) {
        damaged(entry.path, file.error().message);
        continue;
      }
      if (!file->is_verified) ++report_.unverified_files;
      wanted = std::max(wanted, file->num_workers);
    }
    num_workers_ = wanted;
    const auto found = static_cast<std::int64_t>(files_.collections.size());
    const bool has_steps = !files_.index.empty();
    if (found < std::max<std::int64_t>(wanted, has_steps ? 1 : 0) && !is_running()) {
      report_.missing.add({.path = "collections/000000000",
                           .what = wanted > 0 ? fmt::format("{} of {} collections files are there", found, wanted)
                                              : std::string("no collections file is there, but steps are")});
    }
    return {};
  }

  Status check_steps() {
    for (const store::Entry& entry : files_.misnamed_index) {
      damaged(entry.path, "its name does not begin with a step and a worker, as that of an index file must");
    }
    std::map<std::int64_t, std::set<std::string>> workers;
    for (const StepFileEntry& file : files_.index) {
      TORNASOLE_TRY(const auto text, read_file(file.path, kMaxIndexBytes));
      if (!text) {
        unreadable_steps_.insert({file.step, file.worker});
        continue;
      }
      if (!files_.packs.empty()) index_sums_[file.path] = {file.status.version, crc32c(*text)};
      const auto index = format::decode_index(*text);
      if (!index.ok()) {
        damaged(file.path, index.error().message);
        unreadable_steps_.insert({file.step, file.worker});
        continue;
      }
      workers[file.step].insert(file.worker);
      TORNASOLE_CHECK(check_step(file, *index));
    }
    report_.steps = static_cast<std::int64_t>(workers.size());
    for (const auto& [step, names] : workers) {
      if (static_cast<std::int64_t>(names.size()) < num_workers_) report_.incomplete.add(step);
    }
    return {};
  }

  Status check_step(const StepFileEntry& file, const format::Index& index) {
    ++report_.step_parts;
    if (!index.is_verified) ++report_.unverified_files;
    if (index.is_partial) report_.partial.add({file.step, format::decode_worker(file.worker)});
    const std::set<std::string_view> named = [&] {
      std::set<std::string_view> names;
      for (const format::IndexEntry& entry : index.tensors) names.insert(entry.name);
      return names;
    }();
    report_.shapes +=
        std::ranges::count_if(index.shapes, [&](const auto& shape) { return !named.contains(shape.name); });
    if (index.event_file.empty()) {
      if (!index.tensors.empty()) damaged(file.path, "it lists values and names no event file");
      return {};
    }
    used_event_files_.insert(index.event_file);
    return check_values(file, index);
  }

  Status check_values(const StepFileEntry& file, const format::Index& index) {
    auto events = EventFile::open(store_, index.event_file);
    if (!events.ok()) {
      const Damage finding{
          .path = index.event_file,
          .what = fmt::format("{} values of {} are lost: {}", index.tensors.size(), file.path, events.error().message)};
      (events.error().code == ErrorCode::kNotFound ? report_.missing : report_.damaged).add(finding);
      return {};
    }
    std::uint64_t counted = 0;
    for (const format::IndexEntry& entry : index.tensors) {
      TORNASOLE_CHECK(check_value(*events, entry));
      const std::uint64_t news = events->read_bytes() - counted;
      counted += news;
      report_.bytes += news;
      if (news > 0) TORNASOLE_CHECK(progress_.advance(news));
    }
    return {};
  }

  Status check_value(EventFile& events, const format::IndexEntry& entry) {
    // Values of a sound trial do not overlap, so what is asked for can hardly exceed the file. A hostile index would
    // have the same gigabyte read a million times.
    std::uint64_t& asked = asked_bytes_[events.path()];
    if (asked > 2 * events.size_bytes()) {
      damaged(events.path(), fmt::format("'{}': it overlaps other values", printable(entry.name.substr(0, 200))),
              entry.offset);
      return {};
    }
    asked += std::min(entry.length, events.size_bytes());
    const auto value = events.value(entry);
    if (!value.ok()) {
      damaged(events.path(), value.error().message, entry.offset);
      return {};
    }
    ++report_.values;
    if (!value->is_verified) ++report_.unverified_values;
    return {};
  }

  void note_unused_event_files() {
    for (const StepFileEntry& file : files_.events) {
      if (used_event_files_.contains(file.path)) continue;
      // With a damaged index the values are lost, but nobody knows that they are nobody's.
      if (unreadable_steps_.contains({file.step, file.worker})) continue;
      if (!is_running()) report_.debris.add(file.path);
    }
  }

  Status check_state_files() {
    for (const store::Entry& entry : files_.state) {
      const bool is_model = entry.path.ends_with("_model.json");
      TORNASOLE_TRY(const auto text, read_file(entry.path, is_model ? kMaxModelBytes : kMaxSmallFileBytes));
      if (!text) continue;
      if (is_model) {
        check_decoded(entry.path, parse_json(*text));
      } else if (entry.path == format::kRunPath) {
        check_decoded(entry.path, format::decode_run(*text));
      } else {
        check_decoded(entry.path, format::decode_health(*text));
      }
    }
    if (files_.has_stop_request) {
      TORNASOLE_TRY(const auto text, read_file(format::kStopRequestPath, kMaxSmallFileBytes));
      if (text) check_decoded(format::kStopRequestPath, format::decode_stop_request(*text));
    }
    return {};
  }
  template <typename T>
  void check_decoded(std::string_view path, const Result<T>& decoded) {
    if (!decoded.ok()) damaged(path, decoded.error().message);
  }

  // What a pack repeats of a file that has changed since, or is gone, counts for nobody.
  Status check_pack(const std::string& path) {
    TORNASOLE_TRY(const auto pack, read_file(path, format::kMaxIndexPackBytes));
    if (!pack) return {};
    const auto entries = format::decode_index_pack(*pack);
    if (!entries.ok()) {
      damaged(path, entries.error().message);
      return {};
    }
    for (const format::PackedIndex& entry : *entries) {
      const auto file = index_sums_.find(entry.path);
      if (file == index_sums_.end() || file->second.version != entry.version) continue;
      if (file->second.crc == crc32c(entry.text)) continue;
      damaged(path, fmt::format("it repeats {} with other bytes", printable(entry.path.substr(0, 300))));
      return {};
    }
    return {};
  }

  // Records to the end of the file; nothing outside says how many there are.
  Status check_tensorboard(const store::Entry& entry) {
    auto file = EventFile::open(store_, entry.path);
    if (!file.ok()) {
      damaged(entry.path, file.error().message);
      return {};
    }
    std::uint64_t offset = 0;
    std::uint64_t counted = 0;
    while (true) {
      const auto length = file->frame_at(offset);
      const std::uint64_t news = file->read_bytes() - counted;
      counted += news;
      report_.bytes += news;
      if (news > 0) TORNASOLE_CHECK(progress_.advance(news));
      if (!length.ok()) {
        if (length.error().code != ErrorCode::kEnded) damaged(entry.path, length.error().message, offset);
        return {};
      }
      offset += *length;
    }
  }

  void note_leftovers() {
    for (const auto* entries : {&files_.temporary, &files_.root_temporary}) {
      for (const store::Entry& entry : *entries) report_.temporary_files.add(entry.path);
    }
    for (const store::Entry& entry : files_.foreign) report_.foreign_files.add(entry.path);
    for (const std::int64_t number : files_.unfinished_moves) report_.debris.add(attempt_directory(number) + ".tmp");
    const bool is_over = report_.run.state == RunState::kEnded || report_.run.state == RunState::kFailed ||
                         report_.run.state == RunState::kPresumedDead;
    if (files_.has_claim && is_over) report_.debris.add(std::string(format::kClaimPath));
  }

  // What an index file was when it was read.
  struct IndexSum {
    std::string version;  // empty where the store has none
    std::uint32_t crc = 0;
  };

  store::Store& store_;
  const TrialFiles files_;
  Progress& progress_;
  VerifyReport& report_;
  std::int64_t num_workers_ = 0;
  std::set<std::pair<std::int64_t, std::string>> unreadable_steps_;
  std::set<std::string, std::less<>> used_event_files_;
  std::map<std::string, std::uint64_t> asked_bytes_;         // per event file
  std::map<std::string, IndexSum, std::less<>> index_sums_;  // by path; only if there are packs
};

std::uint64_t size_of(const TrialFiles& files) {
  std::uint64_t bytes = 0;
  for (const auto* entries : {&files.collections, &files.tensorboard, &files.state, &files.packs}) {
    for (const store::Entry& entry : *entries) bytes += entry.status.size_bytes;
  }
  for (const auto* entries : {&files.index, &files.events}) {
    for (const StepFileEntry& entry : *entries) bytes += entry.status.size_bytes;
  }
  return bytes;
}

}  // namespace

bool VerifyReport::is_sound_with_attempts() const noexcept {
  return is_sound() && std::ranges::all_of(attempts, [](const VerifyReport& attempt) { return attempt.is_sound(); });
}

Result<VerifyReport> verify(store::Store& store, const VerifyOptions& options) {
  TORNASOLE_TRY(const store::FileStatus status, store.status(""));
  static_cast<void>(status);
  TORNASOLE_TRY(TrialFiles files, list_trial_files(store));
  if (files.is_empty()) {
    return invalid_error("{} is no trial: it has no collections, index or events and nothing else of a run",
                         store.description());
  }
  Progress progress(options);
  const std::vector<std::int64_t> attempts = files.attempts;
  VerifyReport report;
  report.path = options.path;
  progress.expect(size_of(files));
  TORNASOLE_CHECK(Verification(store, std::move(files), progress, &report).run());
  report.attempt_count = static_cast<std::int64_t>(attempts.size());
  for (const std::int64_t number : attempts) {
    if (report.attempts.size() == kMaxListed) break;
    PartStore part(&store, attempt_directory(number));
    TORNASOLE_TRY(TrialFiles moved, list_trial_files(part));
    VerifyReport& attempt = report.attempts.emplace_back();
    attempt.path = attempt_directory(number);
    progress.expect(size_of(moved));
    TORNASOLE_CHECK(Verification(part, std::move(moved), progress, &attempt).run());
  }
  return report;
}

Result<VerifyReport> verify(const VerifyOptions& options) {
  TORNASOLE_TRY(const std::string root, absolute_path(options.path));
  TORNASOLE_TRY(const auto store, trial::open_location(root, /*read_only=*/true));
  TORNASOLE_TRY(VerifyReport report, verify(*store, options));
  report.requests = store->traffic().by_name();
  return report;
}

}  // namespace tornasole::tools
