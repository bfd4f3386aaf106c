#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace tornasole {

// CRC-32C (Castagnoli). `crc` continues the checksum of the bytes before.
std::uint32_t crc32c(ByteView bytes, std::uint32_t crc = 0) noexcept;
// The same, one byte at a time: the oracle of the fast one.
std::uint32_t crc32c_portable(ByteView bytes, std::uint32_t crc = 0) noexcept;

// The mask of docs/format.md 2: a stored checksum must not look like a checksum of what it is stored in.
constexpr std::uint32_t mask_crc(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }
inline std::uint32_t masked_crc32c(ByteView bytes) noexcept { return mask_crc(crc32c(bytes)); }

}  // namespace tornasole
