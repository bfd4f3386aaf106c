#include "format/record.h"

#include <cstring>

#include "base/crc32c.h"
#include "base/errors.h"

namespace tornasole::format {
namespace {

// The reference writes protobuf messages of up to 2 GiB; what it wrote must be readable, even if we stop a little
// before.
constexpr std::uint64_t kMaxReadablePayloadBytes = std::uint64_t{1} << 31;

}  // namespace

std::array<char, kRecordHeaderBytes> encode_record_header(std::uint64_t payload_bytes) noexcept {
  std::array<char, kRecordHeaderBytes> header{};
  store_u64(header.data(), payload_bytes);
  store_u32(header.data() + 8, masked_crc32c({header.data(), 8}));
  return header;
}

std::array<char, 4> encode_trailer(std::uint32_t trailer) noexcept {
  std::array<char, 4> bytes{};
  store_u32(bytes.data(), trailer);
  return bytes;
}

Result<Record> decode_record(ByteView bytes, std::uint64_t offset) {
  if (bytes.size() < kRecordHeaderBytes) {
    return not_yet_error("record at {} is cut: {} bytes are there, its header has {}", offset, bytes.size(),
                         kRecordHeaderBytes);
  }
  const std::uint64_t length = load_u64(bytes.data());
  const std::uint32_t stored = load_u32(bytes.data() + 8);
  const std::uint32_t expected = masked_crc32c(bytes.substr(0, 8));
  // Checked before the length is used: a damaged length would have us wait for bytes that never come.
  if (stored != expected) {
    return corrupt_error("record at {}: checksum of the length is {:#010x}, but the length {} gives {:#010x}", offset,
                         stored, length, expected);
  }
  if (length > kMaxReadablePayloadBytes) {
    return corrupt_error("record at {} claims {} bytes, more than the limit of {}", offset, length,
                         kMaxReadablePayloadBytes);
  }
  if (bytes.size() - kRecordHeaderBytes < length + 4) {
    return not_yet_error("record at {} is cut: {} bytes are there, it has {}", offset, bytes.size(),
                         length + kRecordFrameBytes);
  }
  Record record{.payload = bytes.substr(kRecordHeaderBytes, length)};
  const std::uint32_t trailer = load_u32(bytes.data() + kRecordHeaderBytes + length);
  if (trailer == kConstantTrailer) return record;
  const std::uint32_t actual = masked_crc32c(record.payload);
  if (trailer != actual) {
    return corrupt_error("record at {}: trailer is {:#010x}, neither the constant {:#010x} nor the checksum {:#010x}",
                         offset, trailer, kConstantTrailer, actual);
  }
  record.is_verified = true;
  return record;
}

}  // namespace tornasole::format
