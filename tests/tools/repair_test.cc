#include "tools/repair.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "tools/dead_runs.h"

namespace tornasole::tools {
namespace {

using testing::HasSubstr;

TEST(Repair, WholeRecordsOfTheOpenStepArePublishedAsPartial) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  const auto open = MadeTrial::encode(sample_step(2));
  const std::size_t cut = open.index.tensors[2].offset + 7;
  trial.write_temporary(format::event_path(2, "worker_0"), open.events.substr(0, cut));
  trial.write_temporary(format::index_path(2, "worker_0"), "");
  const Files before = files_of(store);

  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->steps_published, 1);
  EXPECT_EQ(report->values_published, 2);
  EXPECT_EQ(report->bytes_lost, 7U);
  const auto index = index_at(trial, 2);
  ASSERT_TRUE(index.ok()) << index.error().message;
  EXPECT_TRUE(index->is_partial);
  EXPECT_TRUE(index->is_verified);
  EXPECT_EQ(index->mode, Mode::kEval);
  EXPECT_EQ(index->mode_step, 4);
  ASSERT_EQ(index->tensors.size(), 2U);
  EXPECT_EQ(index->tensors[1].name, "b");
  EXPECT_EQ(index->tensors[1].crc, open.index.tensors[1].crc);
  EXPECT_TRUE(store.status(format::kEndMarkerPath).ok());
  expect_good_repair(store, before);
}

TEST(Repair, TheRunIsClosedWithItsReasonAndItsSum) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  trial.step(sample_step(2));
  const Files before = files_of(store);
  ASSERT_TRUE(repair(store, no_waiting()).ok());
  const auto health = format::decode_health(trial.read(format::health_path("worker_0")));
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->state, format::RunState::kFailed);
  EXPECT_THAT(health->reason, HasSubstr("stopped without a word"));
  EXPECT_THAT(health->reason, HasSubstr(fmt::format("{}", dead_process().pid)));
  EXPECT_EQ(health->committed, 3);
  EXPECT_EQ(health->last_committed, 2);
  EXPECT_EQ(health->dropped.at("process_died"), 2);
  EXPECT_EQ(health->due, 5);
  EXPECT_FALSE(store.status(format::kClaimPath).ok());
  expect_good_repair(store, before);
}

TEST(Repair, AStepThatOnlyLackedTheNameOfItsIndexIsNotPartial) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  const auto open = MadeTrial::encode(sample_step(2));
  trial.write(open.index.event_file, open.events);
  trial.write_temporary(format::index_path(2, "worker_0"), format::encode_index(open.index));
  const Files before = files_of(store);
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->actions.listed.at(0).kind, RepairActionKind::kPublishIndex);
  EXPECT_FALSE(index_at(trial, 2)->is_partial);
  EXPECT_EQ(index_at(trial, 2)->tensors.size(), 3U);
  expect_good_repair(store, before);
}

TEST(Repair, AnEventFileThatGotItsNameButNoIndexGetsOne) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  const auto open = MadeTrial::encode(sample_step(2));
  trial.write(open.index.event_file, open.events);
  trial.write_temporary(format::index_path(2, "worker_0"), format::encode_index(open.index).substr(0, 40));
  const Files before = files_of(store);
  ASSERT_TRUE(repair(store, no_waiting()).ok());
  EXPECT_TRUE(index_at(trial, 2)->is_partial);
  EXPECT_EQ(index_at(trial, 2)->tensors.size(), 3U);
  expect_good_repair(store, before);
}

TEST(Repair, WhatHoldsNoWholeValueIsRemoved) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  trial.write_temporary(format::event_path(2, "worker_0"), "torn");
  trial.write_temporary(format::event_path(1, "worker_0"), "of a step that is published");
  trial.write_temporary("tornasole/worker_0_health.json", "{");
  trial.write_temporary("collections/000000000/worker_0_collections.json", "{");
  trial.write_temporary("tensorboard/TRAIN/000000000001_1_h.tfevents", "torn");
  const Files before = files_of(store);
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->steps_published, 0);
  EXPECT_EQ(report->files_removed, 6);  // the claim is the sixth
  expect_good_repair(store, before);
}

TEST(Repair, ARecordThatIsDamagedInTheMiddleCostsItself) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  auto open = MadeTrial::encode(sample_step(2));
  // The wire format is broken, the frame is not.
  open.events[open.index.tensors[1].offset + format::kRecordHeaderBytes] = '\xff';
  trial.write_temporary(format::event_path(2, "worker_0"), open.events);
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->values_published, 2);
  EXPECT_EQ(report->bytes_lost, open.index.tensors[1].length);
  const auto index = index_at(trial, 2);
  ASSERT_EQ(index->tensors.size(), 2U);
  EXPECT_EQ(index->tensors[1].name, "c");
}

