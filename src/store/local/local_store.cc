#include "store/local/local_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "base/errors.h"
#include "store/local/local_errors.h"
#include "store/local/local_listing.h"
#include "store/local/local_pending_file.h"
#include "store/local/local_root.h"
#include "store/store_path.h"

namespace tornasole::store {
namespace {

constexpr int kCreateFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
// A pipe without a writer would block the open, a terminal would become ours.
constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

std::uint64_t make_token() noexcept {
  std::uint64_t token = 0;
  // Without randomness names are less unique, which costs an error at worst.
  if (getrandom(&token, sizeof token, GRND_NONBLOCK) < 0) token = static_cast<std::uint64_t>(getppid());
  return token;
}

class LocalStore final : public Store {
 public:
  LocalStore(const std::string& root, LocalStoreOptions options)
      : options_(options),
        file_mode_(options.shared ? 0660 : 0600),
        directory_mode_(options.shared ? 0770 : 0700),
        token_(make_token()),
        direct_(std::make_shared<DirectMemory>(options.calls.direct_writes)),
        root_(root) {}

  Status check() { return root_.check(!options_.read_only); }

  std::string description() const override { return root_.path(); }
  Capabilities capabilities() const noexcept override { return {}; }
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override;
  Status create_exclusive(std::string_view path, ByteView content) override;
  Status sync_directory(std::string_view directory) override;
  Result<FileStatus> status(std::string_view path) override;
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override;
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override;
  Result<std::size_t> read_into(std::string_view path, std::uint64_t offset, std::span<char> buffer) override;
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override;
  Status remove(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Result<double> now_s() override;
  bool renew_root() override;

 private:
  struct RegularFile {
    FileHandle handle;
    std::uint64_t size_bytes = 0;
  };
  // Where a file is written: its directory, and the file itself under a temporary name.
  struct NewFile {
    FileHandle directory;
    FileHandle file;
  };

  Result<int> writable_root(std::string_view action, std::string_view path);
  Result<FileHandle> directory_for_writing(std::string_view directory, std::string_view action);
  Result<NewFile> create_temporary(std::string_view directory, const std::string& temporary, std::string_view action);
  Result<RegularFile> open_regular(std::string_view path);
  Result<Bytes> read_open(const RegularFile& file, std::string_view path, std::uint64_t offset, std::uint64_t length);
  Status sync_one_directory(int root, const std::string& directory);
  // A name nobody else uses, not even a forked child.
  std::string unique_temporary(std::string_view name);
  void forget_durable(std::string_view directory);

  Error failed_read(int error, std::string_view action, std::string_view path) const;
  Error failed_write(int error, std::string_view action, std::string_view path) const;

  // constant
  const LocalStoreOptions options_;
  const mode_t file_mode_;
  const mode_t directory_mode_;
  const std::uint64_t token_;                   // random, part of temporary names
  const std::shared_ptr<DirectMemory> direct_;  // shared with the files that are being written

  LocalRoot root_;
  std::atomic<std::uint64_t> temporary_count_ = 0;
  std::mutex mutex_;
  // Directories whose own entry was synced, so that sync_directory need not climb to the root each time.
  std::set<std::string, std::less<>> durable_;  // guarded by mutex_
};

Error LocalStore::failed_read(int error, std::string_view action, std::string_view path) const {
  if (error == ENOENT && root_.is_removed()) return root_.removed_error(fmt::format("{} {}", action, path));
  return read_error(error, action, root_.describe(path));
}

Error LocalStore::failed_write(int error, std::string_view action, std::string_view path) const {
  if (error == ENOENT && root_.is_removed()) return root_.removed_error(fmt::format("{} {}", action, path));
  return write_error(error, action, root_.describe(path));
}

Result<int> LocalStore::writable_root(std::string_view action, std::string_view path) {
  if (options_.read_only) {
    return unsupported_error("{} {}: {} was opened for reading only", action, path, root_.path());
  }
  return root_.find_or_make(directory_mode_);
}

Result<FileHandle> LocalStore::directory_for_writing(std::string_view directory, std::string_view action) {
  TORNASOLE_TRY(const int root, writable_root(action, directory));
  const std::string path(directory);
  OpenedDirectory made = open_or_make_directory(root, path, directory_mode_, options_.calls);
  if (made.was_made) forget_durable(directory);
  if (made.opened.error != 0) return failed_write(made.opened.error, action, directory);
  return std::move(made.opened.handle);
}

void LocalStore::forget_durable(std::string_view directory) {
  const std::lock_guard lock(mutex_);
  for (; !directory.empty(); directory = split_path(directory).directory) {
    if (const auto found = durable_.find(directory); found != durable_.end()) durable_.erase(found);
  }
}

// Handles of directories are not kept between calls. Opening one is cheap beside making a file, and a kept one would go
// on writing into a directory that was moved aside or removed.
Result<LocalStore::NewFile> LocalStore::create_temporary(std::string_view directory, const std::string& temporary,
                                                         std::string_view action) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    TORNASOLE_TRY(FileHandle handle, directory_for_writing(directory, action));
    const int descriptor =
        uninterrupted([&] { return openat(handle.get(), temporary.c_str(), kCreateFlags, file_mode_); });
    if (descriptor >= 0) return NewFile{std::move(handle), FileHandle(descriptor)};
    const int error = errno;
    // The directory was removed after it was opened: make it again, unless the root is what was removed.
    if (error == ENOENT && attempt < kAttempts && !root_.is_removed()) continue;
    const std::string path = directory.empty() ? temporary : fmt::format("{}/{}", directory, temporary);
    if (error == EEXIST) {
      return io_error("{} {}: there is something at that temporary name already; it is left alone", action,
                      root_.describe(path));
    }
    return failed_write(error, action, path);
  }
}

std::string LocalStore::unique_temporary(std::string_view name) {
  // Cut, so that a long name stays a possible one. The process number alone would not do: it is 1 in every container.
  return fmt::format("{}.{}-{:016x}-{}{}", name.substr(0, 200), getpid(), token_, ++temporary_count_, kTemporarySuffix);
}

Result<std::unique_ptr<PendingFile>> LocalStore::create(std::string_view path) {
  TORNASOLE_CHECK(check_new_path(path));
  const SplitPath split = split_path(path);
  const std::string temporary = fmt::format("{}{}", split.name, kTemporarySuffix);
  auto file = std::make_unique<LocalPendingFile>(
      LocalPendingFile::Names{std::string(split.name), temporary, root_.describe(path)}, options_.calls, direct_);
  TORNASOLE_TRY(NewFile made, create_temporary(split.directory, temporary, "create"));
  file->adopt(std::move(made.directory), std::move(made.file));
  return std::unique_ptr<PendingFile>(std::move(file));
}

// Written aside and moved into place, so that nobody sees a claim without its content. The name aside is unique: two
// that compete for the final name do not stumble over each other.
Status LocalStore::create_exclusive(std::string_view path, ByteView content) {
  TORNASOLE_CHECK(check_new_path(path));
  const SplitPath split = split_path(path);
  const std::string temporary = unique_temporary(split.name);
  LocalPendingFile file({std::string(split.name), temporary, root_.describe(path)}, options_.calls, direct_);
  TORNASOLE_TRY(NewFile made, create_temporary(split.directory, temporary, "create"));
  file.adopt(std::move(made.directory), std::move(made.file));
  TORNASOLE_CHECK(file.append(content));
  return file.publish(/*replace=*/false);
}

Status LocalStore::sync_one_directory(int root, const std::string& directory) {
  const Opened opened = open_beneath(root, directory, O_RDONLY | O_DIRECTORY, options_.calls);
  if (opened.error != 0) return failed_write(opened.error, "sync directory", directory);
  if (uninterrupted([&] { return fsync(opened.handle.get()); }) == 0) return {};
  if (is_sync_unsupported(errno)) return sync_unsupported_error(root_.describe(directory));
  return failed_write(errno, "sync directory", directory);
}

// A directory is as durable as its entry in the one above it, so the walk goes up until it meets one already safe.
Status LocalStore::sync_directory(std::string_view directory) {
  TORNASOLE_CHECK(check_directory_path(directory));
  TORNASOLE_TRY(const int root, writable_root("sync directory", directory));
  if (root_.is_removed()) return root_.removed_error(fmt::format("sync directory {}", directory));
  constexpr std::size_t kMaxRemembered = 1024;
  std::string_view below;
  while (true) {
    TORNASOLE_CHECK(sync_one_directory(root, std::string(directory)));
    {
      const std::lock_guard lock(mutex_);
      if (durable_.size() > kMaxRemembered) durable_.clear();
      if (!below.empty()) durable_.emplace(below);
      if (durable_.contains(directory)) return {};
    }
    if (directory.empty()) return root_.sync_parents();
    below = directory;
    directory = split_path(directory).directory;
  }
}

Result<FileStatus> LocalStore::status(std::string_view path) {
  TORNASOLE_CHECK(check_directory_path(path));
  TORNASOLE_TRY(const int root, root_.find());
  const Opened opened = open_beneath(root, std::string(path), O_PATH, options_.calls);
  if (opened.error != 0) return failed_read(opened.error, "look at", path);
  struct stat found{};
  if (fstat(opened.handle.get(), &found) != 0) return failed_read(errno, "look at", path);
  if (path.empty() && found.st_nlink == 0) return root_.removed_error("look at it");
  if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) {
    return corrupt_error("look at {}: neither a regular file nor a directory", root_.describe(path));
  }
  return to_file_status(found);
}

