#include "tools/absolute_path.h"

#include <filesystem>
#include <system_error>

#include "base/errors.h"

namespace tornasole::tools {

Result<std::string> absolute_path(std::string_view path) {
  if (path.empty()) return invalid_error("the path is empty; a directory or file is needed");
  if (path.find('\0') != std::string_view::npos) {
    return invalid_error("path '{}': it contains a NUL byte", path.substr(0, path.find('\0')));
  }
  if (path.starts_with("s3://")) return std::string(path);
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(std::filesystem::path(path), error);
  if (error) return io_error("path '{}': the current directory is not known: {}", path, error.message());
  return absolute.lexically_normal().string();
}

}  // namespace tornasole::tools
