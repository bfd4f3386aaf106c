// Every file the original debugger wrote, read and written again to the same bytes; and every kind of damage done to
// such files, noticed.

#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "format/collections_file.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "format/run_files.h"
#include "golden_files.h"

namespace tornasole::format {
namespace {

Bytes encode_again(const Event& event) {
  const EventHeader header{.name = event.name,
                           .global_step = event.global_step,
                           .mode = event.mode,
                           .mode_step = event.mode_step,
                           .wall_time = event.wall_time};
  const std::vector<std::string_view> texts(event.texts.begin(), event.texts.end());
  const auto encoded = event.dtype == DType::kString
                           ? encode_string_event(header, event.shape, texts)
                           : encode_event(header, event.dtype, event.shape, event.content.size());
  EXPECT_TRUE(encoded.ok()) << encoded.error().message;
  return encoded->before + Bytes(event.content) + encoded->after;
}

// Damage that a record shows by itself, with what it must say.
const std::map<std::string, std::pair<ErrorCode, std::string>> kDamagedEvents = {
    {"corrupt/event_bad_length_crc/trial/events/000000000001/000000000001_worker_0.tfevents",
     {ErrorCode::kCorrupt, "record at 0: checksum of the length"}},
    {"corrupt/event_cut/trial/events/000000000002/000000000002_worker_0.tfevents",
     {ErrorCode::kNotYet, "record at 92 is cut"}},
};
bool may_be_cut(const std::string& path) { return path.starts_with("interrupted"); }

TEST(Golden, EveryEventFileIsReadAndWrittenAgain) {
  int records = 0;
  int texts = 0;
  int verified = 0;
  std::size_t damaged = 0;
  for (const std::string& path : golden_files("/events/", ".tfevents")) {
    const Bytes bytes = read_whole(golden_root() / path);
    std::uint64_t at = 0;
    while (at < bytes.size()) {
      const auto record = decode_record(ByteView(bytes).substr(at), at);
      if (!record.ok()) {
        if (const auto expected = kDamagedEvents.find(path); expected != kDamagedEvents.end()) {
          ++damaged;
          EXPECT_EQ(record.error().code, expected->second.first) << path;
          EXPECT_NE(record.error().message.find(expected->second.second), std::string::npos) << record.error().message;
        } else {
          EXPECT_TRUE(may_be_cut(path)) << path << ": " << record.error().message;
          EXPECT_EQ(record.error().code, ErrorCode::kNotYet) << path;
        }
        break;
      }
      const auto event = decode_event(record->payload);
      ASSERT_TRUE(event.ok()) << path << " at " << at << ": " << event.error().message;
      const bool is_relabelled = path.starts_with("legacy_0_7_2") && event->dtype == DType::kFloat16;
      if (event->has_tensor && !is_relabelled) {
        EXPECT_EQ(encode_again(*event), record->payload) << path << " at " << at;
      }
      const auto header = encode_record_header(record->payload.size());
      EXPECT_EQ(ByteView(bytes).substr(at, header.size()), ByteView(header.data(), header.size())) << path;
      ++records;
      texts += event->dtype == DType::kString ? 1 : 0;
      verified += record->is_verified ? 1 : 0;
      at += record->payload.size() + kRecordFrameBytes;
    }
  }
  EXPECT_GT(records, 1000);
  EXPECT_GT(texts, 5);
  EXPECT_EQ(verified, 2) << "only event_real_crc has true checksums";
  EXPECT_EQ(damaged, kDamagedEvents.size());
}

TEST(Golden, OldFloat16IsFound) {
  int found = 0;
  for (const std::string& path : golden_files("legacy_0_7_2/trial/events/", ".tfevents")) {
    const Bytes bytes = read_whole(golden_root() / path);
    for (std::uint64_t at = 0; at < bytes.size();) {
      const auto record = decode_record(ByteView(bytes).substr(at), at);
      ASSERT_TRUE(record.ok()) << record.error().message;
      const auto event = decode_event(record->payload);
      ASSERT_TRUE(event.ok()) << event.error().message;
      found += event->dtype == DType::kFloat16 ? 1 : 0;
      at += record->payload.size() + kRecordFrameBytes;
    }
  }
  EXPECT_GT(found, 0);
}

TEST(Golden, EveryTensorBoardRecordHasItsTrueChecksum) {
  int records = 0;
  for (const std::string& path : golden_files("/tensorboard/", ".tfevents")) {
    const Bytes bytes = read_whole(golden_root() / path);
    for (std::uint64_t at = 0; at < bytes.size(); ++records) {
      const auto record = decode_record(ByteView(bytes).substr(at), at);
      ASSERT_TRUE(record.ok()) << path << ": " << record.error().message;
      EXPECT_TRUE(record->is_verified) << path << " at " << at;
      EXPECT_TRUE(decode_event(record->payload).ok()) << path << " at " << at;
      at += record->payload.size() + kRecordFrameBytes;
    }
  }
  EXPECT_GT(records, 10);
}

const std::map<std::string, std::string> kDamagedIndexes = {
    {"index_bad_mode", "VALIDATE"},
    {"index_cut", "not JSON"},
    {"index_meta_empty", "no mode"},
    {"index_meta_missing", "no meta"},
    {"index_payloads_missing", "no tensor_payload and no shape_payload"},
    {"index_two_documents", "more text follows"},
    {"index_zero_bytes", "not JSON"},
};

TEST(Golden, EveryIndexFileIsReadAndWrittenAgain) {
  std::size_t damaged = 0;
  std::size_t rewritten = 0;
  for (const std::string& path : golden_files("/index/", ".json")) {
    if (!parse_step_file(path, ".json")) continue;
    const Bytes text = read_whole(golden_root() / path);
    const auto index = decode_index(text);
    if (!index.ok()) {
      const std::string fixture = path.substr(path.find('/') + 1, path.find("/trial") - path.find('/') - 1);
      const auto expected = kDamagedIndexes.find(fixture);
      ASSERT_NE(expected, kDamagedIndexes.end()) << path << ": " << index.error().message;
      EXPECT_EQ(index.error().code, ErrorCode::kCorrupt);
      EXPECT_NE(index.error().message.find(expected->second), std::string::npos)
          << path << ": " << index.error().message;
      ++damaged;
      continue;
    }
    EXPECT_FALSE(index->is_verified);
    // Old releases had no shapes, and unknown keys are not kept.
    if (text.find("shape_payload") == Bytes::npos || path.find("index_unknown_keys") != std::string::npos) continue;
    EXPECT_EQ(encode_index(*index, false), text) << path;
    ++rewritten;
  }
  EXPECT_EQ(damaged, kDamagedIndexes.size());
  EXPECT_GT(rewritten, 100U);
}

TEST(Golden, EveryCollectionsFileIsReadAndWrittenAgain) {
  std::size_t rewritten = 0;
  for (const std::string& path : golden_files("/collections/", "_collections.json")) {
    const Bytes text = read_whole(golden_root() / path);
    const auto file = decode_collections(text);
    if (path.find("collections_unknown_top_key") != std::string::npos) {
      ASSERT_FALSE(file.ok());
      EXPECT_EQ(file.error().code, ErrorCode::kCorrupt);
      continue;
    }
    ASSERT_TRUE(file.ok()) << path << ": " << file.error().message;
    if (path.find("unknown_inner_key") != std::string::npos) continue;
    if (path.starts_with("legacy_0_7_2")) {
      EXPECT_EQ(text.find("save_shape"), Bytes::npos);
      continue;
    }
    EXPECT_EQ(encode_collections(*file, false), text) << path;
    ++rewritten;
  }
  EXPECT_GT(rewritten, 30U);
}

TEST(Golden, TheStateFileIsReadAndWrittenAgain) {
  for (const char* name : {"spot_resume/checkpoint/metadata.json", "spot_resume/metadata_after_run_1.json"}) {
    const Bytes text = read_whole(golden_root() / name);
    bool was_cut = true;
    const auto records = decode_checkpoint_state(text, &was_cut);
    ASSERT_TRUE(records.ok()) << records.error().message;
    EXPECT_FALSE(was_cut);
    EXPECT_EQ(encode_checkpoint_state(*records), text) << name;
  }
}

TEST(Golden, EveryMetricsLineIsWrittenAgain) {
  const Bytes text = read_whole(golden_root() / "sagemaker_metrics/metrics/4242.json");
  int lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    const std::size_t end = text.find('\n', at) + 1;
    const auto json = parse_json(ByteView(text).substr(at, end - at));
    ASSERT_TRUE(json.ok()) << json.error().message;
    const std::string name = *json->find("MetricName")->as_string();
    const std::size_t underscore = name.rfind('_');
    MetricRecord metric{.name = name.substr(0, underscore),
                        .value = *json->find("Value")->as_double(),
                        .timestamp = *json->find("Timestamp")->as_double(),
                        .mode_step = *json->find("IterationNumber")->as_int()};
    for (const Mode mode : kAllModes) {
      if (mode_name(mode) == ByteView(name).substr(underscore + 1)) metric.mode = mode;
    }
    EXPECT_EQ(encode_metric(metric), text.substr(at, end - at));
    at = end;
  }
  EXPECT_GT(lines, 3);
}

}  // namespace
}  // namespace tornasole::format