Result<std::vector<Entry>> LocalStore::list(std::string_view directory, bool recursive) {
  TORNASOLE_CHECK(check_directory_path(directory));
  const auto root = root_.find();
  if (!root.ok() && root.error().code == ErrorCode::kNotFound) return std::vector<Entry>();
  if (!root.ok()) return root.error();
  // A removed directory can still be read through its handle, and is empty.
  if (root_.is_removed()) return root_.removed_error(fmt::format("list {}", directory));
  return list_beneath(*root, root_.path(), std::string(directory), {.recursive = recursive, .calls = options_.calls});
}

Result<LocalStore::RegularFile> LocalStore::open_regular(std::string_view path) {
  TORNASOLE_CHECK(check_path(path));
  TORNASOLE_TRY(const int root, root_.find());
  Opened opened = open_beneath(root, std::string(path), kReadFlags, options_.calls);
  if (opened.error != 0) return failed_read(opened.error, "read", path);
  struct stat found{};
  if (fstat(opened.handle.get(), &found) != 0) return failed_read(errno, "read", path);
  if (!S_ISREG(found.st_mode)) return corrupt_error("read {}: not a regular file", root_.describe(path));
  return RegularFile{std::move(opened.handle), static_cast<std::uint64_t>(found.st_size)};
}

