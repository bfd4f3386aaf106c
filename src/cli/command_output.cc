#include "cli/command_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/terminal.h"

namespace tornasole::cli {

std::string without_delete(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\x7f') {
      out += "\\u007f";
    } else {
      out += c;
    }
  }
  return out;
}

int answer(std::string_view text, int code) {
  const bool is_printed =
      text.find('\x7f') == std::string_view::npos ? print(stdout, text) : print(stdout, without_delete(text));
  if (is_printed) return code;
  print(stderr, "error: cannot write to standard output\n");
  return kFailed;
}

int fail(const Error& error, bool as_json) {
  const bool is_bad_use = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kNotFound ||
                          error.code == ErrorCode::kEnded;  // a step beyond the end of the run
  const int code = is_bad_use ? kBadUse : kFailed;
  if (!as_json) {
    print(stderr, Style::of(stderr).error("error: ") + printable(error.message) + "\n");
    return code;
  }
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("error").begin_object();
  json.key("code").value(error_code_name(error.code)).key("message").value(error.message);
  json.end_object().end_object();
  return answer(text + "\n", code);
}

void warn(std::string_view message) {
  print(stderr, Style::of(stderr).warning("warning: ") + printable(message) + "\n");
}

Status write_output_file(const std::string& path, std::string_view bytes) {
  // The rename would put a file in the place of a device such as /dev/null, of /dev/stdout, of a pipe somebody reads.
  struct stat found{};
  if (lstat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    if (S_ISDIR(found.st_mode)) return errno_error(EISDIR, path);
    return invalid_error("{} exists and is no regular file; choose another name", path);
  }
  const std::string temporary = path + ".tmp";
  // A link or a file that waits at the temporary name is somebody else's.
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return errno_error(errno, temporary);
  Status status;
  while (!bytes.empty() && status) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      status = errno_error(errno, temporary);
    }
  }
  if (close(file) != 0 && status) status = errno_error(errno, temporary);
  if (status && rename(temporary.c_str(), path.c_str()) != 0) status = errno_error(errno, path);
  if (!status) unlink(temporary.c_str());
  return status;
}

}  // namespace tornasole::cli
