#include "format/record.h"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32c.h"

namespace tornasole::format {
namespace {

Bytes framed(ByteView payload, std::uint32_t trailer = kConstantTrailer) {
  const auto header = encode_record_header(payload.size());
  const auto end = encode_trailer(trailer);
  Bytes record(header.data(), header.size());
  record.append(payload);
  return record.append(end.data(), end.size());
}

TEST(Record, HasTheDocumentedBytes) {
  EXPECT_EQ(framed("abc"), Bytes("\x03\0\0\0\0\0\0\0", 8) + framed("abc").substr(8, 4) + "abc\xB3\xC0\x2D\x06");
  const auto header = encode_record_header(72);
  EXPECT_EQ(Bytes(header.data(), header.size()), Bytes("\x48\0\0\0\0\0\0\0\xFE\x92\x48\x9D", 12));
  EXPECT_EQ(masked_crc32c("0x12345678"), kConstantTrailer);
}

TEST(Record, ReadsOneRecordAtTheFront) {
  const Bytes two = framed("first") + framed("second", masked_crc32c("second"));
  const auto first = decode_record(two, 0);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->payload, "first");
  EXPECT_FALSE(first->is_verified) << "the constant proves nothing about the payload";
  const auto second = decode_record(ByteView(two).substr(21), 21);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->payload, "second");
  EXPECT_TRUE(second->is_verified);
}

TEST(Record, AnEmptyPayloadIsARecord) { EXPECT_TRUE(decode_record(framed(""), 0).ok()); }

TEST(Record, CutAtAnyByteIsNotYet) {
  const Bytes whole = framed("some payload");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto record = decode_record(ByteView(whole).substr(0, cut), 7);
    ASSERT_FALSE(record.ok()) << cut;
    EXPECT_EQ(record.error().code, ErrorCode::kNotYet) << cut;
    EXPECT_NE(record.error().message.find("record at 7"), std::string::npos) << record.error().message;
  }
  EXPECT_EQ(decode_record(whole, 7)->payload, "some payload");
}

TEST(Record, AnyChangeOutsideThePayloadIsDamage) {
  const Bytes whole = framed("some payload");
  std::mt19937 random(1);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= kRecordHeaderBytes && at < whole.size() - 4) continue;
    Bytes changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1U << (random() % 8)));
    const auto record = decode_record(changed, 1234);
    ASSERT_FALSE(record.ok()) << at;
    EXPECT_EQ(record.error().code, ErrorCode::kCorrupt) << at;
    EXPECT_NE(record.error().message.find("record at 1234"), std::string::npos) << record.error().message;
  }
}

TEST(Record, AChangedPayloadUnderATrueTrailerIsDamage) {
  Bytes record = framed("payload", masked_crc32c("payload"));
  record[14] = 'x';
  EXPECT_EQ(decode_record(record, 0).error().code, ErrorCode::kCorrupt);
}

TEST(Record, AHugeLengthIsDamageEvenWithARightChecksum) {
  for (const std::uint64_t length :
       {(std::uint64_t{1} << 31) + 1, std::uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 15}) {
    const auto header = encode_record_header(length);
    const auto record = decode_record(Bytes(header.data(), header.size()) + "abcdefgh", 0);
    ASSERT_FALSE(record.ok());
    EXPECT_EQ(record.error().code, ErrorCode::kCorrupt) << length;
  }
}

}  // namespace
}  // namespace tornasole::format
