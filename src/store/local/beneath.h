#pragma once

// Files below a directory handle, and never anywhere else: no link is followed, no name leads out. Every function takes
// a path that check_path accepted, and returns what it opened or an errno.

#include <sys/types.h>

#include <string>

#include "store/local/file_handle.h"

namespace tornasole::store {

// System calls that an old kernel, a sandbox or a file system may lack. Where one fails for that reason, older means do
// its work; false goes to the older means at once.
struct SystemCalls {
  bool openat2 = true;
  bool renameat2 = true;
  bool hard_links = true;
  bool fallocate = true;
  bool direct_writes = true;
};

struct Opened {
  FileHandle handle;
  int error = 0;  // an errno; 0 if the handle is open
};

// Opens what is at `path`, "" being the root itself. A link anywhere in it is ELOOP or ENOTDIR; only with O_PATH is a
// link in the last place opened, as a link.
Opened open_beneath(int root, const std::string& path, int flags, const SystemCalls& calls) noexcept;

struct OpenedDirectory {
  Opened opened;
  bool was_made = false;  // it, or a directory above it
};
// A handle (O_PATH) of the directory, made with this mode, less the umask, where missing.
OpenedDirectory open_or_make_directory(int root, const std::string& directory, mode_t mode, const SystemCalls& calls);

// Two names, each in a directory given by its handle.
struct Move {
  int from_directory = -1;
  const char* from = nullptr;
  int to_directory = -1;
  const char* to = nullptr;
};
// Moves only if nothing is at the new name, else EEXIST. Without renameat2 this is a link and an unlink; without hard
// links, or for a directory, a look and a rename, which two writers of one name can race through.
int rename_to_free_name(const Move& move, const SystemCalls& calls) noexcept;

}  // namespace tornasole::store
