#pragma once

// Bytes are kept in std::string and looked at through std::string_view, as the wire-format library does.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tornasole {

using Bytes = std::string;
using ByteView = std::string_view;

static_assert(std::endian::native == std::endian::little, "the format is little-endian and so is every target");

inline std::uint32_t load_u32(const char* from) noexcept {
  std::uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline std::uint64_t load_u64(const char* from) noexcept {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store_u32(char* to, std::uint32_t value) noexcept { std::memcpy(to, &value, sizeof value); }
inline void store_u64(char* to, std::uint64_t value) noexcept { std::memcpy(to, &value, sizeof value); }

}  // namespace tornasole
