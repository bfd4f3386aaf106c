#include "format/event.h"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32c.h"
#include "format/event_limits.h"
#include "format/record.h"

namespace tornasole::format {
namespace {

constexpr double kTime = 1700000000.5;

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  int high = -1;
  for (const char c : hex) {
    if (c == ' ' || c == '\n') continue;
    const int digit = c <= '9' ? c - '0' : c - 'A' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high * 16 + digit));
      high = -1;
    }
  }
  return bytes;
}

Bytes payload(const Result<EncodedEvent>& event, ByteView content) {
  EXPECT_TRUE(event.ok()) << event.error().message;
  EXPECT_EQ(event->content_bytes, content.size());
  return event->before + Bytes(content) + event->after;
}

Bytes number_payload(std::string_view name, DType dtype, const Shape& shape, ByteView content) {
  return payload(encode_event({.name = name, .wall_time = kTime}, dtype, shape, content.size()), content);
}

TEST(Event, IsTheDocumentedExampleToTheByte) {
  const Bytes content = from_hex("07 00 00 00 00 00 00 00");
  const EventHeader header{.name = "t", .global_step = 7, .mode = Mode::kTrain, .mode_step = 1, .wall_time = kTime};
  const Bytes body = payload(encode_event(header, DType::kInt64, {1}, 8), content);
  EXPECT_EQ(body, from_hex("09 00 00 20 40 FC 54 D9 41 10 07 2A 3B 0A 39 0A 01 74 42 17 08 09 12 09 12 07 08 01 12 03"
                           "74 5F 31 22 08 07 00 00 00 00 00 00 00 4A 1B 0A 0E 0A 09 6D 6F 64 65 5F 73 74 65 70"
                           "12 01 31 0A 09 0A 04 6D 6F 64 65 12 01 31"));
  EXPECT_EQ(event_record_bytes(header, DType::kInt64, {1}, 8), 88U);
}

TEST(Event, TensorsOfEveryKindHaveTheDocumentedBytes) {
  const struct {
    const char* what;
    Bytes payload;
    const char* tensor;
  } cases[] = {
      {"a 0-d tensor has an empty shape",
       number_payload("any", DType::kFloat64, {}, from_hex("00 00 00 00 00 00 0C 40")),
       "42 0E 08 02 12 00 22 08 00 00 00 00 00 00 0C 40"},
      {"bool is one byte", number_payload("b", DType::kBool, {2}, from_hex("01 00")),
       "42 11 08 0A 12 09 12 07 08 02 12 03 62 5F 32 22 02 01 00"},
      {"float16 has its own code", number_payload("h", DType::kFloat16, {1}, from_hex("00 3E")),
       "42 11 08 13 12 09 12 07 08 01 12 03 68 5F 31 22 02 00 3E"},
      {"no elements, no content, and an extent of 0 carries only its name",
       number_payload("e", DType::kFloat32, {0, 3}, ""),
       "42 14 08 01 12 10 12 05 12 03 65 5F 30 12 07 08 03 12 03 65 5F 33"},
      {"texts have no type code",
       payload(encode_string_event({.name = "str", .wall_time = kTime}, {1}, std::array<std::string_view, 1>{"hello"}),
               ""),
       "42 14 12 0B 12 09 08 01 12 05 73 74 72 5F 31 42 05 68 65 6C 6C 6F"},
  };
  for (const auto& c : cases) EXPECT_NE(c.payload.find(from_hex(c.tensor)), Bytes::npos) << c.what;
}

