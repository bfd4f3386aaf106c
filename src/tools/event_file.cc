#include "tools/event_file.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/utf8.h"

namespace tornasole::tools {
namespace {

// Small values are many: one read brings a good number of them.
constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20;

std::string short_name(std::string_view name) { return printable(name.substr(0, 200)); }

}  // namespace

Result<EventFile> EventFile::open(store::Store& store, std::string path) {
  TORNASOLE_TRY(const store::FileStatus status, store.status(path));
  if (status.is_directory) return corrupt_error("{} is a directory", path);
  return EventFile(store, std::move(path), status.size_bytes);
}

Result<ByteView> EventFile::bytes(std::uint64_t offset, std::uint64_t length) {
  const bool is_inside = offset >= window_offset_ && offset + length <= window_offset_ + window_.size();
  if (!is_inside) {
    window_.clear();
    window_.shrink_to_fit();  // a large window is not kept beside the next one
    TORNASOLE_TRY(window_, store_->read(path_, offset, std::max(length, kWindowBytes)));
    window_offset_ = offset;
    read_bytes_ += window_.size();
  }
  const ByteView all = window_;
  const ByteView found = all.substr(offset - window_offset_, length);
  if (found.size() < length) {
    return corrupt_error("{} bytes at {} end after {}: the file became shorter", length, offset, found.size());
  }
  return found;
}

Result<format::Record> EventFile::read_record(std::uint64_t offset) {
  if (offset >= size_bytes_) {
    return make_error(ErrorCode::kEnded, ErrorKind::kBase, "the file ends at {}", size_bytes_);
  }
  const std::uint64_t rest = size_bytes_ - offset;
  TORNASOLE_TRY(ByteView head, bytes(offset, std::min<std::uint64_t>(rest, format::kRecordHeaderBytes)));
  auto record = format::decode_record(head, offset);
  if (!record.ok() && record.error().code == ErrorCode::kNotYet && head.size() == format::kRecordHeaderBytes) {
    // The header is sound, so its length may be believed as far as the file reaches.
    const std::uint64_t length = load_u64(head.data()) + format::kRecordFrameBytes;
    if (length > rest) {
      return not_yet_error("record at {} is cut: {} bytes are there, it has {}", offset, rest, length);
    }
    TORNASOLE_TRY(head, bytes(offset, length));
    record = format::decode_record(head, offset);
  }
  return record;
}

Result<std::uint64_t> EventFile::frame_at(std::uint64_t offset) {
  TORNASOLE_TRY(const format::Record record, read_record(offset));
  return record.payload.size() + format::kRecordFrameBytes;
}

Result<EventFile::Value> EventFile::record_at(std::uint64_t offset) {
  TORNASOLE_TRY(const format::Record record, read_record(offset));
  return decode(record);
}

Result<EventFile::Value> EventFile::decode(const format::Record& record) const {
  Value value;
  value.length = record.payload.size() + format::kRecordFrameBytes;
  value.crc = masked_crc32c(record.payload);
  value.is_verified = record.is_verified;
  TORNASOLE_TRY(value.event, format::decode_event(record.payload));
  return value;
}

Result<EventFile::Value> EventFile::value(const format::IndexEntry& entry) {
  const auto damaged = [&](std::string_view what) { return corrupt_error("'{}': {}", short_name(entry.name), what); };
  if (entry.length < format::kRecordFrameBytes) {
    return damaged(
        fmt::format("the index gives it {} bytes; a record has at least {}", entry.length, format::kRecordFrameBytes));
  }
  if (entry.offset > size_bytes_ || entry.length > size_bytes_ - entry.offset) {
    return damaged(
        fmt::format("it should lie at {} with {} bytes, but the file has {}", entry.offset, entry.length, size_bytes_));
  }
  auto record = read_record(entry.offset);
  if (!record.ok()) {
    if (record.error().code == ErrorCode::kIo) return std::move(record).error();
    return damaged(record.error().message);
  }
  if (const auto length = record->payload.size() + format::kRecordFrameBytes; length != entry.length) {
    return damaged(fmt::format("its record has {} bytes, the index says {}", length, entry.length));
  }
  // Before the event is taken apart: a wrong checksum says more than whatever the wrong byte made of it.
  if (entry.crc) {
    if (const std::uint32_t crc = masked_crc32c(record->payload); crc != *entry.crc) {
      return damaged(fmt::format("the checksum of its record is {:#010x}, the index says {:#010x}", crc, *entry.crc));
    }
    record->is_verified = true;
  }
  auto value = decode(*record);
  if (!value.ok()) return damaged(value.error().message);
  if (!value->event.has_tensor) return damaged("its record holds no tensor");
  if (value->event.name != entry.name) {
    return damaged(fmt::format("its record holds '{}'", short_name(value->event.name)));
  }
  return value;
}

}  // namespace tornasole::tools
