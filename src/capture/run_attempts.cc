#include "capture/run_attempts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "capture/run_lock.h"
#include "format/index.h"
#include "format/paths.h"

namespace tornasole::capture {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20;
constexpr std::array<std::string_view, 5> kMoveFirst = {"index", "events", "collections", "tensorboard", "tornasole"};

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // A number past this one is nobody's attempt, and adding to it must stay possible.
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > 1'000'000'000) return {};
  return number;
}

struct Attempts {
  std::int64_t last = 0;
  std::vector<std::int64_t> unfinished = {};
};

Result<Attempts> list_attempts(store::Store& store) {
  TORNASOLE_TRY(const auto entries, store.list(format::kAttemptsDirectory, false));
  Attempts attempts;
  for (const store::Entry& entry : entries) {
    std::string_view name = entry.path;
    name = name.substr(name.rfind('/') + 1);
    const bool is_marker = name.ends_with(kTemporarySuffix) && !entry.status.is_directory;
    if (is_marker) name.remove_suffix(kTemporarySuffix.size());
    const auto number = parse_number(name);
    if (!number) continue;
    attempts.last = std::max(attempts.last, *number);
    if (is_marker) attempts.unfinished.push_back(*number);
  }
  std::sort(attempts.unfinished.begin(), attempts.unfinished.end());
  return attempts;
}

std::string attempt_path(std::int64_t number) { return fmt::format("{}/{}", format::kAttemptsDirectory, number); }
std::string marker_path(std::int64_t number) { return attempt_path(number) + std::string(kTemporarySuffix); }

// Only what belongs to a trial is moved: a user's own files beside it may be in use by the training that is starting.
bool stays_in_root(std::string_view name) {
  constexpr std::array<std::string_view, 8> kOfATrial = {"collections",
                                                         "events",
                                                         "index",
                                                         "tornasole",
                                                         "tensorboard",
                                                         format::kClaimPath,
                                                         format::kStopRequestPath,
                                                         format::kEndMarkerPath};
  return std::find(kOfATrial.begin(), kOfATrial.end(), name) == kOfATrial.end();
}

std::vector<std::string> in_order_of_move(const std::vector<store::Entry>& entries) {
  std::vector<std::string> names;
  for (const store::Entry& entry : entries) {
    if (!stays_in_root(entry.path)) names.push_back(entry.path);
  }
  const auto rank = [](const std::string& name) { return std::find(kMoveFirst.begin(), kMoveFirst.end(), name); };
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(rank(a), std::string_view(a)) < std::pair(rank(b), std::string_view(b));
  });
  return names;
}

// Step 2. Returns whether something stood in the way.
Result<bool> move_entries(store::Store& store, std::int64_t number) {
  TORNASOLE_TRY(const auto entries, store.list("", false));
  bool is_blocked = false;
  for (const std::string& name : in_order_of_move(entries)) {
    Status moved = store.rename(name, fmt::format("{}/{}", attempt_path(number), name));
    if (moved.ok() || moved.error().code == ErrorCode::kNotFound) continue;
    if (moved.error().code != ErrorCode::kInvalid) return std::move(moved).error();
    is_blocked = true;
  }
  return is_blocked;
}

Status finish_move(store::Store& store, std::int64_t number, bool* is_blocked) {
  TORNASOLE_TRY(*is_blocked, move_entries(store, number));
  return store.remove(marker_path(number));
}

bool is_whole_step(store::Store& store, const std::string& temporary_index) {
  const auto text = store.read_all(temporary_index, kMaxIndexBytes);
  if (!text.ok()) return false;
  const auto index = format::decode_index(*text);
  if (!index.ok() || !index->is_verified) return false;
  return index->event_file.empty() || store.status(index->event_file).ok();
}

}  // namespace

Status move_aside(store::Store& store) {
  constexpr int kTries = 3;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    TORNASOLE_TRY(const Attempts attempts, list_attempts(store));
    const std::int64_t number = attempts.last + 1;
    TORNASOLE_CHECK(store.create_exclusive(marker_path(number), ""));
    bool is_blocked = false;
    TORNASOLE_CHECK(finish_move(store, number, &is_blocked));
    if (!is_blocked) return {};
  }
  return io_error("{}: the unfinished run cannot be moved to {}/: somebody keeps writing there", store.description(),
                  format::kAttemptsDirectory);
}

Status finish_interrupted_moves(store::Store& store) {
  TORNASOLE_TRY(const Attempts attempts, list_attempts(store));
  for (const std::int64_t number : attempts.unfinished) {
    bool is_blocked = false;  // what is left then is a dead run in the root, which the caller finds
    TORNASOLE_CHECK(finish_move(store, number, &is_blocked));
  }
  return {};
}

Status clear_debris(store::Store& store) {
  for (const std::string_view directory : {"events", "index", "collections", "tornasole"}) {
    TORNASOLE_TRY(const auto entries, store.list(directory, true));
    for (const store::Entry& entry : entries) {
      if (entry.status.is_directory || !entry.path.ends_with(kTemporarySuffix)) continue;
      const std::string published = entry.path.substr(0, entry.path.size() - kTemporarySuffix.size());
      if (directory == "index" && format::parse_step_file(published, ".json") && is_whole_step(store, entry.path)) {
        if (store.rename(entry.path, published).ok()) continue;
      }
      if (Status removed = store.remove(entry.path); !removed.ok() && removed.error().code != ErrorCode::kNotFound) {
        return removed;
      }
    }
  }
  return {};
}

}  // namespace tornasole::capture
