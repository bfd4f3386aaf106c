#include "format/index_pack.h"

#include <gtest/gtest.h>

#include "format/record.h"

namespace tornasole::format {
namespace {

Bytes sample_pack() {
  Bytes pack;
  append_to_index_pack({"index/000000000/000000000000_w.json", "abc-1", "{\"meta\": {}}"}, &pack);
  append_to_index_pack({"index/000000000/000000000007_w.json", "d", "two\nlines\n"}, &pack);
  append_to_index_pack({"p", "v", ""}, &pack);
  return pack;
}

TEST(IndexPack, ComesBackAsItWas) {
  const Bytes pack = sample_pack();
  const auto entries = decode_index_pack(pack);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  ASSERT_EQ(entries->size(), 3U);
  EXPECT_EQ((*entries)[0].path, "index/000000000/000000000000_w.json");
  EXPECT_EQ((*entries)[0].version, "abc-1");
  EXPECT_EQ((*entries)[0].text, "{\"meta\": {}}");
  EXPECT_EQ((*entries)[1].text, "two\nlines\n");
  EXPECT_EQ((*entries)[2].text, "");
  EXPECT_TRUE(decode_index_pack("")->empty());
}

TEST(IndexPack, CutAnywhereItIsRefusedOrShorter) {
  const Bytes pack = sample_pack();
  for (std::size_t length = 1; length < pack.size(); ++length) {
    const auto entries = decode_index_pack(ByteView(pack).substr(0, length));
    if (entries.ok()) {
      EXPECT_LT(entries->size(), 3U) << length;
    } else {
      EXPECT_EQ(entries.error().code, ErrorCode::kCorrupt) << length;
    }
  }
}

TEST(IndexPack, AnyChangedByteIsNoticed) {
  const Bytes pack = sample_pack();
  for (std::size_t at = 0; at < pack.size(); ++at) {
    Bytes changed = pack;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    const auto entries = decode_index_pack(changed);
    ASSERT_FALSE(entries.ok()) << at;
    EXPECT_EQ(entries.error().code, ErrorCode::kCorrupt) << at;
  }
}

TEST(IndexPack, WhatIsNoEntryIsRefused) {
  const auto record = [](const Bytes& payload) {
    Bytes pack;
    append_to_index_pack({payload, "", ""}, &pack);
    return pack;
  };
  // Each as the path of an entry without version and text: two line ends follow.
  for (const char* payload : {"", "path", "\n"}) {
    EXPECT_FALSE(decode_index_pack(record(payload)).ok()) << payload;
  }
  const auto header = encode_record_header(0);
  const auto trailer = encode_trailer(kConstantTrailer);
  const Bytes unchecked = Bytes(header.data(), header.size()) + Bytes(trailer.data(), trailer.size());
  EXPECT_FALSE(decode_index_pack(unchecked).ok()) << "the constant is no checksum";
}

TEST(IndexPack, NamesSayTheStepsAndTheWorker) {
  const IndexPackName name{0, 255, "_job-a_device-GPU-0"};
  EXPECT_EQ(index_pack_path(name), "tornasole/packs/000000000000-000000000255__job-a_device-GPU-0.pack");
  for (const IndexPackName& one : {name, IndexPackName{7, 7, "worker_0"}, IndexPackName{1, 1234567890123, "w-1"}}) {
    const auto parsed = parse_index_pack_path(index_pack_path(one));
    ASSERT_TRUE(parsed.has_value()) << index_pack_path(one);
    EXPECT_EQ(parsed->first_step, one.first_step);
    EXPECT_EQ(parsed->last_step, one.last_step);
    EXPECT_EQ(parsed->worker_file_name, one.worker_file_name);
  }
  for (const char* path :
       {"tornasole/packs/000000000009-000000000008_w.pack", "tornasole/packs/0-8_w.pack",
        "tornasole/packs/000000000000-000000000008_.pack", "tornasole/packs/x.pack",
        "tornasole/packs/000000000000_1-000000000008_w.pack", "tornasole/packs/",
        "packs/000000000000-000000000008_w.pack", "", "tornasole/packs/-00000000001-000000000008_w.pack",
        "tornasole/packs/000000000000-99999999999999999999_w.pack",
        "tornasole/packs/a/000000000000-000000000008_w.pack"}) {
    EXPECT_FALSE(parse_index_pack_path(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace tornasole::format
