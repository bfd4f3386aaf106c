#pragma once

// Records: the frames of event and TensorBoard files (docs/format.md 2).
//
//   8 bytes length n | 4 bytes masked CRC of those | n bytes payload | 4 bytes trailer

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "tornasole/result.h"

namespace tornasole::format {

inline constexpr std::uint64_t kRecordHeaderBytes = 12;
inline constexpr std::uint64_t kRecordFrameBytes = 16;
inline constexpr std::uint32_t kConstantTrailer = 0x062DC0B3;
// A record must stay below 2 GiB - 64 KiB.
inline constexpr std::uint64_t kMaxRecordBytes = (std::uint64_t{1} << 31) - (std::uint64_t{64} << 10);

std::array<char, kRecordHeaderBytes> encode_record_header(std::uint64_t payload_bytes) noexcept;
std::array<char, 4> encode_trailer(std::uint32_t trailer) noexcept;

struct Record {
  ByteView payload;
  bool is_verified = false;  // the trailer is the true checksum, not the constant
};
// The record at the front of `bytes`, which reaches to the end of what is there. kNotYet if it is cut short, kCorrupt
// if the length checksum or the trailer is wrong. `offset` is for messages.
Result<Record> decode_record(ByteView bytes, std::uint64_t offset);

}  // namespace tornasole::format
