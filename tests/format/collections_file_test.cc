#include "format/collections_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32c.h"

namespace tornasole::format {
namespace {

CollectionsFile small_file() {
  StoredCollection collection;
  collection.name = "custom";
  collection.include_regex = {"^fc.*_input_"};
  collection.tensor_names = {"fc1_input_0"};
  collection.reductions = ReductionSpec{};
  collection.schedules.emplace();
  (*collection.schedules)[0] = StoredSchedule{.save_interval = 2};
  CollectionsFile file;
  file.collections = {collection};
  return file;
}

TEST(CollectionsFile, IsTheDocumentedExampleToTheByte) {
  EXPECT_EQ(
      encode_collections(small_file(), false),
      R"({"collections": {"custom": {"name": "custom", "include_regex": ["^fc.*_input_"], "tensor_names": )"
      R"(["fc1_input_0"], "reduction_config": {"save_raw_tensor": true, "reductions": "", "save_shape": false}, )"
      R"("save_config": {"TRAIN": {"save_interval": 2, "save_steps": [], "start_step": 0, "end_step": null}, )"
      R"("EVAL": null, "PREDICT": null, "GLOBAL": null}, "save_histogram": true}}, "_meta": {"num_workers": 1}})");
}

TEST(CollectionsFile, OurKeysStandInside) {
  CollectionsFile file = small_file();
  StoredCollection& collection = file.collections[0];
  collection.exclude_regex = {"^derived/"};
  collection.reductions->reductions = {{ReductionKind::kMin},          {ReductionKind::kMedian},
                                       {ReductionKind::kL2},           {ReductionKind::kMax, true},
                                       {ReductionKind::kMedian, true}, {ReductionKind::kL1, true}};
  (*collection.schedules)[0]->when_nan = {"loss"};
  const Bytes text = encode_collections(file);
  EXPECT_NE(text.find(R"("exclude_regex": ["^derived/"])"), Bytes::npos) << text;
  EXPECT_NE(text.find(R"("reductions": "min,l2_norm,abs_max,abs_l1_norm", "save_shape": false, )"
                      R"("tornasole_reductions": "median,abs_median"})"),
            Bytes::npos)
      << text;
  EXPECT_NE(text.find(R"("end_step": null, "when_nan": ["loss"]})"), Bytes::npos) << text;
  const std::size_t comma = text.rfind(", \"crc32c\": ");
  EXPECT_EQ(text.substr(comma),
            ", \"crc32c\": " + std::to_string(masked_crc32c(ByteView(text).substr(0, comma))) + "}}");

  const auto decoded = decode_collections(text);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_TRUE(decoded->is_verified);
  EXPECT_EQ(decoded->collections, file.collections);
}

TEST(CollectionsFile, DecodesWhatItEncoded) {
  std::mt19937 random(4);
  const auto texts = [&random] {
    const std::string_view pieces[] = {"^(?!gradient).*weight", "\xC3\xA4", "a,b", "", "\"\\\n"};
    std::vector<std::string> list(random() % 4);
    for (std::string& text : list) text = pieces[random() % std::size(pieces)];
    return list;
  };
  const auto small = [&random] { return static_cast<std::int64_t>(1 + random() % 9); };
  for (int round = 0; round < 500; ++round) {
    CollectionsFile file;
    file.num_workers = static_cast<std::int64_t>(1 + random() % 65536);
    for (std::size_t n = random() % 6; n > 0; --n) {
      StoredCollection collection;
      collection.name = "c" + std::to_string(n) + "\xE2\x82\xAC";
      collection.include_regex = texts();
      collection.exclude_regex = texts();
      collection.tensor_names = texts();
      collection.save_histogram = random() % 2 == 0;
      if (random() % 4 != 0) {
        collection.reductions = ReductionSpec{.save_raw_tensor = random() % 2 == 0, .save_shape = random() % 2 == 0};
        for (const bool absolute : {false, true}) {
          // Medians come last of their group.
          for (const auto kind : {ReductionKind::kMax, ReductionKind::kMin, ReductionKind::kStd, ReductionKind::kMedian,
                                  ReductionKind::kL2, ReductionKind::kL1}) {
            if (random() % 2 == 0) collection.reductions->reductions.push_back({kind, absolute});
          }
        }
      }
      if (random() % 4 != 0) {
        collection.schedules.emplace();
        for (auto& schedule : *collection.schedules) {
          if (random() % 3 == 0) continue;
          schedule = StoredSchedule{.save_interval = small(), .start_step = small(), .when_nan = texts()};
          if (random() % 2 == 0) schedule->end_step = random();
          schedule->save_steps.assign(random() % 3, small());
        }
      }
      file.collections.push_back(std::move(collection));
    }
    const auto decoded = decode_collections(encode_collections(file, round % 2 == 0));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->collections, file.collections);
    EXPECT_EQ(decoded->num_workers, file.num_workers);
    EXPECT_EQ(decoded->is_verified, round % 2 == 0);
  }
}

std::string with_inner(const std::string& fields) {
  return R"({"collections": {"x": {"name": "c")" + fields + R"(}}, "_meta": {}})";
}

TEST(CollectionsFile, AbsentKeysHaveTheirMeaning) {
  const auto file = decode_collections(with_inner(""));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->num_workers, 1);
  EXPECT_EQ(file->collections.at(0), StoredCollection{.name = "c"}) << "the inner name counts";
  const auto old = decode_collections(with_inner(
      R"(, "reduction_config": {"only_shape": false, "reductions": " min , abs_l1_norm,min"}, "save_config": {"EVAL": null})"));
  ASSERT_TRUE(old.ok()) << old.error().message;
  EXPECT_EQ(
      old->collections.at(0).reductions,
      (ReductionSpec{.reductions = {{ReductionKind::kMin}, {ReductionKind::kL1, true}}, .save_raw_tensor = false}));
  EXPECT_TRUE(old->collections.at(0).schedules.has_value());
}

