#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tornasole {
namespace {

TEST(Crc32c, KnownValues) {
  struct Case {
    std::string bytes;
    std::uint32_t crc;
    std::uint32_t masked;
  };
  const Case cases[] = {
      {"", 0x00000000, 0xA282EAD8},
      {"123456789", 0xE3069283, 0xC78AB0E5},
      {std::string(8, '\0'), 0x8C28B28A, 0x07980329},
      {"0x12345678", 0x6AEDB1D5, 0x062DC0B3},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(crc32c(c.bytes), c.crc) << c.bytes;
    EXPECT_EQ(crc32c_portable(c.bytes), c.crc) << c.bytes;
    EXPECT_EQ(masked_crc32c(c.bytes), c.masked) << c.bytes;
  }
}

TEST(Crc32c, FastAgreesWithPortableAtEverySizeAlignmentAndSplit) {
  std::mt19937 random(1);
  std::string bytes(4096, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (std::size_t size = 0; size < 600; ++size) {
    const std::string_view piece(bytes.data() + random() % 64, size);
    const std::uint32_t whole = crc32c_portable(piece);
    EXPECT_EQ(crc32c(piece), whole);
    const std::size_t cut = size == 0 ? 0 : random() % size;
    EXPECT_EQ(crc32c(piece.substr(cut), crc32c(piece.substr(0, cut))), whole);
  }
}

}  // namespace
}  // namespace tornasole
