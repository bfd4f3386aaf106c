// What damage costs: the value, file or step it hits, and never a wrong number.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "trial_world.h"

namespace tornasole::trial {
namespace {

using Values = std::map<std::string, std::vector<float>>;  // "step/name"

// Of random changes; the long set of the survival rows asks for ten times as many.
int rounds() {
  static const char* const kAsked = std::getenv("TORNASOLE_TEST_ROUNDS");
  static const int kRounds = kAsked != nullptr ? std::atoi(kAsked) : 1000;
  return kRounds;
}

// Five steps of two tensors and a reduction, with collections, health and end marker.
std::map<std::string, Bytes> sound_files() {
  std::map<std::string, Bytes> files;
  for (std::int64_t step = 0; step < 5; ++step) {
    const auto value = static_cast<float>(step);
    const WrittenFile file{
        .step = step,
        .mode_step = step == 3 ? eval(0) : train(step),
        .tensors = {{"x", {value, 1}}, {"smdebug/reductions/l2/y", {value + 10}}, {"z", {value, value, value}}}};
    const EncodedFiles encoded = encode_files(file);
    files[format::event_path(step, "worker_0")] = encoded.events;
    files[format::index_path(step, "worker_0")] = encoded.index;
  }
  const format::CollectionsFile collections{
      .collections = {{.name = "all", .include_regex = {"."}, .tensor_names = {"x"}}}};
  files[format::collections_path("worker_0")] = format::encode_collections(collections);
  files[format::health_path("worker_0")] =
      format::encode_health({.process = {.host = "h", .pid = 1}, .state = format::RunState::kEnded});
  files[std::string(format::kEndMarkerPath)] = "";
  return files;
}

TrialWorld& write_all(TrialWorld& world, const std::map<std::string, Bytes>& files) {
  for (const auto& [path, bytes] : files) world.put(path, bytes);
  world.clock().advance(100);  // nothing is young
  return world;
}

struct Read {
  Values values;
  int unavailable = 0;
};

// Every value the trial has, by queries and, as a second opinion, by a sweep.
Read read_everything(const Trial& trial) {
  Read read;
  int swept_errors = 0;
  Values swept;
  const Status status = trial.sweep({.reductions = true}, [&](const SweptValue& value) {
    if (value.value == nullptr) {
      EXPECT_FALSE(value.error->message.empty());
      ++swept_errors;
      return true;
    }
    const auto* floats = reinterpret_cast<const float*>(value.value->data());
    swept[fmt::format("{}/{}", value.global_step.number, value.name)] = {floats, floats + value.value->element_count()};
    return true;
  });
  EXPECT_TRUE(status.ok());
  const auto all_names = trial.tensor_names();
  for (const ModeStep step : trial.steps(Mode::kGlobal, StepFilter::kIncludingIncomplete)) {
    const auto names = trial.tensor_names({.step = step});
    for (const std::string& name : *names) {
      const TrialTensor tensor = *trial.tensor(name);
      const auto value = name == "y" ? tensor.reduction_tensor(step, {ReductionKind::kL2}) : tensor.value(step);
      if (!value.ok()) {
        EXPECT_EQ(value.error().kind, ErrorKind::kTensorUnavailableForStep) << value.error().message;
        ++read.unavailable;
        continue;
      }
      const auto floats = value->values<float>();
      read.values[fmt::format("{}/{}", step.number, name)] = {floats.begin(), floats.end()};
    }
  }
  EXPECT_EQ(read.values, swept);
  EXPECT_EQ(read.unavailable, swept_errors);
  return read;
}

// Nothing in `found` differs from what was written.
void expect_only_true_values(const Values& found, const Values& written, const std::string& what) {
  for (const auto& [key, value] : found) {
    const auto at = written.find(key);
    ASSERT_NE(at, written.end()) << what << " gave " << key;
    ASSERT_EQ(value, at->second) << what << " changed " << key;
  }
}

Values written_values() {
  TrialWorld world;
  return read_everything(must_open(write_all(world, sound_files()))).values;
}

TEST(Damage, TheSoundTrialIsRead) {
  const Values values = written_values();
  EXPECT_EQ(values.size(), 15U);
  EXPECT_EQ(values.at("4/y"), std::vector<float>{14});
}

TEST(Damage, EveryFileCutAtEveryByte) {
  const auto files = sound_files();
  const Values written = written_values();
  int cuts = 0;
  for (const auto& [path, bytes] : files) {
    TrialWorld world;
    write_all(world, files);
    for (std::size_t length = 0; length < bytes.size(); ++length, ++cuts) {
      world.put(path, bytes.substr(0, length));
      world.clock().advance(100);
      const std::string what = fmt::format("{} cut at {}", path, length);
      const auto trial = world.open();
      ASSERT_TRUE(trial.ok()) << what << ": " << trial.error().message;
      const Read read = read_everything(*trial);
      expect_only_true_values(read.values, written, what);
      // It costs a value, a step, or nothing that is asked here.
      EXPECT_GE(read.values.size(), 12U) << what;
      if (path.starts_with("index/")) {
        EXPECT_EQ(trial->damage_count(), 1) << what;
        const auto failed = world.open({.on_damage = OnDamage::kFail, .timeout_s = 0});
        ASSERT_FALSE(failed.ok()) << what;
        EXPECT_THAT(failed.error().message, testing::HasSubstr(path));
      }
    }
  }
  EXPECT_GT(cuts, 4000);
}

TEST(Damage, ALiveReaderThatSeesFilesGrowByteByByte) {
  const Values written = written_values();
  TrialWorld world;
  std::map<std::string, Bytes> files = sound_files();
  world.put(format::collections_path("worker_0"), files[format::collections_path("worker_0")]);
  Trial trial = must_open(world, {.on_damage = OnDamage::kFail, .timeout_s = 0});
  for (std::int64_t step = 0; step < 5; ++step) {
    for (const std::string& path : {format::event_path(step, "worker_0"), format::index_path(step, "worker_0")}) {
      const Bytes& bytes = files[path];
      for (std::size_t length = 0; length <= bytes.size(); ++length) {
        world.put(path, bytes.substr(0, length));
        world.clock().advance(0.01);
        ASSERT_TRUE(trial.refresh().ok()) << path << " at " << length;
        const bool is_whole = path.starts_with("index/") && length == bytes.size();
        ASSERT_EQ(trial.steps().size(), static_cast<std::size_t>(step + (is_whole ? 1 : 0))) << path << length;
      }
    }
  }
  EXPECT_EQ(read_everything(trial).values, written);
  EXPECT_EQ(trial.damage_count(), 0);
}

TEST(Damage, BitFlipsInEventFiles) {
  const auto files = sound_files();
  const Values written = written_values();
  std::mt19937 random(2024);
  TrialWorld world;
  write_all(world, files);
  for (int i = 0; i < rounds(); ++i) {
    const std::string path = format::event_path(static_cast<std::int64_t>(random() % 5), "worker_0");
    Bytes bytes = files.at(path);
    const std::size_t bit = random() % (bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    world.put(path, bytes);
    const Read read = read_everything(must_open(world));
    expect_only_true_values(read.values, written, fmt::format("bit {} of {}", bit, path));
    EXPECT_EQ(read.values.size(), 14U) << "one record is hit, the others are whole";
    EXPECT_EQ(read.unavailable, 1);
    world.put(path, files.at(path));
  }
}

TEST(Damage, ByteChangesInIndexAndCollectionsFiles) {
  const auto files = sound_files();
  const Values written = written_values();
  std::mt19937 random(7);
  TrialWorld world;
  write_all(world, files);
  for (int i = 0; i < rounds(); ++i) {
    const std::string path = i % 2 == 0 ? format::index_path(static_cast<std::int64_t>(random() % 5), "worker_0")
                                        : format::collections_path("worker_0");
    Bytes bytes = files.at(path);
    const std::size_t at = random() % bytes.size();
    const auto changed = static_cast<char>(random());
    if (bytes[at] == changed) continue;
    bytes[at] = changed;
    world.put(path, bytes);
    world.clock().advance(10);
    const std::string what = fmt::format("byte {} of {}", at, path);
    const auto skipped = world.open();
    ASSERT_TRUE(skipped.ok()) << what << ": " << skipped.error().message;
    expect_only_true_values(read_everything(*skipped).values, written, what);
    EXPECT_LE(skipped->damage_count(), 1) << what;
    const auto failed = world.open({.on_damage = OnDamage::kFail, .timeout_s = 0});
    // A change may be none: white space, or the checksum's own key turned into an unknown one.
    if (!failed.ok()) {
      EXPECT_THAT(failed.error().message, testing::HasSubstr(path)) << what;
      EXPECT_EQ(skipped->damage_count(), 1) << what;
    } else {
      expect_only_true_values(read_everything(*failed).values, written, what);
    }
    world.put(path, files.at(path));
  }
}

TEST(Damage, EachFileRemoved) {
  const auto files = sound_files();
  const Values written = written_values();
  for (const auto& [path, bytes] : files) {
    TrialWorld world;
    write_all(world, files);
    world.remove(path);
    const Trial trial = must_open(world);
    const Read read = read_everything(trial);
    expect_only_true_values(read.values, written, path);
    EXPECT_EQ(read.values.size(), path.starts_with("events/") || path.starts_with("index/") ? 12U : 15U) << path;
    EXPECT_EQ(world.slept_s(), 0) << path;
  }
}

TEST(Damage, StrayNamesInEachDirectory) {
  const Values written = written_values();
  const char* kStray[] = {"x",          "x.tmp",       ".hidden",       "000000000001_worker_0.json.tmp",
                          "notes.txt",  "-00000001_w", "000000000001x", "000000000001_worker_0.tfevents.tmp",
                          "core.12345", "readme.JSON", "a b\nc",        "99999999999999999999_w.tfevents"};
  const char* kDirectories[] = {"",
                                "index/",
                                "index/000000000/",
                                "collections/",
                                "collections/000000000/",
                                "events/",
                                "events/000000000001/",
                                "tornasole/",
                                "attempts/1/",
                                "index/deep/er/"};
  TrialWorld world;
  write_all(world, sound_files());
  for (const char* directory : kDirectories) {
    for (const char* name : kStray) world.put(fmt::format("{}{}", directory, name), "stray");
  }
  const Trial trial = must_open(world, {.on_damage = OnDamage::kFail, .timeout_s = 0});
  EXPECT_EQ(read_everything(trial).values, written);
  EXPECT_EQ(trial.damage_count(), 0);
}

TEST(Damage, PlacesThatCannotBe) {
  struct Place {
    const char* what;
    std::uint64_t offset, length;
    const char* message;
  };
  const std::uint64_t kHuge = (std::uint64_t{1} << 63U) - 1;
  const Place kPlaces[] = {
      {"a length of nothing", 0, 0, "a record of 0 bytes"},
      {"shorter than a frame", 0, 15, "a record of 15 bytes"},
      {"longer than any record", 0, std::uint64_t{1} << 40U, "bytes"},
      {"as long as a number can say", 0, kHuge, "bytes"},
      {"two gigabytes of a small file", 0, std::uint64_t{1} << 31U, "no record of 2147483648 bytes"},
      {"behind the end of the file", 1 << 20U, 100, "cut"},
      {"as far behind as a number can say", kHuge, 100, "cut"},
      {"in the middle of a record", 3, 64, "checksum of the length"},
      {"a record and a half", 0, 100, "bytes"},
  };
  for (const Place& c : kPlaces) {
    TrialWorld world;
    world.write_collections({"worker_0"});
    const WrittenFile file{.step = 0, .tensors = {{"x"}, {"y"}}};
    world.write(file);
    format::Index index = *format::decode_index(encode_files(file).index);
    index.tensors[0].offset = c.offset;
    index.tensors[0].length = c.length;
    index.tensors[0].crc.reset();
    world.put(format::index_path(0, "worker_0"), format::encode_index(index));
    const Trial trial = must_open(world);
    const auto value = trial.tensor("x", global(0));
    ASSERT_FALSE(value.ok()) << c.what;
    EXPECT_EQ(value.error().details->reason, "damaged") << c.what;
    EXPECT_THAT(value.error().message, testing::HasSubstr(c.message)) << c.what;
    EXPECT_THAT(value.error().message, testing::HasSubstr("000000000000_worker_0.tfevents at offset")) << c.what;
    EXPECT_TRUE(trial.tensor("y", global(0)).ok()) << c.what;
    int good = 0;
    ASSERT_TRUE(trial
                    .sweep({},
                           [&](const SweptValue& swept) {
                             good += swept.value != nullptr ? 1 : 0;
                             return true;
                           })
                    .ok());
    EXPECT_EQ(good, 1) << c.what;
  }
}

TEST(Damage, ManyDamagedFilesAreCountedAndNotAllKept) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  for (std::int64_t step = 0; step < 10'100; ++step) world.put(format::index_path(step, "worker_0"), "{");
  world.clock().advance(10);
  const Trial trial = must_open(world);
  EXPECT_EQ(trial.damage_count(), 10'100);
  EXPECT_EQ(trial.damage().size(), 10'000U);
}

}  // namespace
}  // namespace tornasole::trial