TEST(Event, RefusesWhatCannotBeWritten) {
  const EventHeader header{.name = "x"};
  const std::array<std::string_view, 2> texts = {"a", "b"};
  const struct {
    const char* what;
    Result<EncodedEvent> event;
    ErrorCode code;
  } cases[] = {
      {"texts of two dimensions", encode_string_event(header, {1, 2}, texts), ErrorCode::kInvalid},
      {"texts of no dimension", encode_string_event(header, {}, std::span(texts).first(1)), ErrorCode::kInvalid},
      {"a shape that counts other texts", encode_string_event(header, {3}, texts), ErrorCode::kInvalid},
      {"strings as numbers", encode_event(header, DType::kString, {1}, 1), ErrorCode::kInvalid},
      {"a negative extent", encode_event(header, DType::kUint8, {-1}, 1), ErrorCode::kInvalid},
      {"content of another size", encode_event(header, DType::kFloat32, {2}, 7), ErrorCode::kInvalid},
      {"an overflowing shape", encode_event(header, DType::kUint8, {INT64_MAX, 4}, 4), ErrorCode::kInvalid},
      {"too many dimensions", encode_event(header, DType::kUint8, Shape(std::vector<std::int64_t>(kMaxRank + 1, 1)), 1),
       ErrorCode::kInvalid},
      {"a record of the limit", encode_event(header, DType::kUint8, {std::int64_t{kMaxRecordBytes}}, kMaxRecordBytes),
       ErrorCode::kUnsupported},
  };
  for (const auto& c : cases) {
    ASSERT_FALSE(c.event.ok()) << c.what;
    EXPECT_EQ(c.event.error().code, c.code) << c.what << ": " << c.event.error().message;
    EXPECT_NE(c.event.error().message.find("\"x\""), std::string::npos) << c.event.error().message;
  }
}

TEST(Event, TheLargestRecordStaysBelowTheLimit) {
  const EventHeader header{.name = "x"};
  const std::uint64_t frame =
      event_record_bytes(header, DType::kUint8, {kMaxRecordBytes / 2}, kMaxRecordBytes / 2) - kMaxRecordBytes / 2;
  for (const int beyond : {-1, 0}) {
    const std::uint64_t content = kMaxRecordBytes - frame + static_cast<std::uint64_t>(beyond);
    const auto event = encode_event(header, DType::kUint8, {static_cast<std::int64_t>(content)}, content);
    EXPECT_EQ(event.ok(), beyond < 0);
  }
}

std::string random_name(std::mt19937& random) {
  const std::string_view pieces[] = {"fc", "/", ".", ":0", "ä", "\xF0\x9F\x98\x80", " ", "\"", "\\", "_", "\n", "1"};
  std::string name;
  for (std::size_t n = random() % 40; n > 0; --n) name += pieces[random() % std::size(pieces)];
  return name;
}

EventHeader random_header(std::mt19937& random, const std::string& name) {
  return {.name = name,
          .global_step = static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random()) << (random() % 31),
          .mode = kAllModes[random() % 4],
          .mode_step = static_cast<std::int64_t>(random() % 100000),
          .wall_time = random() % 5 == 0 ? 0.0 : kTime + static_cast<double>(random())};
}

void expect_header(const Event& event, const EventHeader& header) {
  EXPECT_EQ(event.name, header.name);
  EXPECT_EQ(event.global_step, header.global_step);
  EXPECT_EQ(event.mode, header.mode);
  EXPECT_EQ(event.mode_step, header.mode_step);
  EXPECT_EQ(event.wall_time, header.wall_time);
  EXPECT_TRUE(event.has_tensor);
}

TEST(Event, DecodesWhatItEncoded) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::string name = random_name(random);
    const EventHeader header = random_header(random, name);
    std::vector<std::int64_t> dims;
    for (std::size_t rank = random() % 11; rank > 0; --rank)
      dims.push_back(random() % 8 == 0 ? random() % 3 : 1 + random() % 2);
    const Shape shape{std::span<const std::int64_t>(dims)};
    const DType dtype = kNumericDTypes[random() % kNumericDTypes.size()];
    Bytes content(static_cast<std::size_t>(shape.element_count()) * dtype_size(dtype), '\0');
    for (char& c : content) c = static_cast<char>(random());

    const Bytes bytes = payload(encode_event(header, dtype, shape, content.size()), content);
    EXPECT_EQ(bytes.size() + kRecordFrameBytes, event_record_bytes(header, dtype, shape, content.size()));
    const auto event = decode_event(bytes);
    ASSERT_TRUE(event.ok()) << event.error().message;
    expect_header(*event, header);
    EXPECT_EQ(event->to_tensor(), Tensor(dtype, shape, content));
  }
}

