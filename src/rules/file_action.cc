// file: appends the event as one line of JSON.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/errors.h"
#include "base/utf8.h"
#include "config/environment.h"
#include "config/locations.h"
#include "rules/action.h"

namespace tornasole::rules {
namespace {

class FileAction final : public Action {
 public:
  explicit FileAction(std::string path) : path_(std::move(path)) {}

  Status run(const ActionEvent& event) override {
    const std::string line = std::string(event.json) + "\n";
    // Non-blocking: a pipe that nobody reads would otherwise be waited for. It is an error instead.
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file < 0) return errno_error(errno, printable(path_));
    // One call, so that lines of several writers never mix.
    ssize_t written = 0;
    do written = write(file, line.data(), line.size());
    while (written < 0 && errno == EINTR);
    const int error = errno;
    const bool is_closed = close(file) == 0;
    if (written < 0) return errno_error(error, printable(path_));
    if (static_cast<std::size_t>(written) != line.size()) {
      return io_error("{}: only {} of {} bytes could be written", printable(path_), written, line.size());
    }
    return is_closed ? Status() : errno_error(errno, printable(path_));
  }

 private:
  std::string path_;
};

}  // namespace

MadeAction make_file_action(const Json& path, const RuleActionOptions& /*options*/) {
  const std::string* text = path.as_string();
  if (text == nullptr || text->empty() || text->find('\0') != std::string::npos) {
    return invalid_error("file: \"path\" is a text that is not empty, not {}", path.to_message());
  }
  std::string full = config::expand_home(*text, config::Environment::from_process());
  return std::unique_ptr<Action>(std::make_unique<FileAction>(std::move(full)));
}

}  // namespace tornasole::rules
