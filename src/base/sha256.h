#pragma once

// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for naming content and signing requests to object stores.

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace tornasole {

class Sha256 {
 public:
  void update(ByteView bytes) noexcept;
  // 64 hex digits, or the 32 bytes they spell. The object is spent afterwards.
  std::string finish();
  Bytes finish_bytes();

 private:
  void compress(const unsigned char* block) noexcept;

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_ = {};
  std::size_t used_ = 0;  // bytes of block_
  std::uint64_t total_bytes_ = 0;
};

std::string sha256_hex(ByteView bytes);

// 32 bytes.
Bytes hmac_sha256(ByteView key, ByteView message);

// Two lower-case digits a byte.
std::string to_hex(ByteView bytes);

}  // namespace tornasole