TEST(CollectionsFile, NumbersAreConvertedAsTheReferenceDoes) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"3", 3},    {"\"3\"", 3},        {"3.0", 3},    {"3.9", 3},     {"\" +3\\n\"", 3},
      {"true", 1}, {"\"1_000\"", 1000}, {"1e3", 1000}, {"\"007\"", 7},
  };
  for (const auto& [text, number] : cases) {
    const auto file =
        decode_collections(std::string(R"({"collections": {"c": {"name": "c", "save_config": {"EVAL": )") +
                           R"({"save_interval": )" + text + R"(, "start_step": )" + text + R"(, "end_step": )" + text +
                           R"(}}}}, "_meta": {"num_workers": )" + text + "}}");
    ASSERT_TRUE(file.ok()) << text << ": " << file.error().message;
    EXPECT_EQ(file->num_workers, number) << text;
    const StoredSchedule& schedule = *file->collections.at(0).schedules->at(mode_index(Mode::kEval));
    EXPECT_EQ(schedule.save_interval, number) << text;
    EXPECT_EQ(schedule.start_step, number) << text;
    EXPECT_EQ(schedule.end_step, number) << text;
  }
  for (const char* text : {"NaN", "Infinity", "1e999", "\"\"", "\"1.0\"", "\"_1\"", "\"1_\"", "\"1__0\"", "\"-_1\"",
                           "\"+-1\"", "\"0x1\"", "[1]", "{}", "9223372036854775808", "\"9223372036854775808\""}) {
    const auto file =
        decode_collections(with_inner(std::string(R"(, "save_config": {"EVAL": {"save_interval": )") + text + "}}"));
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_NE(file.error().message.find("\"save_interval\" of the schedule of a mode is "), std::string::npos)
        << file.error().message;
  }
}

