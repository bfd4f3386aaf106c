#include "config/environment.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "config/process_environment.h"

namespace tornasole::config {
namespace {

std::optional<std::string> home_in_passwd(const std::string& user) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  const int failed = user.empty() ? getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found)
                                  : getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (failed != 0 || found == nullptr || found->pw_dir == nullptr || *found->pw_dir == '\0') return std::nullopt;
  return found->pw_dir;
}

// Closes the descriptor on every way out.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) noexcept : descriptor_(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

Result<std::string> read_real_file(const std::string& path, std::size_t max_bytes) {
  const std::string shown = printable(path);
  if (path.find('\0') != std::string::npos) return invalid_error("{}: a path cannot contain a NUL character", shown);
  // Non-blocking: opening a pipe nobody writes to would otherwise wait for ever.
  const OpenFile file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return errno_error(errno == ENOTDIR ? ENOENT : errno, shown);
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return errno_error(errno, shown);
  if (S_ISDIR(status.st_mode)) return io_error("{}: is a directory, not a file", shown);
  if (!S_ISREG(status.st_mode)) return io_error("{}: is not a regular file", shown);
  // Reads one byte beyond the limit: the size of a file that grows meanwhile cannot be trusted.
  std::string bytes(max_bytes + 1, '\0');
  std::size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t count = read(file.get(), bytes.data() + length, bytes.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, shown);
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > max_bytes) return io_error("{}: longer than the limit of {} bytes", shown, max_bytes);
  bytes.resize(length);
  return bytes;
}

}  // namespace

Environment Environment::from_process() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    // getenv answers with the first of two entries of one name, and so does emplace.
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = variables_.find(std::string(name));
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Environment::get_nonempty(std::string_view name) const {
  std::optional<std::string> value = get(name);
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<std::string> Environment::get_twin(std::string_view suffix) const {
  if (auto value = get_nonempty("TORNASOLE_" + std::string(suffix))) return value;
  return get_nonempty("SMDEBUG_" + std::string(suffix));
}

std::optional<std::string> Environment::home(std::string_view user) const {
  if (user.empty()) {
    if (auto home = get_nonempty("HOME")) return home;
  }
  if (user.find('\0') != std::string_view::npos) return std::nullopt;
  return home_in_passwd(std::string(user));
}

Result<std::string> Environment::read_file(const std::string& path, std::size_t max_bytes) const {
  if (!files_) return read_real_file(path, max_bytes);
  const auto found = files_->find(path);
  if (found == files_->end()) return errno_error(ENOENT, printable(path));
  if (found->second.size() > max_bytes) {
    return io_error("{}: longer than the limit of {} bytes", printable(path), max_bytes);
  }
  return found->second;
}

char** process_environment() noexcept { return environ; }

}  // namespace tornasole::config
