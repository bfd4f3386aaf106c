#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

namespace tornasole {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c(ByteView bytes, std::uint32_t crc) noexcept {
  // The library takes an int length and leaves both inversions to the caller.
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::uint32_t state = ~crc;
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), kPiece);
    // It does not write through the pointer, it only lacks the const.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(length), state);
    bytes.remove_prefix(length);
  }
  return ~state;
}

std::uint32_t crc32c_portable(ByteView bytes, std::uint32_t crc) noexcept {
  std::uint32_t state = ~crc;
  for (const char byte : bytes) state = (state >> 8) ^ kTable[(state ^ static_cast<unsigned char>(byte)) & 0xFFU];
  return ~state;
}

}  // namespace tornasole