Result<Bytes> LocalStore::read_open(const RegularFile& file, std::string_view path, std::uint64_t offset,
                                    std::uint64_t length) {
  if (offset >= file.size_bytes) return Bytes();
  const std::uint64_t wanted = std::min(length, file.size_bytes - offset);
  if (wanted > kMaxReadBytes) {
    return invalid_error("read {}: {} bytes at once; at most {} are allowed", root_.describe(path), wanted,
                         kMaxReadBytes);
  }
  Bytes content;
  try {
    content.resize(wanted);
  } catch (const std::bad_alloc&) {
    return io_error("read {}: no memory for {} bytes", root_.describe(path), wanted);
  }
  std::size_t count = 0;
  const int error = read_at(file.handle.get(), offset, content, &count);
  if (error != 0) return failed_read(error, "read", path);
  content.resize(count);
  return content;
}

Result<Bytes> LocalStore::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  TORNASOLE_TRY(const RegularFile file, open_regular(path));
  return read_open(file, path, offset, length);
}

Result<std::size_t> LocalStore::read_into(std::string_view path, std::uint64_t offset, std::span<char> buffer) {
  TORNASOLE_TRY(const RegularFile file, open_regular(path));
  const std::uint64_t rest = file.size_bytes - std::min(offset, file.size_bytes);
  std::size_t count = 0;
  const int error =
      read_at(file.handle.get(), offset, buffer.first(std::min<std::uint64_t>(buffer.size(), rest)), &count);
  if (error != 0) return failed_read(error, "read", path);
  return count;
}

Result<Bytes> LocalStore::read_all(std::string_view path, std::uint64_t limit) {
  TORNASOLE_TRY(const RegularFile file, open_regular(path));
  if (file.size_bytes > limit) {
    return corrupt_error("read {}: {} bytes, at most {} are allowed", root_.describe(path), file.size_bytes, limit);
  }
  return read_open(file, path, 0, file.size_bytes);
}

