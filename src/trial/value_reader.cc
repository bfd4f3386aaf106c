#include "trial/value_reader.h"

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/utf8.h"
#include "format/event.h"
#include "format/record.h"

namespace tornasole::trial {
namespace {

// Up to here a record is read at once; beyond, its head is checked before memory is taken for the rest.
constexpr std::uint32_t kReadUnseenBytes = 1U << 20U;

Error damaged(std::string_view path, std::uint64_t offset, std::string_view what) {
  return corrupt_error("{} at offset {}: {}", printable(path.substr(0, 300)), offset, what);
}

}  // namespace

Status check_record(store::Store& store, const std::string& path, const Location& location) {
  const std::uint64_t offset = location.offset();
  const std::uint64_t length = location.length_bytes;
  if (length < format::kRecordFrameBytes || length > store::kMaxReadBytes) {
    return damaged(path, offset,
                   fmt::format("the index says a record of {} bytes; {} to {} are possible", length,
                               format::kRecordFrameBytes, store::kMaxReadBytes));
  }
  // A remote store gives what there is, however much is asked for; a look at the head would cost a request.
  if (length > kReadUnseenBytes && !store.capabilities().is_remote) {
    TORNASOLE_TRY(const Bytes head, store.read(path, offset, format::kRecordHeaderBytes));
    // kNotYet: the head is sound, and what follows it is not here yet.
    const auto record = format::decode_record(head, offset);
    const bool is_head_sound = !record.ok() && record.error().code == ErrorCode::kNotYet &&
                               head.size() == format::kRecordHeaderBytes &&
                               load_u64(head.data()) + format::kRecordFrameBytes == length;
    if (!is_head_sound) {
      return damaged(path, offset, fmt::format("there is no record of {} bytes here", length));
    }
  }
  return {};
}

Result<Bytes> read_record(store::Store& store, const std::string& path, const Location& location) {
  TORNASOLE_CHECK(check_record(store, path, location));
  return store.read(path, location.offset(), location.length_bytes);
}

Result<format::Event> decode_event(ByteView bytes, const Location& location, std::string_view path) {
  const auto fail = [&](std::string_view what) { return damaged(path, location.offset(), what); };
  const auto record = format::decode_record(bytes, location.offset());
  if (!record.ok()) return fail(record.error().message);
  if (record->payload.size() + format::kRecordFrameBytes != location.length_bytes) {
    return fail(fmt::format("a record of {} bytes where the index says {}",
                            record->payload.size() + format::kRecordFrameBytes, location.length_bytes));
  }
  if (location.has_crc() && masked_crc32c(record->payload) != location.crc) {
    return fail("the checksum of the value is wrong");
  }
  auto event = format::decode_event(record->payload);
  if (!event.ok()) return fail(event.error().message);
  if (!event->has_tensor) return fail("the record holds no tensor");
  return event;
}

Result<Tensor> decode_value(ByteView bytes, const Location& location, std::string_view path) {
  TORNASOLE_TRY(const format::Event event, decode_event(bytes, location, path));
  return event.to_tensor();
}

}  // namespace tornasole::trial
