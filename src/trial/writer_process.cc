#include "trial/writer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <string>
#include <string_view>

namespace tornasole::trial {
namespace {

std::string read_stat(std::int64_t pid) {
  const int file = open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> text{};
  ssize_t length = 0;
  do {
    length = read(file, text.data(), text.size());
  } while (length < 0 && errno == EINTR);
  close(file);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

// Field `number` of the manual, counted from behind the program's name, which may hold anything; field 3 comes first.
std::string_view stat_field(std::string_view text, int number) {
  std::size_t at = text.rfind(')');
  for (int field = 3; at != std::string_view::npos; ++field) {
    at = text.find_first_not_of(" )\n", at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (field == number) return text.substr(at, end - at);
    at = end;
  }
  return {};
}

std::int64_t stat_number(std::string_view text, int number) {
  const std::string_view field = stat_field(text, number);
  std::int64_t value = -1;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value;
}

}  // namespace

std::optional<bool> probe_process(const format::ProcessIdentity& process) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || process.host != host.data()) return std::nullopt;
  if (process.pid <= 0 || process.pid > INT_MAX) return false;
  const std::string stat = read_stat(process.pid);
  const std::string_view state = stat_field(stat, 3);
  // Without /proc, or with one that hides other users' processes, the id is all there is, and a doubt counts as life.
  if (state.empty()) return kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
  if (stat_number(stat, 22) != process.start) return false;
  const bool has_ended = state == "Z" || state == "X";
  return !has_ended || stat_number(stat, 20) > 1;
}

}  // namespace tornasole::trial
