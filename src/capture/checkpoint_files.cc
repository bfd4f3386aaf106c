#include "tornasole/checkpoint_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.h"

namespace tornasole {
namespace {

constexpr std::size_t kMaxFiles = 100'000;
constexpr int kMaxDepth = 32;

struct SeenFile {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const SeenFile&) const = default;
};
using Seen = std::map<std::string, SeenFile>;  // by path below the directory

struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { closedir(stream); }
};

// The state file, its temporary forms, and what the uploader leaves beside every file are no checkpoints.
bool is_ignored(std::string_view name) {
  return name == "metadata.json" || name.starts_with("metadata.json.") ||
         name.find("sagemaker-uploaded") != std::string_view::npos;
}

// Takes the descriptor over.
Status scan_directory(int directory, const std::string& prefix, int depth, Seen* seen) {
  const std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(directory));
  if (stream == nullptr) {
    Error error = errno_error(errno, fmt::format("list '{}'", prefix));
    close(directory);
    return error;
  }
  if (depth > kMaxDepth) return invalid_error("{} is more than {} levels deep", prefix, kMaxDepth);
  while (true) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) return errno == 0 ? Status() : errno_error(errno, fmt::format("list '{}'", prefix));
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || is_ignored(name)) continue;
    struct stat status{};
    // A link counts as what it points to, so that a checkpoint stored elsewhere is noticed; a dangling one as itself.
    if (fstatat(dirfd(stream.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // removed meanwhile
    if (S_ISLNK(status.st_mode)) {
      struct stat target{};
      if (fstatat(dirfd(stream.get()), entry->d_name, &target, 0) == 0 && S_ISREG(target.st_mode)) status = target;
    }
    std::string path = fmt::format("{}{}", prefix, name);
    if (S_ISDIR(status.st_mode)) {
      const int below =
          openat(dirfd(stream.get()), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
      if (below < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) continue;  // exchanged meanwhile
      if (below < 0) return errno_error(errno, fmt::format("list '{}'", path));
      TORNASOLE_CHECK(scan_directory(below, path + '/', depth + 1, seen));
      continue;
    }
    if (seen->size() >= kMaxFiles) return invalid_error("more than {} files", kMaxFiles);
    const std::int64_t modified_ns =
        static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
    seen->emplace(std::move(path), SeenFile{static_cast<std::uint64_t>(status.st_size), modified_ns});
  }
}

Result<Seen> scan(const std::string& path) {
  Seen seen;
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (directory < 0) {
    if (errno == ENOENT) return seen;
    return errno_error(errno, fmt::format("look at checkpoint directory {}", path));
  }
  Status scanned = scan_directory(directory, "", 0, &seen);
  if (!scanned.ok()) {
    Error error = std::move(scanned).error();
    error.message = fmt::format("checkpoint directory {}: {}", path, error.message);
    return error;
  }
  return seen;
}

}  // namespace

struct CheckpointFiles::State {
  std::string directory;
  Seen accepted = {};
  Seen last = {};
};

CheckpointFiles::CheckpointFiles(std::string directory) : state_(new State{.directory = std::move(directory)}) {}
CheckpointFiles::CheckpointFiles(CheckpointFiles&&) noexcept = default;
CheckpointFiles& CheckpointFiles::operator=(CheckpointFiles&&) noexcept = default;
CheckpointFiles::~CheckpointFiles() = default;

Result<bool> CheckpointFiles::have_changed() {
  TORNASOLE_TRY(state_->last, scan(state_->directory));
  // An empty directory is one in which nothing was saved yet, or one just being cleaned: neither is a checkpoint.
  return !state_->last.empty() && state_->last != state_->accepted;
}

void CheckpointFiles::accept() { state_->accepted = state_->last; }

}  // namespace tornasole
