#include "tensorboard/summary_file.h"

#include <algorithm>

#include "base/errors.h"
#include "format/record.h"

namespace tornasole::tensorboard {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

Error in_file(const std::string& path, const Error& error) {
  return make_error(error.code, error.kind, "{}: {}", path, error.message);
}

}  // namespace

Result<std::uint64_t> read_events(ByteView bytes, std::uint64_t offset, const OnEvent& on_event) {
  std::uint64_t done = 0;
  while (done < bytes.size()) {
    const auto record = format::decode_record(bytes.substr(done), offset + done);
    if (!record.ok()) {
      if (record.error().code == ErrorCode::kNotYet) break;
      return record.error();
    }
    auto event = decode_summary_event(record->payload);
    if (!event.ok()) return corrupt_error("record at {}: {}", offset + done, event.error().message);
    TORNASOLE_CHECK(on_event(std::move(*event)));
    done += record->payload.size() + format::kRecordFrameBytes;
  }
  return done;
}

Result<std::uint64_t> read_file(store::Store& store, const std::string& path, const OnEvent& on_event) {
  std::uint64_t offset = 0;
  std::uint64_t length = kPieceBytes;
  while (true) {
    TORNASOLE_TRY(const Bytes bytes, store.read(path, offset, length));
    const auto done = read_events(bytes, offset, on_event);
    if (!done.ok()) return in_file(path, done.error());
    offset += *done;
    if (bytes.size() < length) return bytes.size() - *done;
    // A record longer than the piece: its head is sound, or it would have been refused.
    length = kPieceBytes;
    if (*done == 0) length = std::max(kPieceBytes, load_u64(bytes.data()) + format::kRecordFrameBytes);
  }
}

}  // namespace tornasole::tensorboard
