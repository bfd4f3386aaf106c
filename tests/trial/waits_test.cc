// Everything that waits, on a clock that only moves when somebody sleeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/forwarding_store.h"
#include "trial_world.h"

namespace tornasole::trial {
namespace {

using testing::HasSubstr;

const ProcessIdentity kHere{.host = "here", .pid = 7, .start = 70};
const ProcessIdentity kElsewhere{.host = "elsewhere", .pid = 8, .start = 80};

// A directory that grows while it is read: the first listing after `miss` was set shows all but that path.
class GrowingStore final : public store::ForwardingStore {
 public:
  GrowingStore(std::unique_ptr<store::Store> base, std::string* miss) : ForwardingStore(std::move(base)), miss_(miss) {}

  Result<std::vector<store::Entry>> list(std::string_view directory, bool recursive) override {
    auto entries = ForwardingStore::list(directory, recursive);
    if (!entries || !recursive || miss_->empty()) return entries;
    if (std::erase_if(*entries, [this](const auto& entry) { return entry.path == *miss_; }) > 0) miss_->clear();
    return entries;
  }

 private:
  std::string* miss_;
};

TEST(Refresh, AStepThatAListingMissedIsNeverPassedOver) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write_steps(0, 2, {"worker_0"});
  std::string miss;
  TrialDependencies dependencies = world.dependencies();
  dependencies.store = std::make_unique<GrowingStore>(std::move(dependencies.store), &miss);
  auto trial = open_trial({.path = "/trials/world", .timeout_s = 0},
                          config::Environment(std::map<std::string, std::string>()), std::move(dependencies));
  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(numbers(trial->steps()), range(0, 2));
  world.write_steps(3, 5, {"worker_0"});
  miss = format::index_path(4, "worker_0");
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_EQ(numbers(trial->steps()), range(0, 5));
  EXPECT_EQ(trial->has_passed_step(global(4)), StepState::kAvailable);
}

TEST(Refresh, AStepPublishedDuringALookComesWithTheNext) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write_steps(0, 3, {"worker_0"});
  std::string miss = format::index_path(3, "worker_0");  // the first listing ends before it
  TrialDependencies dependencies = world.dependencies();
  dependencies.store = std::make_unique<GrowingStore>(std::move(dependencies.store), &miss);
  auto trial = open_trial({.path = "/trials/world", .timeout_s = 0},
                          config::Environment(std::map<std::string, std::string>()), std::move(dependencies));
  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(numbers(trial->steps()), range(0, 2));
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_EQ(numbers(trial->steps()), range(0, 3));
}

