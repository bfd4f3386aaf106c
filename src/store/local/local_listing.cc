#include "store/local/local_listing.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/errors.h"
#include "store/local/local_errors.h"
#include "store/store_path.h"

namespace tornasole::store {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

struct Listing {
  std::vector<Entry> entries;
  std::vector<std::string> unvisited;  // directories still to be looked into
};

std::size_t depth_of(const std::string& path) {
  return path.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

// 0 or an errno.
int read_entries(DIR* stream, const std::string& directory, const ListOptions& options, Listing* listing) {
  while (true) {
    errno = 0;
    const dirent* found = readdir(stream);
    if (found == nullptr) return errno;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    if (listing->entries.size() >= options.max_entries) return EOVERFLOW;
    struct stat status{};
    if (fstatat(dirfd(stream), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      // Removed or published under another name since readdir saw it.
      if (errno == ENOENT) continue;
      return errno;
    }
    std::string path = directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
    if (options.recursive && S_ISDIR(status.st_mode)) {
      listing->unvisited.push_back(std::move(path));
    } else {
      listing->entries.push_back({std::move(path), to_file_status(status)});
    }
  }
}

// 0 or an errno.
int list_one(int root, const std::string& directory, const ListOptions& options, Listing* listing) {
  Opened opened = open_beneath(root, directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK, options.calls);
  if (opened.error != 0) return opened.error;
  const DirectoryStream stream(fdopendir(opened.handle.get()));
  if (stream == nullptr) return errno;
  opened.handle.release();  // the stream owns it now
  return read_entries(stream.get(), directory, options, listing);
}

}  // namespace

FileStatus to_file_status(const struct stat& found) noexcept {
  FileStatus status;
  status.size_bytes = S_ISREG(found.st_mode) ? static_cast<std::uint64_t>(found.st_size) : 0;
  status.modified_s = static_cast<double>(found.st_mtim.tv_sec) + static_cast<double>(found.st_mtim.tv_nsec) * 1e-9;
  status.is_directory = S_ISDIR(found.st_mode);
  return status;
}

Result<std::vector<Entry>> list_beneath(int root, const std::string& root_path, const std::string& directory,
                                        const ListOptions& options) {
  Listing listing;
  int error = list_one(root, directory, options, &listing);
  if (error == ENOENT) return std::vector<Entry>();
  std::string where = directory;
  while (error == 0 && !listing.unvisited.empty()) {
    where = std::move(listing.unvisited.back());
    listing.unvisited.pop_back();
    // What hides deeper than any path may reach belongs to no trial.
    if (depth_of(where) >= kMaxPathDepth) continue;
    error = list_one(root, where, options, &listing);
    // It was removed, or exchanged for something else, since its directory was read.
    if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG) error = 0;
  }
  if (error == EOVERFLOW) {
    return corrupt_error("list {}/{}: more than {} entries", root_path, directory, options.max_entries);
  }
  if (error != 0) return read_error(error, "list", fmt::format("{}/{}", root_path, where));
  std::sort(listing.entries.begin(), listing.entries.end(),
            [](const Entry& left, const Entry& right) { return left.path < right.path; });
  return std::move(listing.entries);
}

}  // namespace tornasole::store
