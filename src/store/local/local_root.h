#pragma once

// LocalRoot: the directory of a local store, from "not there yet" to "held by its handle" to "removed by somebody".

#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "store/local/file_handle.h"
#include "tornasole/result.h"

namespace tornasole::store {

// Thread-safe.
class LocalRoot {
 public:
  explicit LocalRoot(std::string path) : path_(std::move(path)) {}

  const std::string& path() const noexcept { return path_; }
  // For messages: the root, or a path below it.
  std::string describe(std::string_view below) const;

  // Looks at the path, writes nothing (see open_local_store). Takes the handle if the directory is there.
  Status check(bool must_be_writable);

  // The handle (O_PATH), open as long as this object lives. kNotFound while the directory is not there.
  Result<int> find();
  // The same, but makes the directory, and those above it, unless it was there before.
  Result<int> find_or_make(mode_t mode);

  // True once the directory that the handle stands for is in no other directory any more.
  bool is_removed() const noexcept;
  Error removed_error(std::string_view action) const;
  // If it is removed: lets go of it, so that the next find looks at the path again. The old handle stays open: another
  // thread may be about to use it.
  bool renew();

  // Makes the entries of the directories that find_or_make made durable.
  Status sync_parents();

 private:
  Status make_with_parents(mode_t mode);  // needs mutex_

  const std::string path_;
  std::atomic<int> descriptor_ = -1;  // owned by handle_

  std::mutex mutex_;
  FileHandle handle_;                          // guarded by mutex_
  std::vector<FileHandle> removed_;            // guarded by mutex_: handles of directories that are gone
  std::vector<std::string> unsynced_parents_;  // guarded by mutex_
};

}  // namespace tornasole::store