TEST(Opening, WaitsForTheCollectionsOfAllWorkers) {
  TrialWorld world;
  world.write_steps(0, 1, {"a", "b"});
  int polls = 0;
  world.on_sleep = [&] {
    ++polls;
    const format::CollectionsFile file{.num_workers = 2};
    if (polls == 3) world.put(format::collections_path("a"), format::encode_collections(file));
    if (polls == 5) world.put(format::collections_path("b"), format::encode_collections(file));
  };
  const Trial trial = must_open(world, {.timeout_s = 300});
  EXPECT_EQ(polls, 5);
  EXPECT_EQ(world.slept_s(), 10);
  EXPECT_EQ(trial.workers(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(trial.num_workers(), 2);
}

TEST(Opening, GivesUpWhenNothingComes) {
  TrialWorld world;
  const auto trial = world.open({.timeout_s = 30});
  ASSERT_FALSE(trial.ok());
  EXPECT_EQ(trial.error().kind, ErrorKind::kMissingCollectionFiles);
  EXPECT_EQ(trial.error().code, ErrorCode::kNotYet);
  EXPECT_EQ(world.slept_s(), 30);
}

TEST(Opening, DoesNotWaitAtAllWhenToldSo) {
  TrialWorld world;
  EXPECT_FALSE(world.open({.timeout_s = 0}).ok());
  EXPECT_EQ(world.slept_s(), 0);
}

TEST(Opening, DoesNotWaitForARunThatHasEnded) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  world.remove(format::collections_path("b"));
  world.write_steps(0, 1, {"a"});
  world.end();
  const auto failed = world.open({.on_damage = OnDamage::kFail, .timeout_s = {}});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kMissingCollectionFiles);
  EXPECT_EQ(failed.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(failed.error().message, HasSubstr("1 of 2"));
  const Trial skipped = must_open(world, {.timeout_s = {}});
  EXPECT_EQ(numbers(skipped.steps()), range(0, 1));
  EXPECT_EQ(skipped.damage_count(), 1);
}

TEST(Opening, RetriesACollectionsFileThatIsStillBeingWritten) {
  TrialWorld world;
  world.put(format::collections_path("a"), "{\"collections\": {");
  world.on_sleep = [&] { world.write_collections({"a"}); };
  EXPECT_EQ(must_open(world, {.on_damage = OnDamage::kFail, .timeout_s = 300}).workers(),
            std::vector<std::string>{"a"});
  EXPECT_EQ(world.slept_s(), 2);
}

TEST(Opening, SkipsUnreadableCollectionsAndTakesTheWorkersFromTheIndex) {
  TrialWorld world;
  world.put(format::collections_path("a"), "no collections");
  world.write_steps(0, 3, {"a", "b"});
  world.clock().advance(10);
  const Trial trial = must_open(world);
  EXPECT_TRUE(trial.collections().empty());
  EXPECT_EQ(trial.num_workers(), 2);
  EXPECT_EQ(numbers(trial.steps()), range(0, 3));
  const auto failed = world.open({.on_damage = OnDamage::kFail, .timeout_s = 0});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("a_collections.json"));
}

TEST(Opening, RefusesWhatCannotBeMeant) {
  const std::pair<TrialOptions, const char*> kRefused[] = {
      {{.path = "  "}, "empty"},
      {{.path = "/x", .first_step = -1}, "first_step is -1"},
      {{.path = "/x", .end_step = -3}, "end_step is -3"},
      {{.path = "/x", .first_step = 5, .end_step = 5}, "not after first_step 5"},
      {{.path = "/x", .timeout_s = -1.0}, "timeout_s is -1"},
      {{.path = "/x", .poll_s = 1e300}, "poll_s"},
      {{.path = "/x", .incomplete_step_window = -1}, "INCOMPLETE_STEP_WAIT_WINDOW is -1"},
      {{.path = "s3://a/prefix"}, "'a' cannot be a bucket"},
  };
  for (const auto& [options, what] : kRefused) {
    const auto trial = Trial::open(options);
    ASSERT_FALSE(trial.ok()) << what;
    EXPECT_THAT(trial.error().message, HasSubstr(what));
  }
}

TEST(Opening, NamesAndEnvironment) {
  const config::Environment environment(
      std::map<std::string, std::string>{{"SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "7"},
                                         {"TORNASOLE_INCOMPLETE_STEP_WAIT_WINDOW", "8"},
                                         {"SMDEBUG_TRAINING_END_DELAY_REFRESH", "3"},
                                         {"SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", " 4 "}});
  const auto settings = make_settings({.path = " /runs/mnist// "}, environment);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->name, "mnist");
  EXPECT_EQ(settings->path, "/runs/mnist");
  EXPECT_EQ(settings->incomplete_step_window, 8);
  EXPECT_EQ(settings->end_delay_s, 3);
  EXPECT_EQ(settings->missing_file_retries, 4);
  EXPECT_EQ(make_settings({.path = "/x", .name = "mine", .end_delay_s = 0.5}, environment)->end_delay_s, 0.5);
  const config::Environment wrong(std::map<std::string, std::string>{{"SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "many"}});
  EXPECT_THAT(make_settings({.path = "/x"}, wrong).error().message, HasSubstr("many"));
}

TEST(Waiting, EndsWhenTheStepComes) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  Trial trial = must_open(world, {.timeout_s = 300});
  int polls = 0;
  world.on_sleep = [&] {
    ++polls;
    world.write({.step = polls, .worker = "a"});
    if (polls > 2) world.write({.step = polls, .worker = "b"});
  };
  const ModeStep wanted[] = {global(3)};
  ASSERT_TRUE(trial.wait_for_steps(wanted).ok());
  EXPECT_EQ(polls, 3);
}

TEST(Waiting, GivesUpAfterSilence) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_steps(0, 1, {"a"});
  Trial trial = must_open(world, {.timeout_s = 20, .poll_s = 4});
  int polls = 0;
  // A sign of life in between starts the time anew.
  world.on_sleep = [&] {
    if (++polls == 2) world.write({.step = 2, .worker = "a"});
  };
  const ModeStep wanted[] = {global(9)};
  const Status waited = trial.wait_for_steps(wanted);
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().kind, ErrorKind::kStepNotYetAvailable);
  EXPECT_EQ(waited.error().code, ErrorCode::kNotYet);
  EXPECT_EQ(waited.error().details->last_step, 2);
  EXPECT_EQ(world.slept_s(), 28);
}

