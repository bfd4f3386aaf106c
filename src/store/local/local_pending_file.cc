#include "store/local/local_pending_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "store/local/local_errors.h"

namespace tornasole::store {
namespace {

// Smaller files cost no more in the page cache.
constexpr std::uint64_t kLeastDirectBytes = std::uint64_t{512} << 10;

}  // namespace

LocalPendingFile::LocalPendingFile(Names names, const SystemCalls& calls, std::shared_ptr<DirectMemory> direct) noexcept
    : names_(std::move(names)),
      calls_(calls),
      owner_(getpid()),
      reserve_(calls.fallocate),
      direct_(std::move(direct)) {}

void LocalPendingFile::adopt(FileHandle directory, FileHandle file) noexcept {
  directory_ = std::move(directory);
  file_ = std::move(file);
}

Status LocalPendingFile::check_usable(const char* call) const {
  if (!directory_.is_open()) {
    return invalid_error("{} {}: the file was published or abandoned already", call, names_.description);
  }
  if (is_damaged_) return io_error("{} {}: an earlier write of this file failed", call, names_.description);
  return {};
}

Status LocalPendingFile::check_open(const char* call) const {
  TORNASOLE_CHECK(check_usable(call));
  if (!file_.is_open()) return invalid_error("{} {}: the file is closed already", call, names_.description);
  return {};
}

Status LocalPendingFile::mark_damaged(const char* call, int error) {
  is_damaged_ = true;
  return write_error(error, call, names_.description);
}

Status LocalPendingFile::append(std::span<const ByteView> pieces) {
  TORNASOLE_CHECK(check_open("append to"));
  std::uint64_t bytes = 0;
  for (const ByteView piece : pieces) bytes += piece.size();
  reserve_.cover(file_.get(), size_bytes_, bytes);
  int error = 0;
  if (is_direct(bytes)) {
    error = direct_.gather(pieces);
    size_bytes_ += bytes;
  } else {
    error = write_out();
    if (error == 0) error = write_pieces(file_.get(), pieces, &size_bytes_);
  }
  if (error != 0) return mark_damaged("append to", error);
  return {};
}

bool LocalPendingFile::is_direct(std::uint64_t bytes) noexcept {
  if (!may_keep_ || is_direct_refused_) return false;
  if (direct_.has_begun()) return true;
  if (size_bytes_ + bytes < kLeastDirectBytes) return false;
  is_direct_refused_ = !direct_.begin(file_.get(), size_bytes_);
  return !is_direct_refused_;
}

// What is kept leaves, and so does the memory it was in.
int LocalPendingFile::write_out() noexcept {
  if (!direct_.has_begun()) return 0;
  const int error = direct_.write_out();
  direct_.stop();
  return error;
}

Status LocalPendingFile::flush() {
  TORNASOLE_CHECK(check_open("append to"));
  const int error = write_out();
  if (error != 0) return mark_damaged("append to", error);
  return {};
}

Status LocalPendingFile::sync() {
  TORNASOLE_CHECK(check_open("sync"));
  TORNASOLE_CHECK(flush());
  if (uninterrupted([this] { return fsync(file_.get()); }) == 0) return {};
  const int error = errno;
  if (is_sync_unsupported(error)) return sync_unsupported_error(names_.description);
  // The kernel may have dropped the pages it could not write: a second sync would succeed without them.
  return mark_damaged("sync", error);
}

Status LocalPendingFile::publish(bool replace) {
  TORNASOLE_CHECK(check_usable("publish"));
  // The errors of close count, but what was written must not go with the descriptor before it has its name.
  FileHandle kept;
  if (file_.is_open()) {
    TORNASOLE_CHECK(flush());
    reserve_.trim(file_.get(), size_bytes_);
    kept = FileHandle(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  }
  const int close_error = file_.close();
  if (close_error != 0) return mark_damaged("close", close_error);

  const Move move = {directory_.get(), names_.temporary.c_str(), directory_.get(), names_.name.c_str()};
  int error = 0;
  if (!replace) {
    error = rename_to_free_name(move, calls_);
  } else if (uninterrupted([&] { return renameat(move.from_directory, move.from, move.to_directory, move.to); }) != 0) {
    error = errno;
  }
  if (error == EEXIST && !replace) {
    return invalid_error("publish {}: there is something at that name already, and it is not replaced",
                         names_.description);
  }
  if (error == ENOENT) {
    file_ = std::move(kept);
    return io_error("publish {}: its temporary file {} was removed meanwhile", names_.description, names_.temporary);
  }
  if (error != 0) return write_error(error, "publish", names_.description);
  directory_.close();
  return {};
}

Result<Bytes> LocalPendingFile::read_back(std::uint64_t offset, std::uint64_t length) {
  TORNASOLE_CHECK(check_open("read back"));
  TORNASOLE_CHECK(flush());
  Bytes content(std::min(length, size_bytes_ - std::min(offset, size_bytes_)), '\0');
  std::size_t count = 0;
  const int error = read_at(file_.get(), offset, content, &count);
  if (error != 0) return io_error("read back {}: {}", names_.description, std::generic_category().message(error));
  content.resize(count);
  return content;
}

void LocalPendingFile::abandon() noexcept {
  direct_.stop();
  file_.close();
  // A forked child has a copy of this object, but the file belongs to its parent.
  if (directory_.is_open() && owner_ == getpid()) {
    uninterrupted([this] { return unlinkat(directory_.get(), names_.temporary.c_str(), 0); });
  }
  directory_.close();
}

}  // namespace tornasole::store