TEST(Event, DecodesTheTextsItEncoded) {
  std::mt19937 random(8);
  for (int round = 0; round < 500; ++round) {
    const std::string name = random_name(random);
    const EventHeader header = random_header(random, name);
    std::vector<std::string> texts(random() % 10);
    for (std::string& text : texts) text = random_name(random);
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const Shape shape{static_cast<std::int64_t>(texts.size())};
    const Bytes bytes = payload(encode_string_event(header, shape, views), "");
    const auto event = decode_event(bytes);
    ASSERT_TRUE(event.ok()) << event.error().message;
    expect_header(*event, header);
    EXPECT_TRUE(event->is_dtype_absent);
    EXPECT_EQ(event->to_tensor(), Tensor(texts, shape));
  }
}

TEST(Event, ReadsEverythingARunMayHold) {
  const struct {
    const char* what;
    const char* tensor;  // the fields of the tensor message
    DType dtype;
    Shape shape;
    std::size_t content_bytes;
  } cases[] = {
      {"float16 under the code of int32, as old releases wrote it",
       "08 03 12 04 12 02 08 02 22 04 00 3E 00 3E",
       DType::kFloat16,
       {2},
       4},
      {"int32 under its own code", "08 03 12 04 12 02 08 01 22 04 00 3E 00 3E", DType::kInt32, {1}, 4},
      {"texts under the code of strings", "08 07 12 04 12 02 08 01 42 01 61", DType::kString, {1}, 0},
      {"no type, no texts, no content: no texts", "12 04 12 02 12 00", DType::kString, {0}, 0},
      {"fields in another order, unknown ones among them",
       "7A 01 00 22 01 05 12 04 12 02 08 01 08 04 98 01 05",
       DType::kUint8,
       {1},
       1},
  };
  for (const auto& c : cases) {
    const Bytes tensor = from_hex(c.tensor);
    const Bytes value = Bytes("\x42") + static_cast<char>(tensor.size()) + tensor;
    const Bytes summary = Bytes("\x0A") + static_cast<char>(value.size()) + value;
    const Bytes bytes = Bytes("\x10\x05\x2A") + static_cast<char>(summary.size()) + summary;
    const auto event = decode_event(bytes);
    ASSERT_TRUE(event.ok()) << c.what << ": " << event.error().message;
    EXPECT_EQ(event->dtype, c.dtype) << c.what;
    EXPECT_EQ(event->shape, c.shape) << c.what;
    EXPECT_EQ(event->content.size(), c.content_bytes) << c.what;
    EXPECT_EQ(event->mode, Mode::kGlobal) << "without plugin data";
    EXPECT_EQ(event->mode_step, 5) << "the global step, without plugin data";
  }
}

TEST(Event, AnEventWithoutTensorSaysSo) {
  const auto version =
      decode_event(from_hex("09 00 00 20 40 FC 54 D9 41 1A 0D 62 72 61 69 6E 2E 45 76 65 6E 74 3A 32"));
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_FALSE(version->has_tensor);
  EXPECT_TRUE(decode_event("").ok());
}