TEST(Waiting, AHeartbeatIsASignOfLife) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_health({.process = kElsewhere, .heartbeat = 1});
  Trial trial = must_open(world, {.timeout_s = 20});
  int polls = 0;
  world.on_sleep = [&] {
    if (++polls <= 10) world.write_health({.process = kElsewhere, .heartbeat = 1.0 + polls});
  };
  const ModeStep wanted[] = {global(0)};
  EXPECT_EQ(trial.wait_for_steps(wanted).error().kind, ErrorKind::kStepNotYetAvailable);
  EXPECT_EQ(world.slept_s(), 40);
}

struct EndedRun {
  const char* what;
  format::Health health;
  std::optional<bool> is_alive;  // by the probe; nothing: on another host
  RunState state;
  const char* reason;
  double slept_s;
};

TEST(Waiting, EndsWhenTheRunIsOver) {
  const EndedRun kRuns[] = {
      {"it said that it failed",
       {.process = kHere, .state = format::RunState::kFailed, .reason = "out of memory"},
       true,
       RunState::kFailed,
       "out of memory",
       0},
      {"its process is gone", {.process = kHere}, false, RunState::kPresumedDead, "process 7 on host here is gone", 0},
      {"it ended, and its marker is still to come",
       {.process = kHere, .state = format::RunState::kEnded},
       true,
       RunState::kEnded,
       "ended",
       0},
      {"another host, silent for six heartbeats",
       {.process = kElsewhere, .heartbeat = 5},
       {},
       RunState::kPresumedDead,
       "process 8 on host elsewhere gave no sign of life for 60 s",
       60},
      {"the same with an interval of a minute",
       {.process = kElsewhere, .heartbeat = 5, .heartbeat_interval_s = 60},
       {},
       RunState::kPresumedDead,
       "no sign of life for 360 s",
       360},
  };
  for (const EndedRun& c : kRuns) {
    SCOPED_TRACE(c.what);
    TrialWorld world;
    world.probe = [&](const ProcessIdentity&) { return c.is_alive; };
    world.write_collections({"a"});
    world.write_steps(0, 2, {"a"});
    world.write_health(c.health);
    Trial trial = must_open(world, {.timeout_s = {}, .poll_s = 1});
    const ModeStep known[] = {global(2)};
    EXPECT_TRUE(trial.wait_for_steps(known).ok());
    const ModeStep wanted[] = {global(3)};
    const Status waited = trial.wait_for_steps(wanted);
    ASSERT_FALSE(waited.ok());
    EXPECT_EQ(waited.error().kind, ErrorKind::kNoMoreData);
    EXPECT_THAT(waited.error().message, HasSubstr(c.reason));
    EXPECT_EQ(trial.run_status().state, c.state);
    EXPECT_EQ(world.slept_s(), c.slept_s);
    EXPECT_FALSE(trial.loaded_all_steps());
  }
}

