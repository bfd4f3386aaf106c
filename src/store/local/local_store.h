#pragma once

// The store on a local (or network) file system: a directory.
//
// The directory need not exist: the first call that writes makes it, with the directories above it. Once it was there
// it is held by its handle. It may be moved, but if it is removed every call says so with kIo; it is made again only
// after renew_root. Directories inside it are made again when missing.

#include <memory>
#include <string>

#include "store/local/beneath.h"
#include "store/store.h"

namespace tornasole::store {

struct LocalStoreOptions {
  // Modes of new files and directories, less the umask: 0600 and 0700, or 0660 and 0770 to share with a group.
  bool shared = false;
  // Every call that would write is kUnsupported, and the directory need not be writable.
  bool read_only = false;
  SystemCalls calls = {};
};

// Checks what can be checked without writing. kInvalid if the root is not an absolute path, or it or the nearest
// existing directory above it is something else than a directory; kIo if that directory cannot be written to.
Result<std::unique_ptr<Store>> open_local_store(const std::string& absolute_root, LocalStoreOptions options = {});

}  // namespace tornasole::store
