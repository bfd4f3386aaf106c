#include "capture/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <utility>

#include "base/errors.h"

namespace tornasole::capture {
namespace {

constexpr std::string_view kStateName = "metadata.json";
constexpr std::size_t kMaxStateBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxRecords = 10'000;  // older ones are left out: only the newest is ever restored

class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

Result<std::optional<Bytes>> read_state(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<Bytes>();
    return errno_error(errno, fmt::format("read checkpoint state {}", path));
  }
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return errno_error(errno, fmt::format("look at checkpoint state {}", path));
  if (!S_ISREG(status.st_mode)) return invalid_error("checkpoint state {}: not a regular file", path);
  if (static_cast<std::uint64_t>(status.st_size) > kMaxStateBytes) {
    return invalid_error("checkpoint state {}: {} bytes, at most {} are allowed", path, status.st_size, kMaxStateBytes);
  }
  Bytes text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(file.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, fmt::format("read checkpoint state {}", path));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return std::optional(std::move(text));
}

Status write_all(int file, ByteView text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(errno, fmt::format("write checkpoint state {}", path));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// Sorted by the step seen; of several with one step, the last written stays.
void sort_records(std::vector<format::CheckpointRecord>* records) {
  std::map<std::int64_t, format::CheckpointRecord> by_step;
  for (format::CheckpointRecord& record : *records) by_step.insert_or_assign(record.last_seen, std::move(record));
  while (by_step.size() > kMaxRecords) by_step.erase(by_step.begin());
  records->clear();
  for (auto& [step, record] : by_step) records->push_back(std::move(record));
}

}  // namespace

CheckpointWatch::CheckpointWatch(std::string directory) : directory_(std::move(directory)), files_(directory_) {}

Result<std::optional<format::CheckpointRecord>> CheckpointWatch::load(std::vector<std::string>* warnings) {
  using Nothing = std::optional<format::CheckpointRecord>;
  if (auto looked = files_.have_changed(); !looked.ok()) return std::move(looked).error();
  files_.accept();
  const std::string path = fmt::format("{}/{}", directory_, kStateName);
  TORNASOLE_TRY(const std::optional<Bytes> text, read_state(path));
  if (!text) return Nothing();
  bool was_cut = false;
  auto records = format::decode_checkpoint_state(*text, &was_cut);
  if (!records.ok()) {
    warnings->push_back(
        fmt::format("checkpoint state {} is damaged, so counting starts afresh: {}", path, records.error().message));
    return Nothing();
  }
  if (was_cut) {
    warnings->push_back(
        fmt::format("checkpoint state {} is cut short: its first {} records are used", path, records->size()));
  }
  records_ = std::move(*records);
  sort_records(&records_);
  if (records_.empty()) return Nothing();
  const format::CheckpointRecord& newest = records_.back();
  const bool can_count = newest.training_run < std::numeric_limits<std::int64_t>::max();
  training_run_ = can_count ? newest.training_run + 1 : newest.training_run;
  return std::optional(newest);
}

Status CheckpointWatch::note(const Counters& counters) {
  TORNASOLE_TRY(const bool has_changed, files_.have_changed());
  if (!has_changed) return {};
  format::CheckpointRecord record{.training_run = training_run_,
                                  .last_saved = counters.last_saved,
                                  .last_seen = counters.global_step,
                                  .mode_steps = counters.mode_steps};
  record.mode_steps.insert_or_assign(Mode::kGlobal, counters.global_step);
  std::vector<format::CheckpointRecord> records = records_;
  records.push_back(std::move(record));
  sort_records(&records);
  TORNASOLE_CHECK(write_state(records));
  // Only now: after a failure the next step tries again.
  records_ = std::move(records);
  files_.accept();
  return {};
}

// Temporary name and rename: a reader finds the old state or the new one. The name carries the process, so that two
// workers with one checkpoint directory do not write into each other's file; what is left from an earlier process of
// the same number is removed, which touches only the name, wherever a link there may point.
Status CheckpointWatch::write_state(const std::vector<format::CheckpointRecord>& records) const {
  const std::string path = fmt::format("{}/{}", directory_, kStateName);
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int number = open(temporary.c_str(), kFlags, 0600);
  if (number < 0 && errno == EEXIST && unlink(temporary.c_str()) == 0) number = open(temporary.c_str(), kFlags, 0600);
  if (number < 0) return errno_error(errno, fmt::format("create {}", temporary));
  Descriptor file(number);
  Status written = write_all(file.get(), format::encode_checkpoint_state(records), temporary);
  // A spot instance ends as a whole machine does: what is not on the disk is gone.
  if (written.ok() && fsync(file.get()) != 0 && errno != EINVAL) {
    written = errno_error(errno, fmt::format("sync {}", temporary));
  }
  if (::close(file.release()) != 0 && written.ok()) written = errno_error(errno, fmt::format("close {}", temporary));
  if (written.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    written = errno_error(errno, fmt::format("rename {} to {}", temporary, path));
  }
  if (!written.ok()) unlink(temporary.c_str());
  return written;
}

}  // namespace tornasole::capture
