#include "tools/trial_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "format/index_pack.h"
#include "format/paths.h"

namespace tornasole::tools {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::string_view kCollectionsSuffix = "_collections.json";
// Of files that are made in the root: under their own name, or with a unique part before the suffix.
constexpr std::array<std::string_view, 5> kRootPrefixes = {"claim.smd", "claim-", ".tornasole-clock",
                                                           "training_job_end.ts", "stop_request.json"};

std::optional<std::int64_t> parse_attempt(std::string_view name) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 1) return std::nullopt;
  // 007 would be opened as 7, which is another directory.
  return fmt::format("{}", number) == name ? std::optional(number) : std::nullopt;
}

std::optional<StepFileEntry> as_step_file(const store::Entry& entry, std::string_view suffix) {
  auto file = format::parse_step_file(entry.path, suffix);
  if (!file) return std::nullopt;
  return StepFileEntry{entry.path, entry.status, file->step, std::move(file->worker_file_name)};
}

// One directory of the trial, what to do with each file of it, and where to note that it cannot be listed.
template <typename Sort>
Status sort_directory(store::Store& store, std::string_view directory, TrialFiles* files, const Sort& sort) {
  auto entries = store.list(directory, /*recursive=*/true);
  if (!entries.ok()) {
    if (entries.error().code == ErrorCode::kIo) return std::move(entries).error();
    files->unlisted.push_back({.path = std::string(directory), .what = entries.error().message});
    return {};
  }
  for (store::Entry& entry : *entries) {
    if (entry.path.ends_with(kTemporarySuffix)) {
      files->temporary.push_back(std::move(entry));
    } else if (!sort(entry)) {
      files->foreign.push_back(std::move(entry));
    }
  }
  return {};
}

Status sort_root(store::Store& store, TrialFiles* files) {
  TORNASOLE_TRY(auto entries, store.list("", /*recursive=*/false));
  for (store::Entry& entry : entries) {
    const std::string_view name = entry.path;
    files->has_end_marker |= name == format::kEndMarkerPath;
    files->has_claim |= name == format::kClaimPath;
    files->has_stop_request |= name == format::kStopRequestPath;
    const bool is_ours = std::ranges::any_of(kRootPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
    if (is_ours && name.ends_with(kTemporarySuffix) && !entry.status.is_directory) {
      files->root_temporary.push_back(std::move(entry));
    }
  }
  return {};
}

Status sort_attempts(store::Store& store, TrialFiles* files) {
  const auto entries = store.list(format::kAttemptsDirectory, /*recursive=*/false);
  if (!entries.ok()) {
    if (entries.error().code == ErrorCode::kIo) return entries.error();
    files->unlisted.push_back({.path = std::string(format::kAttemptsDirectory), .what = entries.error().message});
    return {};
  }
  for (const store::Entry& entry : *entries) {
    const std::string_view name = last_component(entry.path);
    const std::string_view moving = without_temporary_suffix(name);
    if (const auto number = parse_attempt(name); number && entry.status.is_directory) {
      files->attempts.push_back(*number);
    } else if (const auto marked = parse_attempt(moving); marked && !entry.status.is_directory) {
      files->unfinished_moves.push_back(*marked);
    } else {
      files->foreign.push_back(entry);
    }
  }
  std::ranges::sort(files->attempts);
  std::ranges::sort(files->unfinished_moves);
  return {};
}

}  // namespace

bool TrialFiles::is_empty() const noexcept {
  return collections.empty() && index.empty() && misnamed_index.empty() && events.empty() && tensorboard.empty() &&
         state.empty() && packs.empty() && temporary.empty() && !has_end_marker && !has_claim && !has_stop_request &&
         attempts.empty() && unfinished_moves.empty() && unlisted.empty() && root_temporary.empty();
}

std::string_view without_temporary_suffix(std::string_view path) noexcept {
  if (!path.ends_with(kTemporarySuffix)) return {};
  path.remove_suffix(kTemporarySuffix.size());
  return path;
}

std::string_view last_component(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

std::string_view collections_worker(std::string_view path) noexcept {
  std::string_view name = last_component(path);
  if (!name.ends_with(kCollectionsSuffix)) return {};
  name.remove_suffix(kCollectionsSuffix.size());
  return name;
}

std::string attempt_directory(std::int64_t number) { return fmt::format("{}/{}", format::kAttemptsDirectory, number); }

Result<TrialFiles> list_trial_files(store::Store& store) {
  TrialFiles files;
  TORNASOLE_CHECK(sort_root(store, &files));
  TORNASOLE_CHECK(sort_directory(store, "collections", &files, [&](store::Entry& entry) {
    if (collections_worker(entry.path).empty()) return false;
    files.collections.push_back(std::move(entry));
    return true;
  }));
  TORNASOLE_CHECK(sort_directory(store, "index", &files, [&](store::Entry& entry) {
    const bool is_index = entry.path.ends_with(".json") || entry.path.ends_with(".csv");
    if (!is_index) return false;
    auto file = as_step_file(entry, entry.path.ends_with(".json") ? ".json" : ".csv");
    if (file) {
      files.index.push_back(std::move(*file));
    } else {
      files.misnamed_index.push_back(std::move(entry));
    }
    return true;
  }));
  TORNASOLE_CHECK(sort_directory(store, "events", &files, [&](store::Entry& entry) {
    auto file = as_step_file(entry, ".tfevents");
    if (file) files.events.push_back(std::move(*file));
    return file.has_value();
  }));
  TORNASOLE_CHECK(sort_directory(store, "tensorboard", &files, [&](store::Entry& entry) {
    if (!entry.path.ends_with(".tfevents")) return false;
    files.tensorboard.push_back(std::move(entry));
    return true;
  }));
  TORNASOLE_CHECK(sort_directory(store, "tornasole", &files, [&](store::Entry& entry) {
    const bool is_state =
        entry.path == format::kRunPath || entry.path.ends_with("_health.json") || entry.path.ends_with("_model.json");
    const bool is_pack = format::parse_index_pack_path(entry.path).has_value();
    if (is_state || is_pack) (is_pack ? files.packs : files.state).push_back(std::move(entry));
    return is_state || is_pack;
  }));
  TORNASOLE_CHECK(sort_attempts(store, &files));
  return files;
}

}  // namespace tornasole::tools
