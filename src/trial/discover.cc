#include "trial/discover.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/errors.h"
#include "format/paths.h"

namespace tornasole::trial {
namespace {

constexpr std::string_view kIndexDirectory = "index";
// The second is a name of old times; what is in it is JSON all the same.
constexpr std::array<std::string_view, 2> kIndexSuffixes = {".json", ".csv"};

std::string_view index_suffix(std::string_view path) {
  for (const std::string_view suffix : kIndexSuffixes) {
    if (path.ends_with(suffix)) return suffix;
  }
  return {};
}

// Whether every path below the directory sorts before the token.
bool is_before(std::string_view directory, std::string_view token) {
  const std::string below = std::string(directory) + '/';
  return below < token && !token.starts_with(below);
}

}  // namespace

Result<std::vector<store::Entry>> Discoverer::list(store::Store& store) const {
  if (token_.empty()) return store.list(kIndexDirectory, /*recursive=*/true);
  std::vector<store::Entry> files;
  if (!store.capabilities().has_directories) {
    // The token itself was read already.
    TORNASOLE_TRY(files, store.list_after(kIndexDirectory, token_));
    return add_put_back(store, std::move(files));
  }
  TORNASOLE_TRY(std::vector<store::Entry> entries, store.list(kIndexDirectory, /*recursive=*/false));
  for (store::Entry& entry : entries) {
    if (!entry.status.is_directory) {
      files.push_back(std::move(entry));
    } else if (!is_before(entry.path, token_)) {
      TORNASOLE_TRY(std::vector<store::Entry> below, store.list(entry.path, /*recursive=*/true));
      std::ranges::move(below, std::back_inserter(files));
    }
  }
  return add_put_back(store, std::move(files));
}

Result<std::vector<store::Entry>> Discoverer::add_put_back(store::Store& store, std::vector<store::Entry> files) const {
  for (const std::string& path : again_) {
    if (path >= token_) continue;
    if (auto status = store.status(path); status.ok()) files.push_back({path, *status});
  }
  std::ranges::sort(files, {}, &store::Entry::path);
  return files;
}

bool Discoverer::is_new(const store::Entry& entry) const {
  if (index_suffix(entry.path).empty()) return false;
  return again_.contains(entry.path) || (entry.path >= token_ && !read_.contains(entry.path));
}

Result<std::vector<store::Entry>> Discoverer::list_whole(store::Store& store) const {
  TORNASOLE_TRY(std::vector<store::Entry> entries, list(store));
  if (std::ranges::none_of(entries, [this](const store::Entry& entry) { return is_new(entry); })) return entries;
  const std::string horizon = entries.back().path;
  TORNASOLE_TRY(entries, list(store));
  std::erase_if(entries, [&](const store::Entry& entry) { return entry.path > horizon; });
  return entries;
}

Result<Discovery> Discoverer::look(store::Store& store, bool is_growing) {
  TORNASOLE_TRY(std::vector<store::Entry> entries, is_growing ? list_whole(store) : list(store));
  Discovery found;
  for (store::Entry& entry : entries) {
    if (!is_new(entry)) continue;
    again_.erase(entry.path);
    auto name = format::parse_step_file(entry.path, index_suffix(entry.path));
    if (name && !range_.contains(name->step)) continue;
    read_.insert(read_.end(), entry.path);
    if (!name) {
      found.foreign.push_back({std::move(entry.path)});
    } else {
      found.files.push_back({std::move(entry.path), name->step, std::move(name->worker_file_name), entry.status});
    }
  }
  return found;
}

void Discoverer::put_back(const IndexFile& file) {
  read_.erase(file.path);
  again_.insert(file.path);
}

void Discoverer::move_token(std::string token) {
  token_ = std::move(token);
  read_.erase(read_.begin(), read_.lower_bound(token_));
}

}  // namespace tornasole::trial
