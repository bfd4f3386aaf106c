#include "store/spool/spool_pending_file.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"

namespace tornasole::store {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{16} << 20U;

}  // namespace

Status SpoolPendingFile::check_open(const char* action) const {
  switch (state_) {
    case State::kOpen: return {};
    case State::kBroken: return io_error("{} {}: a part of it could not be kept", action, path_);
    case State::kClosed: return invalid_error("{} {}: the file is closed already", action, path_);
    case State::kDone: break;
  }
  return invalid_error("{} {}: the file was published or abandoned already", action, path_);
}

Status SpoolPendingFile::append_to_disk(ByteView bytes) {
  TORNASOLE_CHECK(spool_->reserve(bytes.size()));
  reserved_bytes_ += bytes.size();
  return on_disk_->append(bytes);
}

Status SpoolPendingFile::spill() {
  if (on_disk_) return {};
  const std::int64_t number = spool_->next_number();
  TORNASOLE_CHECK(spool_->reserve(buffer_.size()));
  reserved_bytes_ += buffer_.size();
  TORNASOLE_TRY(auto file, spool_->journal().create(spool_data_path(number)));
  TORNASOLE_CHECK(file->append(buffer_));
  number_ = number;
  on_disk_ = std::move(file);
  Bytes().swap(buffer_);
  return {};
}

Status SpoolPendingFile::append(std::span<const ByteView> pieces) {
  TORNASOLE_CHECK(check_open("append to"));
  const auto take = [&](ByteView piece) -> Status {
    crc_ = crc32c(piece, crc_);
    size_bytes_ += piece.size();
    if (on_disk_) return append_to_disk(piece);
    buffer_.append(piece);
    return buffer_.size() > kMemoryBytes ? spill() : Status();
  };
  for (const ByteView piece : pieces) {
    if (Status taken = take(piece); !taken.ok()) {
      state_ = State::kBroken;
      return taken;
    }
  }
  return {};
}

Status SpoolPendingFile::sync() {
  TORNASOLE_CHECK(check_open("sync"));
  is_durable_ = true;
  return {};
}

Status SpoolPendingFile::publish(bool replace) {
  // A publish that failed may be tried again.
  if (state_ != State::kClosed) TORNASOLE_CHECK(check_open("publish"));
  state_ = State::kClosed;
  const auto waiting = spool_->waiting(path_);
  if (!replace && waiting && waiting->kind == SpoolAction::Kind::kPublish) {
    return invalid_error("publish {}: there is something at that name already", path_);
  }
  // Once it is on the disk it is sent from there, by the thread that has the time.
  const bool is_on_disk = on_disk_ != nullptr || is_data_published_;
  if (!is_on_disk && !spool_->must_wait()) {
    Status sent = send(replace);
    if (sent.ok()) {
      state_ = State::kDone;
      Bytes().swap(buffer_);
      return {};
    }
    if (sent.error().code != ErrorCode::kIo) return sent;
    spool_->note_away(sent.error());
  }
  TORNASOLE_CHECK(keep(replace));
  state_ = State::kDone;
  return {};
}

Status SpoolPendingFile::send(bool replace) {
  TORNASOLE_TRY(const auto file, spool_->target().create(path_));
  TORNASOLE_CHECK(file->append(buffer_));
  if (is_durable_) TORNASOLE_CHECK(file->sync());
  TORNASOLE_CHECK(file->publish(replace));
  version_ = file->version();
  return {};
}

Status SpoolPendingFile::keep(bool replace) {
  if (!is_data_published_) {
    TORNASOLE_CHECK(spill());
    if (is_durable_) TORNASOLE_CHECK(on_disk_->sync());
    TORNASOLE_CHECK(on_disk_->publish(/*replace=*/false));
    on_disk_.reset();
    is_data_published_ = true;
  }
  TORNASOLE_CHECK(spool_->add(
      {.number = number_, .path = path_, .replace = replace, .size_bytes = size_bytes_, .crc = crc_}, is_durable_));
  reserved_bytes_ = 0;  // now the action's
  return {};
}

Result<Bytes> SpoolPendingFile::read_back(std::uint64_t offset, std::uint64_t length) {
  if (state_ == State::kDone) TORNASOLE_CHECK(check_open("read back"));
  if (on_disk_) return on_disk_->read_back(offset, length);
  if (is_data_published_) return spool_->journal().read(spool_data_path(number_), offset, length);
  if (offset >= buffer_.size()) return Bytes();
  return buffer_.substr(offset, length);
}

void SpoolPendingFile::abandon() noexcept {
  if (state_ == State::kDone) return;
  state_ = State::kDone;
  Bytes().swap(buffer_);
  try {
    if (on_disk_) on_disk_->abandon();
    on_disk_.reset();
    if (is_data_published_) {
      const Status removed = spool_->journal().remove(spool_data_path(number_));
      static_cast<void>(removed);  // without an action it is nobody's
    }
    spool_->release(reserved_bytes_);
    reserved_bytes_ = 0;
  } catch (...) {
    static_cast<void>(error_from_current_exception());
  }
}

}  // namespace tornasole::store
