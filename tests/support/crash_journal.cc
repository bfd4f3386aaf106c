#include "support/crash_journal.h"

#include <algorithm>
#include <utility>

#include "store/store_path.h"

namespace tornasole::store {
namespace {

constexpr std::size_t kSectorBytes = 512;

// Below `bound`, which is not 0. The slight bias of the remainder does not matter here.
std::uint64_t pick(std::mt19937_64& random, std::uint64_t bound) { return random() % bound; }

bool is_at_or_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

CrashJournal::CrashJournal(const Disk& disk) {
  for (const auto& [path, bytes] : disk) {
    start_.emplace(path, files_.size());
    files_.push_back({bytes, bytes.size()});
  }
  names_ = start_;
}

CrashJournal::FileId CrashJournal::create(std::string_view path) {
  const FileId file = files_.size();
  files_.push_back({});
  Change change;
  change.links.push_back({"", std::string(path), file});
  change.to_directory = split_path(path).directory;
  add_needs(path, &change);
  record(std::move(change), {});
  return file;
}

void CrashJournal::append(FileId file, std::span<const ByteView> pieces) {
  for (const ByteView piece : pieces) files_[file].bytes.append(piece);
}

void CrashJournal::sync(FileId file) { files_[file].safe_bytes = files_[file].bytes.size(); }

void CrashJournal::rename(std::string_view from, std::string_view to) {
  Change change;
  for (auto at = names_.lower_bound(from); at != names_.end(); ++at) {
    if (!at->first.starts_with(from)) break;
    if (!is_at_or_below(at->first, from)) continue;
    change.links.push_back({at->first, std::string(to) + at->first.substr(from.size()), at->second});
  }
  change.from_directory = split_path(from).directory;
  change.to_directory = split_path(to).directory;
  add_needs(to, &change);
  record(std::move(change), from);
}

void CrashJournal::remove(std::string_view path) {
  const auto found = names_.find(path);
  if (found == names_.end()) return;
  Change change;
  change.links.push_back({std::string(path), "", found->second});
  change.from_directory = change.to_directory = split_path(path).directory;
  record(std::move(change), path);
}

void CrashJournal::sync_directory(std::string_view directory) {
  for (Change& change : changes_) {
    const bool touches_source = !change.links.empty() && !change.links[0].from.empty();
    if (change.to_directory == directory || (touches_source && change.from_directory == directory)) {
      change.is_safe = true;
    }
  }
}

void CrashJournal::add_needs(std::string_view path, Change* change) const {
  for (; !path.empty(); path = split_path(path).directory) {
    if (const auto found = given_up_.find(path); found != given_up_.end()) change->needs.push_back(found->second);
  }
}

void CrashJournal::record(Change change, std::string_view given_up) {
  apply(change, &names_);
  if (!given_up.empty()) given_up_[std::string(given_up)] = changes_.size();
  changes_.push_back(std::move(change));
}

// The file is what moves: if the change that made its old name was lost, it still gets the new one.
void CrashJournal::apply(const Change& change, Names* names) {
  for (const Relink& link : change.links) {
    const auto found = names->find(link.from);
    if (found != names->end() && found->second == link.file) names->erase(found);
  }
  for (const Relink& link : change.links) {
    if (!link.to.empty()) (*names)[link.to] = link.file;
  }
}

std::vector<bool> CrashJournal::choose_survivors(std::mt19937_64& random) const {
  // Some crashes keep nearly all names, some nearly none: 0 to 8 of 8.
  const std::uint64_t kept_of_8 = pick(random, 9);
  std::vector<bool> survives(changes_.size());
  for (std::size_t i = changes_.size(); i-- > 0;) {
    if (changes_[i].is_safe || pick(random, 8) < kept_of_8) survives[i] = true;
    if (!survives[i]) continue;
    // Needed changes are earlier ones, so this loop still comes to what they need in turn.
    for (const std::size_t needed : changes_[i].needs) survives[needed] = true;
  }
  return survives;
}

Bytes CrashJournal::choose_content(const File& file, std::mt19937_64& random) {
  const std::size_t unsafe = file.bytes.size() - file.safe_bytes;
  if (unsafe == 0) return file.bytes;
  switch (pick(random, 4)) {
    case 0: return file.bytes.substr(0, file.safe_bytes);
    case 1: return file.bytes;
    default: break;
  }
  Bytes content = file.bytes.substr(0, file.safe_bytes + pick(random, unsafe + 1));
  const std::uint64_t lost_of_4 = pick(random, 5);
  for (std::size_t at = file.safe_bytes; at < content.size();) {
    const std::size_t end = std::min(content.size(), (at / kSectorBytes + 1) * kSectorBytes);
    if (pick(random, 4) < lost_of_4) {
      std::fill(content.begin() + static_cast<std::ptrdiff_t>(at), content.begin() + static_cast<std::ptrdiff_t>(end),
                '\0');
    }
    at = end;
  }
  return content;
}

CrashJournal::Disk CrashJournal::crash(std::mt19937_64& random) const {
  const std::vector<bool> survives = choose_survivors(random);
  Names names = start_;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (survives[i]) apply(changes_[i], &names);
  }
  Disk disk;
  for (const auto& [path, file] : names) disk.emplace(path, choose_content(files_[file], random));
  return disk;
}

CrashJournal::Disk CrashJournal::without_crash() const {
  Disk disk;
  for (const auto& [path, file] : names_) disk.emplace(path, files_[file].bytes);
  return disk;
}

}  // namespace tornasole::store