TEST(RunState, WhatTheFilesSay) {
  TrialWorld world;
  world.write_collections({"a"});
  Trial trial = must_open(world);
  EXPECT_EQ(trial.run_status().state, RunState::kUnknown);
  world.probe = [](const ProcessIdentity& process) { return std::optional(process.pid == 7); };
  world.write_health({.process = kHere}, "worker_0");
  world.write_health({.process = kElsewhere}, "worker_1");
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(trial.run_status().state, RunState::kRunning) << "one worker of two lives";
  world.put(format::health_path("worker_0"), "{not a health file");
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(trial.run_status().state, RunState::kPresumedDead);
  world.end();
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(trial.run_status().state, RunState::kEnded);
}

TEST(WaitingForAValue, AStepThatIsStillToCome) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  Trial trial = must_open(world, {.timeout_s = 300});
  world.on_sleep = [&] { world.write({.step = 5, .tensors = {{"x", {4, 5}}}}); };
  const auto value = trial.wait_for_value("x", global(5));
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(value->values<float>()[1], 5);
}

TEST(WaitingForAValue, AnEventFileThatComesAfterItsIndex) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  const WrittenFile file{.step = 0, .has_event_file = false};
  world.write(file);
  Trial trial = must_open(world, {.timeout_s = 300});
  const auto now = trial.tensor("a", global(0));
  ASSERT_FALSE(now.ok());
  EXPECT_EQ(now.error().code, ErrorCode::kNotYet);
  EXPECT_EQ(now.error().kind, ErrorKind::kTensorUnavailableForStep);
  EXPECT_EQ(now.error().details->reason, "missing file");
  EXPECT_EQ(world.slept_s(), 0);
  int polls = 0;
  world.on_sleep = [&] {
    if (++polls == 4) world.put(format::event_path(0, "worker_0"), encode_files(file).events);
  };
  EXPECT_TRUE(trial.wait_for_value("a", global(0)).ok());
  EXPECT_EQ(polls, 4);
}

TEST(WaitingForAValue, GivesUpAfterItsTriesOrAtOnceWhenTheFileWasSkipped) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .has_event_file = false});
  Trial trial = must_open(world, {.timeout_s = {}, .missing_file_retries = 6});
  EXPECT_EQ(trial.wait_for_value("a", global(0)).error().kind, ErrorKind::kTensorUnavailableForStep);
  EXPECT_EQ(world.slept_s(), 12);
  world.write({.step = 1});
  ASSERT_TRUE(trial.refresh().ok());
  const auto skipped = trial.wait_for_value("a", global(0));
  EXPECT_EQ(skipped.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(world.slept_s(), 12);
}

TEST(WaitingForAFile, LoadsNothingNew) {
  TrialWorld world;
  world.write_collections({"worker_0", "worker_1"});
  const WrittenFile file{.step = 0, .tensors = {{"smdebug/reductions/mean/a", {7}}}, .has_event_file = false};
  world.write(file);
  Trial trial = must_open(world, {.timeout_s = 300});
  int polls = 0;
  world.on_sleep = [&] {
    if (++polls == 1) world.write({.step = 1, .worker = "worker_1"});
    if (polls == 3) world.put(format::event_path(0, "worker_0"), encode_files(file).events);
  };
  ASSERT_TRUE(trial.wait_for_file("a", global(0)).ok());
  EXPECT_EQ(polls, 3);
  EXPECT_EQ(*trial.tensor("a")->reduction_value(global(0), {.kind = ReductionKind::kMean}), 7);
  EXPECT_EQ(numbers(trial.steps(Mode::kGlobal, StepFilter::kIncludingIncomplete)), range(0, 0));
}

TEST(WaitingForAFile, EndsWhenTheRunIsOver) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .has_event_file = false});
  Trial trial = must_open(world, {.timeout_s = 300});
  int polls = 0;
  world.on_sleep = [&] {
    if (++polls == 2) world.end();
  };
  EXPECT_TRUE(trial.wait_for_file("a", global(0)).ok());
  EXPECT_EQ(polls, 2);
  EXPECT_EQ(trial.tensor("a", global(0)).error().code, ErrorCode::kNotFound);
}