TEST(Repair, MissingCollectionsFilesAreWritten) {
  struct Case {
    const char* what;
    std::vector<std::string> have;
    std::int64_t num_workers;
    std::int64_t world_size;  // of run.json; 0: there is none
    std::vector<std::string> steps_of;
    std::vector<std::string> expected;
  };
  const Case cases[] = {
      {"a run killed in its first step has none yet", {}, 0, 1, {"worker_0"}, {"worker_0"}},
      {"the run file knows how many workers there are", {}, 0, 3, {"worker_1"}, {"worker_0", "worker_1", "worker_2"}},
      {"so does another worker's file", {"worker_1"}, 2, 0, {"worker_1"}, {"worker_0", "worker_1"}},
      {"a worker with steps and without file gets one", {"worker_1"}, 2, 0, {"w"}, {"w", "worker_1"}},
      {"nothing is missing", {"worker_0"}, 1, 1, {"worker_0"}, {"worker_0"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    store::MemoryStore store;
    MadeTrial trial(store);
    write_health(trial, dead_process());
    for (const std::string& worker : c.have) trial.collections(c.num_workers, worker);
    if (c.world_size > 0) {
      const format::RunFile run{.run_id = "r", .start = 1, .world_size = c.world_size};
      trial.write(std::string(format::kRunPath), format::encode_run(run));
    }
    for (const std::string& worker : c.steps_of) {
      trial.write_temporary(format::event_path(0, worker), MadeTrial::encode(sample_step(0, worker)).events);
    }
    const Files before = files_of(store);
    ASSERT_TRUE(repair(store, no_waiting()).ok());
    std::vector<std::string> workers;
    for (const auto& [path, content] : files_of(store)) {
      if (!path.ends_with("_collections.json")) continue;
      const std::string name = path.substr(path.rfind('/') + 1);
      workers.push_back(name.substr(0, name.rfind("_collections")));
      const auto file = format::decode_collections(content);
      ASSERT_TRUE(file.ok());
      EXPECT_EQ(file->num_workers, static_cast<std::int64_t>(c.expected.size()));
    }
    EXPECT_EQ(workers, c.expected);
    expect_good_repair(store, before);
  }
}

TEST(Repair, WhatCannotBeListedIsLeftAlone) {
  store::MemoryStore store;
  MadeTrial trial(store);
  write_health(trial, dead_process());
  trial.write("index", "a file in place of the directory");
  trial.write(format::event_path(0, "worker_0"), MadeTrial::encode(sample_step(0)).events);
  const Files before = files_of(store);
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->changes_nothing());
  EXPECT_EQ(report->problems.count, 1);
  EXPECT_EQ(files_of(store), before);
}

TEST(Repair, OneNumberInAFileMakesNoDirectoryOfFiles) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  trial.collections(60'000);
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->problems.count, 1);
  EXPECT_LT(files_of(store).size(), 20U);
}

