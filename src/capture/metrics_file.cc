#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/checkpoint.h"

namespace tornasole::capture {
namespace {

constexpr double kOldestSeconds = 14 * 24 * 3600.0;
constexpr double kAheadSeconds = 2 * 3600.0;

Status check_metric(const format::MetricRecord& metric, double now) {
  if (!std::isfinite(metric.value)) {
    return invalid_error("metric {} is {}: a metric must be finite", printable(metric.name), metric.value);
  }
  const double ahead = metric.timestamp - now;
  if (!(ahead >= -kOldestSeconds && ahead <= kAheadSeconds)) {
    return invalid_error("metric {} has time stamp {}: allowed is from 14 days before to 2 hours after {}",
                         printable(metric.name), metric.timestamp, now);
  }
  return {};
}

// Links, pipes and devices that wait under the name are refused, not written to.
Result<int> open_for_append(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return errno_error(errno, fmt::format("open metrics file {}", path));
  struct stat status{};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
  ::close(file);
  return invalid_error("metrics file {}: not a regular file", path);
}

}  // namespace

MetricsFile::~MetricsFile() { close(); }

void MetricsFile::close() noexcept {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

Status MetricsFile::append(const format::MetricRecord& metric, double now) {
  TORNASOLE_CHECK(check_metric(metric, now));
  const std::string path = fmt::format("{}/{}.json", directory_.empty() ? "." : directory_, getpid());
  if (file_ < 0) {
    TORNASOLE_TRY(file_, open_for_append(path));
  }
  const Bytes line = format::encode_metric(metric);
  ssize_t written = 0;
  do {
    written = write(file_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno_error(errno, fmt::format("write metrics file {}", path));
  if (static_cast<std::size_t>(written) == line.size()) return {};
  // A full disk took a part: the next line must not be glued to it. The file is this process's alone.
  struct stat status{};
  if (fstat(file_, &status) == 0 && ftruncate(file_, status.st_size - written) != 0) {
    return errno_error(errno, fmt::format("take back {} bytes of a line of metrics file {}", written, path));
  }
  return io_error("write metrics file {}: {} of {} bytes written, no room for the rest", path, written, line.size());
}

}  // namespace tornasole::capture
