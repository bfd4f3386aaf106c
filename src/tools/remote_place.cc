#include "tools/remote_place.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/errors.h"
#include "trial/open_location.h"

namespace tornasole::tools {
namespace {

constexpr int kMaxDepth = 3;
constexpr std::array<std::string_view, 3> kTrialFolders = {"collections", "index", "events"};

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

RemotePlace judge(const std::vector<store::Entry>& entries) {
  RemotePlace place{.is_empty = entries.empty()};
  for (const store::Entry& entry : entries) {
    if (!entry.status.is_directory) continue;
    const std::string_view name = name_of(entry.path);
    place.is_trial |= std::ranges::find(kTrialFolders, name) != kTrialFolders.end();
    place.has_begun |= name == "tornasole";
  }
  return place;
}

Status search(store::Store& store, const std::string& directory, int depth, std::size_t limit,
              std::vector<std::string>* found) {
  TORNASOLE_TRY(const auto entries, store.list(directory, /*recursive=*/false));
  if (judge(entries).is_trial) {
    found->push_back(directory);
    return {};
  }
  for (const store::Entry& entry : entries) {
    if (depth == 0 || found->size() >= limit) return {};
    if (entry.status.is_directory) TORNASOLE_CHECK(search(store, entry.path, depth - 1, limit, found));
  }
  return {};
}

}  // namespace

Result<RemotePlace> look_at_remote(const std::string& location) {
  TORNASOLE_TRY(const auto store, trial::open_location(location, /*read_only=*/true));
  TORNASOLE_TRY(const auto entries, store->list("", /*recursive=*/false));
  return judge(entries);
}

Result<std::vector<std::string>> remote_trials_below(const std::string& location, std::size_t limit) {
  TORNASOLE_TRY(const auto store, trial::open_location(location, /*read_only=*/true));
  std::vector<std::string> found;
  TORNASOLE_CHECK(search(*store, "", kMaxDepth, limit, &found));
  for (std::string& path : found) path = path.empty() ? store->description() : store->description() + "/" + path;
  return found;
}

Result<RemoteUse> remote_use(const std::string& location) {
  TORNASOLE_TRY(const auto store, trial::open_location(location, /*read_only=*/true));
  TORNASOLE_TRY(const auto entries, store->list("", /*recursive=*/true));
  RemoteUse use;
  for (const store::Entry& entry : entries) {
    ++use.objects;
    use.bytes += entry.status.size_bytes;
  }
  return use;
}

}  // namespace tornasole::tools
