#include "store/local/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/store_path.h"

namespace tornasole::store {
namespace {

constexpr int kOpenParent = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Opened open_at(int directory, const char* name, int flags) noexcept {
  const int descriptor = uninterrupted([&] { return openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC); });
  if (descriptor < 0) return {{}, errno};
  return {FileHandle(descriptor), 0};
}

Opened open_in_one_call(int root, const char* path, int flags) noexcept {
  open_how how{};
  how.flags = static_cast<__u64>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long descriptor = uninterrupted([&] { return syscall(SYS_openat2, root, path, &how, sizeof how); });
  if (descriptor < 0) return {{}, errno};
  return {FileHandle(static_cast<int>(descriptor)), 0};
}

// Each directory is opened from the handle of the one above it without following links, so that no name can be
// exchanged for a way out between two steps.
Opened open_by_components(int root, const std::string& path, int flags) noexcept {
  FileHandle above;
  std::size_t start = 0;
  char component[kMaxComponentBytes + 1];
  while (true) {
    const std::size_t slash = path.find('/', start);
    const bool is_last = slash == std::string::npos;
    const std::size_t length = (is_last ? path.size() : slash) - start;
    if (length > kMaxComponentBytes) return {{}, ENAMETOOLONG};
    path.copy(component, length, start);
    component[length] = '\0';
    Opened opened = open_at(above.is_open() ? above.get() : root, component, is_last ? flags : kOpenParent);
    if (is_last || opened.error != 0) return opened;
    above = std::move(opened.handle);
    start = slash + 1;
  }
}

bool is_missing_call(int error) noexcept {
  // A sandbox answers EPERM for calls it does not know.
  return error == ENOSYS || error == EPERM;
}

}  // namespace

Opened open_beneath(int root, const std::string& path, int flags, const SystemCalls& calls) noexcept {
  if (path.empty()) return open_at(root, ".", flags);
  if (calls.openat2) {
    Opened opened = open_in_one_call(root, path.c_str(), flags);
    // EAGAIN: the tree changed while the kernel walked it. EINVAL: a kernel that lacks one of the flags.
    if (!is_missing_call(opened.error) && opened.error != EAGAIN && opened.error != EINVAL) return opened;
  }
  return open_by_components(root, path, flags);
}

OpenedDirectory open_or_make_directory(int root, const std::string& directory, mode_t mode, const SystemCalls& calls) {
  Opened opened = open_beneath(root, directory, O_PATH | O_DIRECTORY, calls);
  if (opened.error != ENOENT || directory.empty()) return {std::move(opened), false};

  const SplitPath split = split_path(directory);
  OpenedDirectory parent = open_or_make_directory(root, std::string(split.directory), mode, calls);
  if (parent.opened.error != 0) return parent;
  const std::string name(split.name);
  const int parent_handle = parent.opened.handle.get();
  // Another worker may make the same directory at this moment.
  if (uninterrupted([&] { return mkdirat(parent_handle, name.c_str(), mode); }) != 0 && errno != EEXIST) {
    return {{{}, errno}, parent.was_made};
  }
  return {open_at(parent_handle, name.c_str(), kOpenParent), true};
}

int rename_to_free_name(const Move& move, const SystemCalls& calls) noexcept {
  if (calls.renameat2) {
    const auto rename_new = [&] {
      return renameat2(move.from_directory, move.from, move.to_directory, move.to, RENAME_NOREPLACE);
    };
    if (uninterrupted(rename_new) == 0) return 0;
    if (!is_missing_call(errno) && errno != EINVAL) return errno;
  }
  if (calls.hard_links) {
    const auto link = [&] { return linkat(move.from_directory, move.from, move.to_directory, move.to, 0); };
    if (uninterrupted(link) == 0) {
      // The file has its name; one that stays under the temporary name as well is debris, not a failure.
      unlinkat(move.from_directory, move.from, 0);
      return 0;
    }
    if (!is_missing_call(errno) && errno != EOPNOTSUPP && errno != EMLINK) return errno;
  }
  struct stat ignored{};
  if (fstatat(move.to_directory, move.to, &ignored, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (errno != ENOENT) return errno;
  const auto rename = [&] { return renameat(move.from_directory, move.from, move.to_directory, move.to); };
  return uninterrupted(rename) == 0 ? 0 : errno;
}

}  // namespace tornasole::store
