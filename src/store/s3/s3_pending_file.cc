#include "store/s3/s3_pending_file.h"

#include <algorithm>

#include "base/errors.h"

namespace tornasole::store::s3 {

Status S3PendingFile::check_open(const char* action) const {
  switch (state_) {
    case State::kOpen: return {};
    case State::kBroken: return io_error("{} {}: a part of it could not be sent", action, client_->describe(key_));
    case State::kClosed: return invalid_error("{} {}: the file is closed already", action, client_->describe(key_));
    case State::kDone: break;
  }
  return invalid_error("{} {}: the file was published or abandoned already", action, client_->describe(key_));
}

Status S3PendingFile::send_part(ByteView bytes) {
  if (!upload_) {
    TORNASOLE_TRY(upload_, MultipartUpload::start(*client_, key_));
  }
  return upload_->add_part(*client_, bytes);
}

Status S3PendingFile::append(std::span<const ByteView> pieces) {
  TORNASOLE_CHECK(check_open("append to"));
  for (const ByteView piece : pieces) {
    buffer_.append(piece);
    size_bytes_ += piece.size();
  }
  if (!upload_ && buffer_.size() <= kMultipartBytes) return {};
  // The last bytes stay here: the last part is sent at publish, and may be of any size.
  std::size_t sent = 0;
  while (buffer_.size() - sent > kPartBytes) {
    if (Status part = send_part(ByteView(buffer_).substr(sent, kPartBytes)); !part.ok()) {
      state_ = State::kBroken;
      return part;
    }
    sent += kPartBytes;
  }
  buffer_.erase(0, sent);
  return {};
}

Status S3PendingFile::sync() { return check_open("sync"); }

Status S3PendingFile::publish(bool replace) {
  // A publish that failed may be tried again.
  if (state_ != State::kClosed) TORNASOLE_CHECK(check_open("publish"));
  state_ = State::kClosed;
  const IfThere if_there = replace ? IfThere::kReplace : IfThere::kAcceptIfSame;
  if (!upload_) {
    TORNASOLE_TRY(version_, put_object(*client_, key_, buffer_, if_there));
  } else {
    if (!buffer_.empty()) TORNASOLE_CHECK(send_part(buffer_));
    buffer_.clear();
    TORNASOLE_CHECK(upload_->complete(*client_, if_there));
    upload_.reset();
  }
  state_ = State::kDone;
  Bytes().swap(buffer_);
  return {};
}

Result<Bytes> S3PendingFile::read_back(std::uint64_t offset, std::uint64_t length) {
  if (state_ == State::kDone) TORNASOLE_CHECK(check_open("read back"));
  if (upload_) return unsupported_error("read back {}: parts of it were sent already", client_->describe(key_));
  if (offset >= buffer_.size()) return Bytes();
  return buffer_.substr(offset, length);
}

void S3PendingFile::abandon() noexcept {
  if (state_ == State::kDone) return;
  state_ = State::kDone;
  Bytes().swap(buffer_);
  if (upload_) upload_->abort(*client_);
  upload_.reset();
}

}  // namespace tornasole::store::s3
