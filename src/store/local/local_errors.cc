#include "store/local/local_errors.h"

#include <cerrno>
#include <system_error>

#include "base/errors.h"

namespace tornasole::store {
namespace {

std::string text_of(int error) { return std::generic_category().message(error); }

}  // namespace

Error write_error(int error, std::string_view action, std::string_view path) {
  switch (error) {
    case ENAMETOOLONG: return invalid_error("{} {}: the name is too long for this file system", action, path);
    case ELOOP:
    case ENOTDIR:
      return io_error("{} {}: a link or a file stands where a directory is needed ({})", action, path, text_of(error));
    default: return io_error("{} {}: {}", action, path, text_of(error));
  }
}

Error read_error(int error, std::string_view action, std::string_view path) {
  switch (error) {
    case ENOENT: return not_found_error("{} {}: {}", action, path, text_of(error));
    case ENAMETOOLONG: return invalid_error("{} {}: the name is too long for this file system", action, path);
    case ELOOP:
    case ENOTDIR:
    case EXDEV:
      return corrupt_error("{} {}: a link or a file stands where a directory or a plain file is expected ({})", action,
                           path, text_of(error));
    case EISDIR:
    case ENXIO:
    case ENODEV: return corrupt_error("{} {}: not a regular file ({})", action, path, text_of(error));
    default: return io_error("{} {}: {}", action, path, text_of(error));
  }
}

bool is_sync_unsupported(int error) noexcept { return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS; }

Error sync_unsupported_error(std::string_view path) {
  return unsupported_error("sync {}: this file system cannot make data durable on request", path);
}

}  // namespace tornasole::store