TEST(Waiting, SleepsAsToldAndEndsWhenTheSleeperSaysSo) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  std::vector<double> slept;
  Trial trial = must_open(world, {.timeout_s = {}, .sleep = [&](double seconds) {
                                    slept.push_back(seconds);
                                    return slept.size() < 3;
                                  }});
  ASSERT_TRUE(trial.set_waiting({}, 0.25).ok());
  const std::vector<ModeStep> wanted = {global(4)};
  const Status ended = trial.wait_for_steps(wanted);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kNotYet);
  EXPECT_EQ(ended.error().kind, ErrorKind::kRuntime);
  EXPECT_EQ(slept, (std::vector<double>{0.25, 0.25, 0.25}));
  EXPECT_EQ(world.slept_s(), 0);
  ASSERT_TRUE(trial.set_waiting(0, 1).ok());
  EXPECT_EQ(trial.wait_for_steps(wanted).error().kind, ErrorKind::kStepNotYetAvailable);
  EXPECT_EQ(trial.set_waiting(-1, 1).error().kind, ErrorKind::kValue);
}

TEST(Refreshing, AnIndexFileStillBeingWrittenIsTriedAgain) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  const std::string path = format::index_path(1, "worker_0");
  world.write_steps(0, 0, {"worker_0"});
  world.put(path, "");
  // A later step is complete, so the token moves past the file.
  world.write_steps(2, 2, {"worker_0"});
  Trial trial = must_open(world, {.on_damage = OnDamage::kFail, .timeout_s = 0});
  EXPECT_EQ(numbers(trial.steps()), (std::vector<std::int64_t>{0, 2}));
  const EncodedFiles files = encode_files({.step = 1});
  world.put(path, files.index.substr(0, files.index.size() / 2));
  ASSERT_TRUE(trial.refresh().ok());
  world.put(format::event_path(1, "worker_0"), files.events);
  world.put(path, files.index);
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(numbers(trial.steps()), range(0, 2));
  EXPECT_TRUE(trial.tensor("a", global(1)).ok());
  EXPECT_EQ(trial.damage_count(), 0);
}

TEST(Refreshing, AnOldDamagedIndexFileIsDamage) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.put(format::index_path(1, "worker_0"), "");
  Trial skipping = must_open(world);
  Trial failing = must_open(world, {.on_damage = OnDamage::kFail, .timeout_s = 0});
  EXPECT_EQ(skipping.damage_count(), 0);
  world.clock().advance(6);
  ASSERT_TRUE(skipping.refresh().ok());
  ASSERT_EQ(skipping.damage().size(), 1U);
  EXPECT_EQ(skipping.damage()[0].path, format::index_path(1, "worker_0"));
  for (int i = 0; i < 2; ++i) {
    const Status failed = failing.refresh();
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().kind, ErrorKind::kIndexReader);
    EXPECT_THAT(failed.error().message, HasSubstr(format::index_path(1, "worker_0")));
  }
  ASSERT_TRUE(skipping.refresh().ok());
  EXPECT_EQ(skipping.damage_count(), 1) << "reported once";
}

TEST(Refreshing, CollectionsFilesAreReadAgainWhenTheyChange) {
  TrialWorld world;
  world.write_collections({"a"}, {{.name = "weights", .tensor_names = {"w1"}}});
  world.write({.step = 0, .worker = "a", .tensors = {{"w1"}, {"w2"}}});
  Trial trial = must_open(world);
  EXPECT_EQ(*trial.tensor_names({.collection = "weights"}), std::vector<std::string>{"w1"});
  trial.collection("mine").include_regex = {"2$"};
  world.clock().advance(1);
  world.write_collections({"a"}, {{.name = "weights", .tensor_names = {"w1", "w2"}}});
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(trial.tensor_names({.collection = "weights"})->size(), 2U);
  EXPECT_EQ(*trial.tensor_names({.collection = "mine"}), std::vector<std::string>{"w2"});
}

}  // namespace
}  // namespace tornasole::trial
