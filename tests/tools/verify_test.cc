#include "tools/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "tools/made_trial.h"
#include "tools/run_state.h"

namespace tornasole::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kEvents1 = format::event_path(1, "worker_0");
const std::string kIndex1 = format::index_path(1, "worker_0");
const std::string kCollections = format::collections_path("worker_0");

// Three steps of two values, one of them partial, and shapes; ended.
void make_sound(MadeTrial& trial) {
  trial.collections();
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto number = static_cast<float>(step);
    trial.step({.step = step,
                .values = {{"a", tensor_of<float>({number, 1, 2, 3}, {2, 2})}, {"b", tensor_of<double>({number})}},
                .is_partial = step == 2,
                .shapes = {{"s", "s", {4}}}});
  }
  trial.end();
}

Result<VerifyReport> verify_store(store::Store& store) { return verify(store, {.path = "t"}); }

TEST(Verify, ASoundTrialIsCounted) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_sound(trial);
  const auto report = verify_store(store);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->steps, 3);
  EXPECT_EQ(report->step_parts, 3);
  EXPECT_EQ(report->values, 6);
  EXPECT_EQ(report->shapes, 3);
  EXPECT_EQ(report->unverified_values, 0);
  EXPECT_EQ(report->unverified_files, 0);
  EXPECT_THAT(report->partial.listed, ElementsAre(StepPart{2, "worker_0"}));
  EXPECT_TRUE(report->temporary_files.empty());
  EXPECT_TRUE(report->debris.empty());
  EXPECT_EQ(report->run.state, RunState::kEnded);
  EXPECT_GT(report->bytes, 0U);
}

struct DamageCase {
  const char* what;
  std::function<void(MadeTrial&)> damage;
  std::int64_t damaged = 0;
  std::int64_t missing = 0;
  std::int64_t values = 6;
  std::string path = {};
  std::string says = {};
  bool has_offset = false;
};

std::size_t offset_of_second(MadeTrial& trial) {
  const auto index = format::decode_index(trial.read(kIndex1));
  return index->tensors.at(1).offset;
}

const DamageCase kDamage[] = {
    {"a changed number costs one value", [](MadeTrial& t) { t.flip(kEvents1, offset_of_second(t) - 30); }, 1, 0, 5,
     kEvents1, "'a'", true},
    {"a changed length costs one value", [](MadeTrial& t) { t.flip(kEvents1, offset_of_second(t)); }, 1, 0, 5, kEvents1,
     "checksum of the length", true},
    {"a changed trailer costs one value", [](MadeTrial& t) { t.flip(kEvents1, offset_of_second(t) - 1); }, 1, 0, 5,
     kEvents1, "trailer", true},
    {"a cut file costs the values after the cut",
     [](MadeTrial& t) { t.change(kEvents1, [](Bytes& b) { b.resize(b.size() - 5); }); }, 1, 0, 5, kEvents1, "'b'",
     true},
    {"an empty event file costs its values", [](MadeTrial& t) { t.write(kEvents1, ""); }, 2, 0, 4, kEvents1,
     "file has 0", true},
    {"a missing event file is missing", [](MadeTrial& t) { ASSERT_TRUE(t.store().remove(kEvents1).ok()); }, 0, 1, 4,
     kEvents1, "2 values"},
    {"a changed index costs its step", [](MadeTrial& t) { t.flip(kIndex1, 30); }, 1, 0, 4, kIndex1, ""},
    {"an empty index costs its step", [](MadeTrial& t) { t.write(kIndex1, ""); }, 1, 0, 4, kIndex1, ""},
    {"two documents in an index cost the step", [](MadeTrial& t) { t.change(kIndex1, [](Bytes& b) { b += b; }); }, 1, 0,
     4, kIndex1, ""},
    {"a foreign JSON file among the index files is damage",
     [](MadeTrial& t) { t.write("index/000000000/notes.json", "{}"); }, 1, 0, 6, "notes.json", "name"},
    {"changed collections are damage", [](MadeTrial& t) { t.flip(kCollections, 20); }, 1, 0, 6, kCollections, ""},
    {"missing collections are missing", [](MadeTrial& t) { ASSERT_TRUE(t.store().remove(kCollections).ok()); }, 0, 1, 6,
     "collections/", "no collections file"},
    {"fewer collections files than workers are missing", [](MadeTrial& t) { t.collections(3); }, 0, 1, 6,
     "collections/", "1 of 3"},
    {"a health file that is no JSON is damage", [](MadeTrial& t) { t.write("tornasole/worker_0_health.json", "x"); }, 1,
     0, 6, "health", ""},
    {"a run file that is no JSON is damage", [](MadeTrial& t) { t.write("tornasole/run.json", "[]"); }, 1, 0, 6, "run",
     ""},
    {"a model file that is no JSON is damage", [](MadeTrial& t) { t.write("tornasole/worker_0_model.json", "{"); }, 1,
     0, 6, "model", ""},
    {"a stop request that is no JSON is damage", [](MadeTrial& t) { t.write("stop_request.json", "{"); }, 1, 0, 6,
     "stop", ""},
    {"a cut TensorBoard file is damage", [](MadeTrial& t) { t.write("tensorboard/TRAIN/1_2_h.tfevents", "abc"); }, 1, 0,
     6, "tensorboard", "cut", true},
    {"a directory in place of an event file is damage",
     [](MadeTrial& t) {
       ASSERT_TRUE(t.store().remove(kEvents1).ok());
       t.write(kEvents1 + "/x", "");
     },
     1, 0, 4, kEvents1, ""},
    {"an entry past the end of the file is damage",
     [](MadeTrial& t) {
       auto index = format::decode_index(t.read(kIndex1));
       index->tensors[0].offset = std::uint64_t{1} << 62;
       t.write(kIndex1, format::encode_index(*index));
     },
     1, 0, 5, kEvents1, "but the file has", true},
    {"a length below that of any record is damage",
     [](MadeTrial& t) {
       auto index = format::decode_index(t.read(kIndex1));
       index->tensors[0].length = 3;
       t.write(kIndex1, format::encode_index(*index));
     },
     1, 0, 5, kEvents1, "at least 16", true},
    {"a record of another tensor is damage",
     [](MadeTrial& t) {
       auto index = format::decode_index(t.read(kIndex1));
       index->tensors[0].name = "z";
       t.write(kIndex1, format::encode_index(*index));
     },
     1, 0, 5, kEvents1, "holds 'a'", true},
};

