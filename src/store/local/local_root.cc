#include "store/local/local_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errors.h"
#include "store/local/local_errors.h"

namespace tornasole::store {
namespace {

// "/a/b" -> "/a"; "/a" -> "/". The path has no '/' at its end.
std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

Status check_writable(const std::string& directory, const std::string& root) {
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  const std::string why = std::generic_category().message(errno);
  if (directory == root) return io_error("cannot write to {}: {}", root, why);
  return io_error("cannot create {}: no permission to write to {}: {}", root, directory, why);
}

}  // namespace

std::string LocalRoot::describe(std::string_view below) const {
  if (below.empty()) return path_;
  return path_ == "/" ? fmt::format("/{}", below) : fmt::format("{}/{}", path_, below);
}

Status LocalRoot::check(bool must_be_writable) {
  std::string nearest = path_;
  while (true) {
    struct stat status{};
    if (stat(nearest.c_str(), &status) == 0) {
      if (S_ISDIR(status.st_mode)) break;
      if (nearest == path_) return invalid_error("{} is a file, not a directory", path_);
      return invalid_error("cannot create {}: {} is a file, not a directory", path_, nearest);
    }
    const int error = errno;
    if (error == ENAMETOOLONG || error == ELOOP) {
      return invalid_error("cannot use {}: {}", path_, std::generic_category().message(error));
    }
    if (error == EACCES) return io_error("cannot look at {}: {}", nearest, std::generic_category().message(error));
    if (error == ENOENT && lstat(nearest.c_str(), &status) == 0) {
      return invalid_error("cannot use {}: {} is a link to something that is not there", path_, nearest);
    }
    if (error != ENOENT && error != ENOTDIR) return errno_error(error, fmt::format("look at {}", nearest));
    nearest = parent_of(nearest);
  }
  if (must_be_writable) TORNASOLE_CHECK(check_writable(nearest, path_));
  if (nearest == path_) TORNASOLE_CHECK(find());
  return {};
}

Result<int> LocalRoot::find() {
  if (const int descriptor = descriptor_; descriptor >= 0) return descriptor;
  const std::lock_guard lock(mutex_);
  if (handle_.is_open()) return handle_.get();
  // Links are allowed here, and only here: the user chose this path.
  const int descriptor = uninterrupted([this] { return open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return read_error(errno, "open directory", path_);
  handle_ = FileHandle(descriptor);
  descriptor_ = descriptor;
  return descriptor;
}

Result<int> LocalRoot::find_or_make(mode_t mode) {
  auto found = find();
  if (found.ok()) return found;
  if (found.error().code == ErrorCode::kNotFound) {
    {
      const std::lock_guard lock(mutex_);
      TORNASOLE_CHECK(make_with_parents(mode));
    }
    found = find();
    if (found.ok()) return found;
  }
  // Whoever wants to write cannot: that is never "not found".
  return io_error("{}", found.error().message);
}

Status LocalRoot::make_with_parents(mode_t mode) {
  // From the deepest that can be made upwards, then down again. Bounded: below a link to nothing, or where the system
  // makes no directories, the parent is there and yet what is in it cannot be made.
  constexpr int kMostAttempts = 1024;
  std::vector<std::string> missing = {path_};
  for (int attempts = 0; !missing.empty(); ++attempts) {
    const std::string& directory = missing.back();
    if (uninterrupted([&] { return mkdir(directory.c_str(), mode); }) == 0) {
      unsynced_parents_.push_back(parent_of(directory));
      missing.pop_back();
    } else if (errno == EEXIST) {
      missing.pop_back();
    } else if (errno == ENOENT && directory != "/" && missing.size() < 256 && attempts < kMostAttempts) {
      missing.push_back(parent_of(directory));
    } else {
      return write_error(errno, "create directory", directory);
    }
  }
  return {};
}

bool LocalRoot::is_removed() const noexcept {
  const int descriptor = descriptor_;
  struct stat status{};
  return descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_nlink == 0;
}

Error LocalRoot::removed_error(std::string_view action) const {
  return io_error("{}: the directory {} was removed while it was in use", action, path_);
}

bool LocalRoot::renew() {
  const std::lock_guard lock(mutex_);
  if (!is_removed()) return false;
  removed_.push_back(std::move(handle_));
  descriptor_ = -1;
  return true;
}

Status LocalRoot::sync_parents() {
  const std::lock_guard lock(mutex_);
  while (!unsynced_parents_.empty()) {
    const std::string& parent = unsynced_parents_.back();
    const FileHandle handle(uninterrupted([&] { return open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    // A directory that may be written to but not read cannot be synced; nothing better can be done for it.
    if (!handle.is_open() && errno != EACCES) return write_error(errno, "sync directory", parent);
    if (handle.is_open() && uninterrupted([&] { return fsync(handle.get()); }) != 0) {
      if (is_sync_unsupported(errno)) return sync_unsupported_error(parent);
      return write_error(errno, "sync directory", parent);
    }
    unsynced_parents_.pop_back();
  }
  return {};
}

}  // namespace tornasole::store