TEST(CollectionsFile, OfARepeatedKeyOrNameTheLastOneCounts) {
  const auto file = decode_collections(
      R"({"_meta": {"num_workers": 5}, "collections": {"gone": 1}, "collections": {)"
      R"("a": {"name": "gone"}, "b": {"name": "b", "include_regex": ["1"], "include_regex": ["2"]}, )"
      R"("a": {"name": "a", "x": NaN}, "c": {"name": "b", "include_regex": ["3"]}}, "_meta": {"x": -Infinity}})");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->num_workers, 1);
  ASSERT_EQ(file->collections.size(), 2U);
  EXPECT_EQ(file->collections[0], (StoredCollection{.name = "b", .include_regex = {"3"}}));
  EXPECT_EQ(file->collections[1], StoredCollection{.name = "a"});
}

TEST(CollectionsFile, DamageIsNamed) {
  const auto workers = [](const std::string& count) {
    return R"({"collections": {}, "_meta": {"num_workers": )" + count + "}}";
  };
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"no JSON", "", "not JSON"},
      {"no object", "[]", "not an object"},
      {"a third key", R"({"collections": {}, "_meta": {}, "more": 1})", "\"more\""},
      {"no collections", R"({"_meta": {}})", "no \"collections\""},
      {"no _meta", R"({"collections": {}})", "no \"_meta\""},
      {"a list of collections", R"({"collections": [], "_meta": {}})", "not an object"},
      {"no workers", workers("0"), "between 1 and 65536"},
      {"a billion workers", workers("1000000000"), "between 1 and 65536"},
      {"workers in words", workers("\"many\""), "many"},
      {"a collection without name", R"({"collections": {"x": {}}, "_meta": {}})", "no \"name\""},
      {"an unknown mode", with_inner(R"(, "save_config": {"VALIDATE": null})"), "VALIDATE"},
      {"an unknown reduction", with_inner(R"(, "reduction_config": {"reductions": "min,mode"})"), "\"mode\""},
      {"a norm of no norm", with_inner(R"(, "reduction_config": {"reductions": "min_norm"})"), "min_norm"},
      {"save_raw_tensor as a number", with_inner(R"(, "reduction_config": {"save_raw_tensor": 1})"), "save_raw_tensor"},
      {"a pattern that is a number", with_inner(R"(, "include_regex": [1])"),
       "\"include_regex\" of the collection \"x\" is [1], not a list of strings"},
      {"a schedule that is a number", with_inner(R"(, "save_config": {"TRAIN": 1})"), "schedule of a mode"},
      {"a wrong checksum", R"({"collections": {}, "_meta": {"num_workers": 1, "crc32c": 5}})", "crc32c is 5"},
      {"a checksum with nothing before it", R"({"collections": {}, "_meta": {"crc32c": 5}})", "where it should"},
      {"a checksum that is not last", R"({"collections": {}, "_meta": {"crc32c": 5, "num_workers": 1}})",
       "not the last"},
      {"a checksum in the wrong place", R"({"_meta": {"num_workers": 1, "crc32c": 5}, "collections": {}})",
       "not the last"},
      {"more items than memory", "[" + std::string(2100000, ','), "items"},
  };
  for (const auto& [what, text, says] : cases) {
    const auto file = decode_collections(text);
    ASSERT_FALSE(file.ok()) << what;
    EXPECT_EQ(file.error().code, ErrorCode::kCorrupt) << what;
    EXPECT_NE(file.error().message.find(says), std::string::npos) << what << ": " << file.error().message;
  }
}

TEST(CollectionsFile, NoChangedByteChangesTheMeaning) {
  const CollectionsFile file = small_file();
  const Bytes text = encode_collections(file);
  for (std::size_t at = 0; at < text.size(); ++at) {
    EXPECT_FALSE(decode_collections(ByteView(text).substr(0, at)).ok()) << at;
    for (int value = 0; value < 256; ++value) {
      if (static_cast<char>(value) == text[at]) continue;
      Bytes changed = text;
      changed[at] = static_cast<char>(value);
      const auto decoded = decode_collections(changed);
      if (!decoded.ok()) continue;
      EXPECT_EQ(decoded->collections, file.collections) << at;
      EXPECT_EQ(decoded->num_workers, file.num_workers) << at;
    }
  }
}

}  // namespace
}  // namespace tornasole::format