TEST(Verify, EachKindOfDamageIsFoundWhereItIs) {
  for (const DamageCase& c : kDamage) {
    SCOPED_TRACE(c.what);
    store::MemoryStore store;
    MadeTrial trial(store);
    make_sound(trial);
    c.damage(trial);
    const auto report = verify_store(store);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->is_sound());
    EXPECT_EQ(report->damaged.count, c.damaged);
    EXPECT_EQ(report->missing.count, c.missing);
    EXPECT_EQ(report->values, c.values);
    const auto& found = c.damaged > 0 ? report->damaged.listed : report->missing.listed;
    ASSERT_FALSE(found.empty());
    EXPECT_THAT(found[0].path, HasSubstr(c.path));
    EXPECT_THAT(found[0].what, HasSubstr(c.says));
    EXPECT_EQ(found[0].offset.has_value(), c.has_offset);
  }
}

TEST(Verify, EveryFlippedBitOfValuesAndIndexIsNoticed) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_sound(trial);
  for (const std::string& path : {kEvents1, kIndex1, kCollections}) {
    const Bytes sound = trial.read(path);
    for (std::size_t position = 0; position < sound.size(); ++position) {
      trial.flip(path, position);
      const auto report = verify_store(store);
      ASSERT_TRUE(report.ok());
      // A change in the name of the checksum's own key leaves a file without one, which is counted.
      EXPECT_TRUE(!report->is_sound() || report->unverified_files == 1) << path << " at " << position;
      trial.write(path, sound);
    }
  }
}

TEST(Verify, ValuesWithoutChecksumAreCountedAsUnverified) {
  store::MemoryStore store;
  MadeTrial trial(store);
  trial.collections(1, "worker_0", /*checksum=*/false);
  trial.step({.step = 0, .values = {{"a", tensor_of<float>({1})}}, .has_checksums = false});
  trial.step({.step = 1, .values = {{"a", tensor_of<float>({1})}}});
  const auto report = verify_store(store);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->values, 2);
  EXPECT_EQ(report->unverified_values, 1);
  EXPECT_EQ(report->unverified_files, 2);
  EXPECT_EQ(report->run.state, RunState::kUnknown);
}

TEST(Verify, LeftoversAreListedAndAreNoDamage) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_sound(trial);
  trial.write_temporary(format::event_path(3, "worker_0"), "half");
  trial.write_temporary(format::index_path(3, "worker_0"), "");
  trial.write_temporary("claim-0123456789abcdef0123456789abcdef", "");
  trial.write(format::event_path(9, "worker_0"), "orphan");
  trial.write("events/readme.txt", "");
  trial.write("my_notes.txt", "");
  trial.write(std::string(format::kClaimPath), "");
  trial.write_temporary("attempts/1", "");
  const auto report = verify_store(store);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->temporary_files.count, 3);
  EXPECT_THAT(report->debris.listed, ElementsAre(format::event_path(9, "worker_0"), "attempts/1.tmp", "claim.smd"));
  EXPECT_THAT(report->foreign_files.listed, ElementsAre("events/readme.txt"));
}