TEST(Repair, ALiveRunIsRefusedByName) {
  struct Case {
    const char* what;
    std::function<void(MadeTrial&)> make;
  };
  const Case cases[] = {
      {"a live process of this host", [](MadeTrial& t) { write_health(t, this_process()); }},
      {"a claim of a live process",
       [](MadeTrial& t) {
         ASSERT_TRUE(t.store().remove(format::health_path("worker_0")).ok());
         t.write(std::string(format::kClaimPath), format::encode_claim(this_process()));
       }},
      {"a live process although the end marker is there",
       [](MadeTrial& t) {
         write_health(t, this_process());
         t.end();
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    store::MemoryStore store;
    MadeTrial trial(store);
    make_dead(trial);
    c.make(trial);
    trial.write_temporary(format::event_path(2, "worker_0"), MadeTrial::encode(sample_step(2)).events);
    const Files before = files_of(store);
    for (const bool dry_run : {false, true}) {
      RepairOptions options = no_waiting();
      options.dry_run = dry_run;
      const auto report = repair(store, options);
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.error().kind, ErrorKind::kRuntime);
      EXPECT_THAT(report.error().message, HasSubstr(fmt::format("process {}", this_process().pid)));
      EXPECT_EQ(files_of(store), before);
    }
  }
}

TEST(Repair, AWriterOnAnotherHostIsWatchedBeforeItCountsAsDead) {
  store::MemoryStore store;
  store.set_now_s(1000);
  MadeTrial trial(store);
  make_dead(trial);
  write_health(trial, {.host = "elsewhere", .pid = 7, .start = 7});
  const std::string health_path = format::health_path("worker_0");
  double slept = 0;
  bool writes = true;
  RepairOptions options;
  options.sleep = [&](double seconds) {
    slept += seconds;
    store.set_now_s(1000 + slept);
    if (writes && slept > 5 && slept < 7) write_health(trial, {.host = "elsewhere", .pid = 7, .start = 7});
  };
  const auto refused = repair(store, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("elsewhere"));
  writes = false;
  const auto repaired = repair(store, options);
  ASSERT_TRUE(repaired.ok()) << repaired.error().message;
  EXPECT_GE(slept, 60);
}

TEST(Repair, ARunWithoutHealthFileMustBeQuietFirst) {
  store::MemoryStore store;
  store.set_now_s(1000);
  MadeTrial trial(store);
  trial.collections();
  trial.step(sample_step(0));
  trial.write(std::string(format::kClaimPath), "");  // as smdebug leaves it
  store.set_now_s(1030);
  RepairOptions options = no_waiting();
  const auto busy = repair(store, options);
  ASSERT_FALSE(busy.ok());
  EXPECT_THAT(busy.error().message, HasSubstr("changed 30 s ago"));
  store.set_now_s(1061);
  const Files before = files_of(store);
  ASSERT_TRUE(repair(store, options).ok());
  expect_good_repair(store, before);
}

TEST(Repair, ADryRunSaysWhatWouldBeDoneAndChangesNothing) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  trial.write_temporary(format::event_path(2, "worker_0"), MadeTrial::encode(sample_step(2)).events);
  trial.write_temporary(format::event_path(3, "worker_0"), "torn");
  trial.write_temporary("tornasole/worker_0_health.json", "{");
  const Files before = files_of(store);
  RepairOptions options = no_waiting();
  options.dry_run = true;
  const auto planned = repair(store, options);
  ASSERT_TRUE(planned.ok()) << planned.error().message;
  EXPECT_TRUE(planned->dry_run);
  EXPECT_EQ(files_of(store), before);
  const auto done = repair(store, no_waiting());
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(done->dry_run);
  ASSERT_EQ(planned->actions.count, done->actions.count);
  for (std::size_t i = 0; i < done->actions.listed.size(); ++i) {
    EXPECT_EQ(planned->actions.listed[i].kind, done->actions.listed[i].kind);
    EXPECT_EQ(planned->actions.listed[i].path, done->actions.listed[i].path);
    EXPECT_EQ(planned->actions.listed[i].detail, done->actions.listed[i].detail);
  }
  expect_good_repair(store, before);
}

TEST(Repair, AttemptsAreRepairedToo) {
  store::MemoryStore store;
  MadeTrial trial(store);
  make_dead(trial);
  trial.write_temporary(format::event_path(2, "worker_0"), MadeTrial::encode(sample_step(2)).events);
  for (const char* name : {"index", "events", "collections", "tornasole"}) {
    ASSERT_TRUE(store.rename(name, std::string("attempts/1/") + name).ok());
  }
  // The move was interrupted: the claim is still in the root.
  trial.write_temporary("attempts/1", "");
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok()) << report.error().message;
  const Files files = files_of(store);
  EXPECT_TRUE(files.contains("attempts/1/" + format::index_path(2, "worker_0")));
  EXPECT_TRUE(files.contains("attempts/1/training_job_end.ts"));
  EXPECT_FALSE(files.contains("training_job_end.ts"));
  EXPECT_FALSE(files.contains("attempts/1.tmp"));
  const auto again = repair(store, no_waiting());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(again->changes_nothing());
}

TEST(Repair, AFinishedRunIsOnlyCleared) {
  store::MemoryStore store;
  MadeTrial trial(store);
  trial.collections();
  trial.step(sample_step(0));
  write_health(trial, dead_process(), format::RunState::kEnded);
  trial.end();
  trial.write_temporary(format::index_path(0, "worker_0"), "");
  const Files before = files_of(store);
  const auto report = repair(store, no_waiting());
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->actions.count, 1);
  EXPECT_EQ(report->actions.listed[0].kind, RepairActionKind::kRemove);
  expect_good_repair(store, before);
}

TEST(Repair, WhatIsNoTrialIsAnError) {
  store::MemoryStore store;
  MadeTrial(store).write("notes.txt", "hello");
  EXPECT_EQ(repair(store, no_waiting()).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(files_of(store).size(), 1U);
  EXPECT_EQ(repair({.path = testing::TempDir() + "/nowhere_at_all"}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tornasole::tools
