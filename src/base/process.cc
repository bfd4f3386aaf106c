#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <string_view>
#include <vector>

namespace tornasole {
namespace {

struct ProcessStatus {
  char state = '?';
  std::int64_t threads = 0;
  std::int64_t start = 0;
};

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

// A file of /proc in one read; empty if there is none.
std::string read_proc(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> text{};
  ssize_t length = 0;
  do {
    length = read(file, text.data(), text.size());
  } while (length < 0 && errno == EINTR);
  close(file);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

// The program's name stands in parentheses and may itself hold spaces and parentheses: fields are counted from the
// last.
std::optional<ProcessStatus> parse_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> fields;  // fields[0] is field 3 of the manual
  std::size_t position = name_end + 1;
  while (position < text.size()) {
    const std::size_t begin = text.find_first_not_of(" \n", position);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    fields.push_back(text.substr(begin, end - begin));
    position = end;
  }
  if (fields.size() < 20) return std::nullopt;
  ProcessStatus status{.state = fields[0][0]};
  const auto number = [](std::string_view field, std::int64_t* to) {
    return std::from_chars(field.data(), field.data() + field.size(), *to).ec == std::errc();
  };
  if (!number(fields[17], &status.threads) || !number(fields[19], &status.start)) return std::nullopt;
  return status;
}

}  // namespace

ProcessIdentity this_process() {
  const auto status = parse_stat(read_proc("/proc/self/stat"));
  return {.host = host_name(), .pid = getpid(), .start = status ? status->start : 0};
}

std::optional<bool> is_process_alive(const ProcessIdentity& process) {
  if (process.host != host_name()) return std::nullopt;
  if (process.pid <= 0 || process.pid > INT_MAX) return false;
  const auto status = parse_stat(read_proc(fmt::format("/proc/{}/stat", process.pid)));
  if (!status) {
    // No /proc, or one that hides other users' processes: the id is all there is to ask for, and a doubt counts as
    // life.
    return kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
  }
  if (status->start != process.start) return false;
  // A zombie is dead and waits to be collected, unless only its first thread has ended.
  return (status->state != 'Z' && status->state != 'X') || status->threads > 1;
}

}  // namespace tornasole