TEST(Verify, AWorkerThatStoppedEarlyLeavesIncompleteSteps) {
  store::MemoryStore store;
  MadeTrial trial(store);
  for (const std::string worker : {"worker_0", "worker_1"}) {
    trial.collections(2, worker);
    for (std::int64_t step = 0; step < (worker == "worker_0" ? 4 : 2); ++step) {
      trial.step({.step = step, .values = {{"a", tensor_of<float>({1})}}, .worker = worker});
    }
  }
  const auto report = verify_store(store);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->steps, 4);
  EXPECT_EQ(report->step_parts, 6);
  EXPECT_THAT(report->incomplete.listed, ElementsAre(2, 3));
}

TEST(Verify, AttemptsAreCountedApart) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_sound(trial);
  for (const char* directory : {"index", "events", "collections", "training_job_end.ts"}) {
    ASSERT_TRUE(store.rename(directory, std::string("attempts/1/") + directory).ok());
  }
  trial.flip("attempts/1/" + kEvents1, 50);
  make_sound(trial);
  const auto report = verify_store(store);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->values, 6);
  ASSERT_EQ(report->attempts.size(), 1U);
  EXPECT_EQ(report->attempt_count, 1);
  EXPECT_EQ(report->attempts[0].path, "attempts/1");
  EXPECT_EQ(report->attempts[0].values, 5);
  EXPECT_EQ(report->attempts[0].damaged.listed.at(0).path, kEvents1);
  EXPECT_FALSE(report->is_sound_with_attempts());
}

TEST(Verify, AnIndexThatPointsAtOneRecordAMillionTimesDoesNotReadItAMillionTimes) {
  store::MemoryStore store;
  MadeTrial trial(store);
  trial.collections();
  auto encoded =
      MadeTrial::encode({.step = 0, .values = {{"a", Tensor(DType::kUint8, {1 << 20}, Bytes(1 << 20, 'x'))}}});
  encoded.index.tensors.resize(100'000, encoded.index.tensors[0]);
  trial.write(encoded.index.event_file, encoded.events);
  trial.write(format::index_path(0, "worker_0"), format::encode_index(encoded.index));
  const auto report = verify_store(store);
  ASSERT_TRUE(report.ok());
  EXPECT_LE(report->values, 4);
  EXPECT_EQ(report->values + report->damaged.count, 100'000);
  EXPECT_EQ(report->damaged.listed.size(), kMaxListed);
}

TEST(Verify, ProgressReachesTheTotalAndMayStop) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_sound(trial);
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  VerifyOptions options{.path = "t"};
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, all);
    last = done;
    total = all;
    return true;
  };
  ASSERT_TRUE(verify(store, options).ok());
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0U);
  options.progress = [](std::uint64_t, std::uint64_t) { return false; };
  EXPECT_EQ(verify(store, options).error().code, ErrorCode::kEnded);
}

TEST(Verify, WhatIsNoTrialIsAnError) {
  store::MemoryStore store;
  MadeTrial(store).write("notes.txt", "hello");
  const auto nothing = verify_store(store);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(nothing.error().message, HasSubstr("no trial"));
  EXPECT_EQ(verify({.path = testing::TempDir() + "/nowhere_at_all"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(verify({.path = ""}).error().code, ErrorCode::kInvalid);
}

format::Health health_of(format::RunState state, std::string host = "elsewhere") {
  format::Health health;
  health.process = {.host = std::move(host), .pid = 1, .start = 1};
  health.state = state;
  health.reason = state == format::RunState::kFailed ? "it said so" : "";
  return health;
}

TEST(Verify, TheStateOfTheRunIsToldFromItsFiles) {
  struct Case {
    const char* what;
    std::vector<format::RunState> workers;
    double age_s;
    bool has_marker;
    RunState expected;
  };
  const Case cases[] = {
      {"nothing but steps tells nothing", {}, 0, false, RunState::kUnknown},
      {"the marker ends a run", {}, 0, true, RunState::kEnded},
      {"a young health file on another host is a running run",
       {format::RunState::kRunning},
       5,
       false,
       RunState::kRunning},
      {"an old one is of a dead run", {format::RunState::kRunning}, 100, false, RunState::kPresumedDead},
      {"a run that said so failed", {format::RunState::kFailed}, 5, false, RunState::kFailed},
      {"a failed run with a marker failed", {format::RunState::kFailed}, 5, true, RunState::kFailed},
      {"all ended without marker is ended",
       {format::RunState::kEnded, format::RunState::kEnded},
       5,
       false,
       RunState::kEnded},
      {"one still running keeps the run going",
       {format::RunState::kFailed, format::RunState::kRunning},
       5,
       false,
       RunState::kRunning},
  };
  for (const Case& c : cases) {
    store::MemoryStore store;
    store.set_now_s(system_clock().wall_seconds() - c.age_s);
    MadeTrial trial(store);
    trial.collections();
    int number = 0;
    for (const format::RunState state : c.workers) {
      trial.write(format::health_path(fmt::format("worker_{}", number++)), format::encode_health(health_of(state)));
    }
    if (c.has_marker) trial.end();
    const auto status = judge_run(store);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->state, c.expected) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::tools