Status LocalStore::remove(std::string_view path) {
  TORNASOLE_CHECK(check_path(path));
  if (options_.read_only) TORNASOLE_CHECK(writable_root("remove", path));
  TORNASOLE_TRY(const int root, root_.find());
  const SplitPath split = split_path(path);
  const std::string name(split.name);
  const Opened parent = open_beneath(root, std::string(split.directory), O_PATH | O_DIRECTORY, options_.calls);
  if (parent.error != 0) return failed_read(parent.error, "remove", path);
  const auto unlink = [&](int flags) {
    return uninterrupted([&] { return unlinkat(parent.handle.get(), name.c_str(), flags); });
  };
  if (unlink(0) == 0) return {};
  int error = errno;
  if (error == EISDIR || error == EPERM) {
    if (unlink(AT_REMOVEDIR) == 0) {
      forget_durable(path);
      return {};
    }
    // EPERM may have been the truth about a file; then "not a directory" would hide it.
    if (errno != ENOTDIR) error = errno;
  }
  if (error == ENOENT) return failed_read(error, "remove", path);
  return failed_write(error, "remove", path);
}

Status LocalStore::rename(std::string_view from, std::string_view to) {
  TORNASOLE_CHECK(check_path(from));
  TORNASOLE_CHECK(check_path(to));
  if (options_.read_only) TORNASOLE_CHECK(writable_root("rename", from));
  TORNASOLE_TRY(const int root, root_.find());
  const SplitPath source = split_path(from);
  const SplitPath target = split_path(to);
  const std::string source_name(source.name);
  const std::string target_name(target.name);
  const Opened parent = open_beneath(root, std::string(source.directory), O_PATH | O_DIRECTORY, options_.calls);
  if (parent.error != 0) return failed_read(parent.error, "rename", from);
  // Looked at first: a rename of nothing should leave no directories behind.
  struct stat found{};
  if (fstatat(parent.handle.get(), source_name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return failed_read(errno, "rename", from);
  }
  if (to.starts_with(from) && (to.size() == from.size() || to[from.size()] == '/')) {
    return invalid_error("rename {} to {}: it cannot be moved onto or into itself", root_.describe(from), to);
  }
  TORNASOLE_TRY(const FileHandle directory, directory_for_writing(target.directory, "create directory"));
  const Move move = {parent.handle.get(), source_name.c_str(), directory.get(), target_name.c_str()};
  const int error = rename_to_free_name(move, options_.calls);
  if (error == EEXIST || error == ENOTEMPTY) {
    return invalid_error("rename {} to {}: there is something at that name already", root_.describe(from), to);
  }
  if (error == ENOENT) return failed_read(error, "rename", from);
  if (error != 0) return failed_write(error, fmt::format("rename {} to", root_.describe(from)), to);
  const std::lock_guard lock(mutex_);
  durable_.clear();
  return {};
}

Result<double> LocalStore::now_s() {
  const std::string temporary = unique_temporary(".tornasole-clock");
  TORNASOLE_TRY(const NewFile made, create_temporary({}, temporary, "create"));
  struct stat found{};
  const int error = fstat(made.file.get(), &found) == 0 ? 0 : errno;
  uninterrupted([&] { return unlinkat(made.directory.get(), temporary.c_str(), 0); });
  if (error != 0) return failed_write(error, "look at", temporary);
  return to_file_status(found).modified_s;
}

bool LocalStore::renew_root() {
  if (!root_.renew()) return false;
  const std::lock_guard lock(mutex_);
  durable_.clear();
  return true;
}

}  // namespace

Result<std::unique_ptr<Store>> open_local_store(const std::string& absolute_root, LocalStoreOptions options) {
  if (!absolute_root.starts_with('/')) {
    return invalid_error("directory '{}': an absolute path is needed, one that starts with '/'", absolute_root);
  }
  if (absolute_root.find('\0') != std::string::npos) {
    return invalid_error("directory '{}' contains a NUL byte", absolute_root.substr(0, absolute_root.find('\0')));
  }
  const std::size_t end = absolute_root.find_last_not_of('/');
  auto store = std::make_unique<LocalStore>(end == std::string::npos ? "/" : absolute_root.substr(0, end + 1), options);
  TORNASOLE_CHECK(store->check());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace tornasole::store
