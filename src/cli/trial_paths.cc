#include "cli/trial_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "tools/remote_place.h"

namespace tornasole::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;
constexpr std::size_t kNamedTrials = 5;
constexpr std::size_t kMaxVisited = 100'000;  // directories and files, so that a whole disk is not searched

class TrialSearch {
 public:
  TrialSearch(std::vector<std::string>* found, bool* is_cut) : found_(*found), is_cut_(is_cut) {}

  void search(const fs::path& dir, int depth) {
    std::error_code error;
    std::vector<fs::path> children;
    for (auto it = fs::directory_iterator(dir, fs::directory_options::skip_permission_denied, error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
      if (++visited_ > kMaxVisited) {
        *is_cut_ = true;
        break;
      }
      std::error_code ignored;
      if (it->symlink_status(ignored).type() == fs::file_type::directory) children.push_back(it->path());
    }
    std::sort(children.begin(), children.end());
    for (const fs::path& child : children) {
      if (*is_cut_) return;
      if (is_trial_directory(child.string())) {
        found_.push_back(child.string());
        *is_cut_ = found_.size() >= kMaxTrials;
      } else if (depth < kMaxDepth) {
        search(child, depth + 1);
      }
    }
  }

 private:
  std::vector<std::string>& found_;
  bool* is_cut_;
  std::size_t visited_ = 0;
};

// Of a directory that is there and not empty, but no trial.
Error no_trial_error(const std::string& dir) {
  bool is_cut = false;
  const std::vector<std::string> below = trials_below(dir, &is_cut);
  if (below.empty()) {
    return invalid_error("{}: is no trial: it has none of the folders collections, index and events", dir);
  }
  const std::size_t count = std::min(below.size(), kNamedTrials);
  return invalid_error("{}: is no trial, but a directory above {}: {}{}; name one", dir,
                       below.size() == 1 ? "one" : fmt::format("{}{}", below.size(), is_cut ? " or more" : ""),
                       fmt::join(below.begin(), below.begin() + static_cast<std::ptrdiff_t>(count), ", "),
                       below.size() > count ? ", ..." : "");
}

bool is_remote(const std::string& dir) { return dir.starts_with("s3://"); }

Status check_remote(const std::string& dir) {
  TORNASOLE_TRY(const tools::RemotePlace place, tools::look_at_remote(dir));
  if (!place.is_empty) return {};
  return not_yet_error("{}: is empty; no run has written there yet (tornasole tail waits for one)", dir);
}

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Each name is looked at relative to its directory, and once: a trial of many steps has a directory and two files for
// each of them.
class DiskWalk {
 public:
  explicit DiskWalk(DiskUse* use) : use_(*use) {}

  void walk(const std::string& dir) {
    enter(AT_FDCWD, dir.c_str(), 0);
    while (!open_.empty()) {
      if (const dirent* found = readdir(open_.back().get()); found != nullptr) {
        look_at(dirfd(open_.back().get()), *found);
      } else {
        open_.pop_back();
      }
    }
  }

 private:
  static constexpr std::size_t kMaxOpen = 64;  // levels; nothing of a trial lies as deep

  void enter(int parent, const char* name, int flags) {
    const int handle = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | flags);
    if (handle < 0) return;
    DirectoryStream stream(fdopendir(handle));
    if (stream != nullptr) {
      open_.push_back(std::move(stream));
    } else {
      close(handle);
    }
  }

  void look_at(int parent, const dirent& found) {
    const std::string_view name = found.d_name;
    if (name == "." || name == "..") return;
    if (found.d_type == DT_DIR) {
      if (open_.size() < kMaxOpen) enter(parent, found.d_name, O_NOFOLLOW);
      return;
    }
    struct stat status{};
    if (fstatat(parent, found.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISREG(status.st_mode)) {
      ++use_.files;
      use_.bytes += static_cast<std::uint64_t>(status.st_size);
    } else if (S_ISDIR(status.st_mode) && open_.size() < kMaxOpen) {  // a file system that tells no types
      enter(parent, found.d_name, O_NOFOLLOW);
    }
  }

  DiskUse& use_;
  std::vector<DirectoryStream> open_;  // from the root to where the walk is
};

}  // namespace

bool is_trial_directory(const std::string& dir) {
  if (is_remote(dir)) {
    const auto place = tools::look_at_remote(dir);
    return place.ok() && place->is_trial;
  }
  std::error_code error;
  for (const char* part : {"collections", "index", "events"}) {
    if (fs::symlink_status(fs::path(dir) / part, error).type() == fs::file_type::directory) return true;
  }
  return fs::symlink_status(fs::path(dir) / "tornasole" / "run.json", error).type() == fs::file_type::regular;
}

bool has_run_begun(const std::string& dir) {
  if (is_remote(dir)) {
    const auto place = tools::look_at_remote(dir);
    return place.ok() && place->has_begun;
  }
  std::error_code error;
  for (auto it = fs::directory_iterator(dir, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("claim.smd") || name.starts_with("claim-")) return true;
    std::error_code ignored;
    if (name == "tornasole" && it->symlink_status(ignored).type() == fs::file_type::directory) return true;
  }
  return false;
}

std::vector<std::string> trials_below(const std::string& dir, bool* is_cut) {
  std::vector<std::string> found;
  *is_cut = false;
  if (is_remote(dir)) {
    auto remote = tools::remote_trials_below(dir, kMaxTrials);
    if (remote.ok()) found = std::move(*remote);
    *is_cut = found.size() >= kMaxTrials;
    return found;
  }
  TrialSearch(&found, is_cut).search(dir, 1);
  return found;
}

Status check_directory(const std::string& dir) {
  if (is_remote(dir)) return check_remote(dir);
  std::error_code error;
  const fs::file_status status = fs::status(dir, error);
  if (dir.empty() || status.type() == fs::file_type::not_found) {
    return not_found_error("{}: no such directory", dir.empty() ? "(no name)" : dir);
  }
  if (error) return io_error("{}: {}", dir, error.message());
  if (status.type() != fs::file_type::directory) {
    return invalid_error("{}: is a file, not the directory of a run", dir);
  }
  const bool is_empty = fs::is_empty(dir, error);
  if (error) return io_error("{}: {}", dir, error.message());
  if (is_empty) return not_yet_error("{}: is empty; no run has written there yet (tornasole tail waits for one)", dir);
  return {};
}

Status check_trial_directory(const std::string& dir) {
  if (is_remote(dir)) {
    // One look for all questions: each is a request.
    TORNASOLE_TRY(const tools::RemotePlace place, tools::look_at_remote(dir));
    if (place.is_trial) return {};
  }
  TORNASOLE_CHECK(check_directory(dir));
  if (is_trial_directory(dir)) return {};
  if (!has_run_begun(dir)) return no_trial_error(dir);
  return not_yet_error("{}: a run has begun there and written nothing yet (tornasole tail waits for it)", dir);
}

std::string begun_note(const std::string& dir) {
  if (is_trial_directory(dir) || !has_run_begun(dir)) return {};
  return "a run has begun there and written nothing: it is being set up, or it ended before its first step\n";
}

DiskUse disk_use_of(const std::string& dir) {
  DiskUse use;
  if (is_remote(dir)) {
    if (const auto remote = tools::remote_use(dir); remote.ok()) {
      use.files = static_cast<std::int64_t>(remote->objects);
      use.bytes = remote->bytes;
    }
    return use;
  }
  DiskWalk(&use).walk(dir);
  return use;
}

}  // namespace tornasole::cli