TEST(Event, DamageIsNamed) {
  const struct {
    const char* what;
    const char* hex;
    const char* says;
  } cases[] = {
      {"a length past the end", "2A 7F 00", "not a protobuf message"},
      {"a varint that never ends", "10 FF FF FF FF FF FF FF FF FF FF FF", "not a protobuf message"},
      {"a group", "13 14", "not a protobuf message"},
      {"an unknown type code", "2A 0A 0A 08 42 06 08 63 12 00 22 00", "type code 99"},
      {"a type code beyond a byte", "2A 09 0A 07 42 05 08 81 02 12 00", "type code 257"},
      {"content that does not fit", "2A 0B 0A 09 42 07 08 01 12 00 22 01 00", "1 bytes of content"},
      {"a negative extent", "2A 17 0A 15 42 13 08 04 12 0D 12 0B 08 FF FF FF FF FF FF FF FF FF 01 22 00",
       "negative extent -1"},
      {"texts beside a numeric type", "2A 0A 0A 08 42 06 08 04 12 00 42 00", "and 1 texts"},
      {"text that is not UTF-8", "2A 0D 0A 0B 42 09 12 04 12 02 08 01 42 01 FF", "not UTF-8"},
      {"a name that is not UTF-8", "2A 05 0A 03 0A 01 FF", "name is not UTF-8"},
      {"two tensors in one value", "2A 14 0A 12 42 07 08 04 12 00 22 01 05 42 07 08 04 12 00 22 01 05", "two tensors"},
      {"a mode that does not exist", "2A 0F 0A 0D 4A 0B 0A 09 0A 04 6D 6F 64 65 12 01 39", "mode is 9"},
      {"a mode step that is no number", "2A 14 0A 12 4A 10 0A 0E 0A 09 6D 6F 64 65 5F 73 74 65 70 12 01 78",
       "mode_step is \"x\""},
      {"a mode step before any", "2A 15 0A 13 4A 11 0A 0F 0A 09 6D 6F 64 65 5F 73 74 65 70 12 02 2D 32",
       "mode_step is \"-2\", not a number from -1 on"},
  };
  for (const auto& c : cases) {
    const auto event = decode_event(from_hex(c.hex));
    ASSERT_FALSE(event.ok()) << c.what;
    EXPECT_EQ(event.error().code, ErrorCode::kCorrupt) << c.what;
    EXPECT_NE(event.error().message.find(c.says), std::string::npos) << c.what << ": " << event.error().message;
  }
}

TEST(Event, AScalarMayComeBeforeTheFirstStepOfItsMode) {
  const auto event = decode_event(from_hex("2A 15 0A 13 4A 11 0A 0F 0A 09 6D 6F 64 65 5F 73 74 65 70 12 02 2D 31"));
  ASSERT_TRUE(event.ok()) << event.error().message;
  EXPECT_EQ(event->mode_step, -1);
}

TEST(Event, HostileShapesAreRefusedBeforeTheyCost) {
  // 2^32 x 2^32 elements in no bytes at all, and more dimensions than anybody has.
  const auto huge =
      decode_event(from_hex("2A 16 0A 14 42 12 08 01 12 0E 12 05 08 80 80 80 80 10 12 05 08 80 80 80 80 10"));
  EXPECT_FALSE(huge.ok());
  Bytes dims;
  for (std::size_t i = 0; i <= kMaxRank; ++i) dims += Bytes("\x12\x02\x08\x01", 4);
  const auto wrap = [](const char* tag, const Bytes& inner) {
    Bytes out(tag);
    out.push_back(static_cast<char>((inner.size() & 0x7F) | 0x80));
    out.push_back(static_cast<char>(inner.size() >> 7));
    return out + inner;
  };
  const auto deep = decode_event(wrap("\x2A", wrap("\x0A", wrap("\x42", wrap("\x12", dims)))));
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().message.find("more than 64 dimensions"), std::string::npos) << deep.error().message;
}

TEST(Event, CutOrChangedAnywhereIsAValueOrAnError) {
  const Bytes content(24, 'x');
  const Bytes whole = payload(
      encode_event({.name = "layer/weight", .global_step = 3, .mode = Mode::kEval, .mode_step = 2, .wall_time = kTime},
                   DType::kFloat32, {2, 3}, 24),
      content);
  std::mt19937 random(3);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const auto cut = decode_event(ByteView(whole).substr(0, at));
    EXPECT_TRUE(cut.ok() || cut.error().code == ErrorCode::kCorrupt);
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1U << static_cast<unsigned>(bit)));
      const auto event = decode_event(changed);
      EXPECT_TRUE(event.ok() || event.error().code == ErrorCode::kCorrupt);
      if (event.ok() && event->has_tensor && event->dtype != DType::kString) {
        EXPECT_EQ(event->content.size(),
                  static_cast<std::size_t>(event->shape.element_count()) * dtype_size(event->dtype));
      }
    }
  }
}

}  // namespace
}  // namespace tornasole::format
