#pragma once

// What an errno of the local file system means to the caller of a store.

#include <string_view>

#include "tornasole/result.h"

namespace tornasole::store {

// For calls that change something: kInvalid for names the file system cannot have, else kIo. `action` is a verb,
// `path` the whole path.
Error write_error(int error, std::string_view action, std::string_view path);

// For calls that only look: kNotFound if nothing is there, kCorrupt if what is there cannot belong to a trial (a link
// on the way, a pipe, a file where a directory should be), else kIo.
Error read_error(int error, std::string_view action, std::string_view path);

// A file system may lack fsync for files or for directories.
bool is_sync_unsupported(int error) noexcept;
Error sync_unsupported_error(std::string_view path);

}  // namespace tornasole::store
