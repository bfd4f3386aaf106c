#include "capture/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/errors.h"
#include "capture/run_world.h"
#include "format/index.h"
#include "support/tests_dir.h"

namespace tornasole::capture {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(Process, ThisOneIsAliveUntilItIsNot) {
  EXPECT_EQ(is_process_alive(this_process()), true);
  EXPECT_EQ(is_process_alive(remote_process()), std::nullopt);
  LiveProcess child;
  EXPECT_EQ(is_process_alive(child.identity()), true);
  ProcessIdentity reused = child.identity();
  reused.start -= 1;
  EXPECT_EQ(is_process_alive(reused), false) << "the same number, but another process";
  child.kill_without_collecting();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.identity().pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(is_process_alive(child.identity()), false) << "a zombie is dead";
  child.kill_and_collect();
  EXPECT_EQ(is_process_alive(child.identity()), false);
  for (const std::int64_t pid : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    EXPECT_EQ(is_process_alive({.host = this_process().host, .pid = pid}), false) << pid;
  }
}

TEST(Process, RunIdsAreHexAndDiffer) {
  const std::string id = make_run_id();
  EXPECT_THAT(id, ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(id.size(), 32U);
  EXPECT_NE(id, make_run_id());
}

class OnEachStore : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Stores, OnEachStore, ::testing::Values(false, true),
                         [](const auto& instance) { return instance.param ? "Local" : "Memory"; });

struct LookCase {
  const char* what;
  std::function<void(World&)> prepare;
  Occupant occupant;
  std::int64_t last_step = -1;
  const char* description = "";
};

TEST_P(OnEachStore, LookTellsWhoIsThere) {
  const LiveProcess child;
  const auto alive = child.identity();
  const auto dead = dead_process();
  const LookCase cases[] = {
      {"an absent directory is nobody's", [](World&) {}, Occupant::kNobody},
      {"files of others are nobody's", [](World& w) { w.put("train.py", "x"); }, Occupant::kNobody},
      {"earlier attempts are nobody's", [](World& w) { w.put("attempts/1/index/000000000/000000000001_w.json", "x"); },
       Occupant::kNobody},
      {"the marker means finished", [](World& w) { w.put("training_job_end.ts", ""); }, Occupant::kFinished},
      {"the marker wins over a live writer",
       [&](World& w) { w.put("training_job_end.ts", ""), w.put_health("worker_0", alive); }, Occupant::kFinished},
      {"steps without a name are a dead run", [](World& w) { w.put_step(5), w.put_step(1234); }, Occupant::kDead, 1234,
       "left no name"},
      {"the last step is that of any worker, in any bucket",
       [](World& w) { w.put_step(5, "worker_1"), w.put("index/000000000/000000009999_worker_0.json", "x"); },
       Occupant::kDead, 9999},
      {"names that are no steps do not count",
       [](World& w) { w.put("index/000000000/junk.json", "x"), w.put("index/-00000000001_w.json", "x"); },
       Occupant::kDead, -1},
      {"an unpublished index is no step",
       [](World& w) { w.put("index/000000000/000000000007_worker_0.json.tmp", "x"); }, Occupant::kDead, -1},
      {"an empty claim is of a dead run", [](World& w) { w.put("claim.smd", ""); }, Occupant::kDead},
      {"a live process is live", [&](World& w) { w.put_health("worker_0", alive, 1000); }, Occupant::kLive, -1,
       "process "},
      {"one live worker of several is enough",
       [&](World& w) { w.put_health("worker_0", dead), w.put_health("worker_1", alive); }, Occupant::kLive},
      {"a dead process is dead at once", [&](World& w) { w.put_health("worker_0", dead, 0); }, Occupant::kDead, -1,
       "process "},
      {"a live process that ended its run is no writer",
       [&](World& w) { w.put_health("worker_0", alive, 0, format::RunState::kEnded); }, Occupant::kDead},
      {"a claim alone names a live owner", [&](World& w) { w.put("claim.smd", format::encode_claim(alive)); },
       Occupant::kLive},
      {"a claim alone of a dead owner", [&](World& w) { w.put("claim.smd", format::encode_claim(dead)); },
       Occupant::kDead},
      {"a claim left by a process that failed and lives on",
       [&](World& w) {
         w.put("claim.smd", format::encode_claim(alive)), w.put_health("worker_0", alive, 0, format::RunState::kFailed);
       },
       Occupant::kDead},
      {"another host, heard of lately, may live", [](World& w) { w.put_health("worker_0", remote_process(), 50); },
       Occupant::kLive, -1, "process 4711 on host elsewhere"},
      {"another host, silent for a minute, is dead", [](World& w) { w.put_health("worker_0", remote_process(), 65); },
       Occupant::kDead},
      {"another host that writes in the future is dead",
       [](World& w) { w.put_health("worker_0", remote_process(), -3600); }, Occupant::kDead},
      {"a claim of another host without health dies of age",
       [](World& w) { w.put("claim.smd", format::encode_claim(remote_process()), 65); }, Occupant::kDead},
      {"garbage for health is described", [](World& w) { w.put("tornasole/worker_0_health.json", "\xff{"); },
       Occupant::kDead, -1, "worker_0_health.json is unreadable"},
      {"a huge health file is not read",
       [](World& w) { w.put("tornasole/worker_0_health.json", std::string(300 << 10, ' ')); }, Occupant::kDead, -1,
       "at most"},
      {"negative numbers are damage",
       [](World& w) {
         w.put("tornasole/worker_0_health.json",
               R"({"version": 1, "host": "h", "pid": -5, "start": -1, "state": "running", "heartbeat": -1})");
       },
       Occupant::kDead, -1, "unreadable"},
      {"control characters in a host name are escaped",
       [](World& w) { w.put_health("worker_0", {.host = "\x1b[2Jh", .pid = 1, .start = 1}, 10); }, Occupant::kLive, -1,
       "\\x1b"},
      {"a name that is no worker is not looked at", [](World& w) { w.put("tornasole/a b_health.json", "{}"); },
       Occupant::kDead, -1, "left no name"},
      {"values without an index are a dead run", [](World& w) { w.put("events/000000000000/x.tfevents.tmp", "x"); },
       Occupant::kDead},
  };
  for (const LookCase& c : cases) {
    SCOPED_TRACE(c.what);
    World world(GetParam());
    c.prepare(world);
    const auto files = world.files();
    const auto seen = RunDirectory(&world.store(), &world.clock, world.identity()).look();
    ASSERT_TRUE(seen.ok()) << seen.error().message;
    EXPECT_EQ(seen->occupant, c.occupant) << seen->description;
    EXPECT_EQ(seen->last_step, c.last_step);
    EXPECT_THAT(seen->description, HasSubstr(c.description));
    EXPECT_EQ(world.files(), files) << "looking writes nothing";
  }
}

TEST(RunDirectory, PipesAndLinksAreDamage) {
  World world(/*is_local=*/true);
  world.put("tornasole/run.json", "{}");
  ASSERT_EQ(mkfifo((world.root() + "/tornasole/worker_0_health.json").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((world.root() + "/claim.smd").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/etc/passwd", (world.root() + "/tornasole/worker_1_health.json").c_str()), 0);
  RunDirectory run(&world.store(), &world.clock, world.identity());
  const auto seen = run.look();
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  EXPECT_EQ(seen->occupant, Occupant::kDead);
  EXPECT_THAT(seen->description, HasSubstr("unreadable"));
  std::int64_t first = -1;
  const Status begun = run.begin(kNoSleep, &first);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  struct stat status{};
  ASSERT_EQ(lstat((world.root() + "/attempts/1/tornasole/worker_0_health.json").c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
}

TEST_P(OnEachStore, CheckRefusesFinishedAndLiveRuns) {
  const LiveProcess child;
  World finished(GetParam());
  finished.put("training_job_end.ts", "");
  const Status first = RunDirectory(&finished.store(), &finished.clock, finished.identity()).check(kNoSleep);
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(first.error().kind, ErrorKind::kRuntime);
  EXPECT_EQ(first.error().details->reason, "occupied");
  EXPECT_THAT(first.error().message, HasSubstr("finished run"));

  World live(GetParam());
  live.put_health("worker_0", child.identity());
  const Status second = RunDirectory(&live.store(), &live.clock, live.identity()).check(kNoSleep);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kRuntime);
  EXPECT_EQ(second.error().details->reason, "occupied");
  EXPECT_THAT(second.error().message, AllOf(HasSubstr("live run"), HasSubstr(child.identity().host),
                                            HasSubstr(std::to_string(child.identity().pid))));

  World dead(GetParam());
  dead.put_dead_run(dead_process());
  EXPECT_TRUE(RunDirectory(&dead.store(), &dead.clock, dead.identity()).check(kNoSleep).ok());
}

struct WatchCase {
  const char* what;
  std::function<void(World&, int second)> happens;
  bool is_refused;
  int most_seconds;
};

TEST_P(OnEachStore, CheckWatchesAWriterOnAnotherHost) {
  const WatchCase cases[] = {
      {"one that stays silent is dead after a minute", [](World&, int) {}, false, 65},
      {"one that gives a heartbeat is live",
       [](World& w, int second) {
         if (second == 7) w.put_health("worker_0", remote_process(), 0);
       },
       true, 7},
      {"one that ends meanwhile is over",
       [](World& w, int second) {
         if (second == 3) w.put_health("worker_0", remote_process(), 0, format::RunState::kEnded);
       },
       false, 3},
      {"one that finishes meanwhile has finished",
       [](World& w, int second) {
         if (second == 3) w.put("training_job_end.ts", "");
       },
       true, 3},
  };
  for (const WatchCase& c : cases) {
    SCOPED_TRACE(c.what);
    World world(GetParam());
    world.put_health("worker_0", remote_process(), 20);
    int slept = 0;
    RunDirectory run(&world.store(), &world.clock, world.identity());
    const auto sleep = [&](double seconds) {
      EXPECT_EQ(seconds, 1);
      c.happens(world, ++slept);
    };
    EXPECT_EQ(!run.check(sleep).ok(), c.is_refused);
    EXPECT_LE(slept, c.most_seconds);
    EXPECT_GT(slept, 0);
  }
}

TEST_P(OnEachStore, BeginTakesOverFromASilentWriterElsewhere) {
  World world(GetParam());
  world.put_step(4);
  world.put_health("worker_0", remote_process(), 20);
  int slept = 0;
  RunDirectory run(&world.store(), &world.clock, world.identity());
  std::int64_t first = -1;
  const Status begun = run.begin([&](double) { ++slept; }, &first);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  EXPECT_LE(slept, 65);
  EXPECT_TRUE(world.has("attempts/1/" + format::index_path(4, "worker_0")));
}

TEST_P(OnEachStore, AFreshDirectoryIsClaimed) {
  World world(GetParam());
  world.put("train.py", "x");
  const RunIdentity identity = world.identity();
  RunDirectory run(&world.store(), &world.clock, identity);
  std::int64_t first = -1;
  EXPECT_FALSE(run.publish_health({}).ok()) << "not before begin";
  const Status begun = run.begin(kNoSleep, &first);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  EXPECT_EQ(first, 0);
  EXPECT_TRUE(run.has_begun());
  EXPECT_THAT(world.files(),
              UnorderedElementsAre("claim.smd", "tornasole/run.json", "tornasole/worker_0_health.json", "train.py"));
  EXPECT_EQ(format::decode_claim(world.text("claim.smd")).value(), identity.process);
  const auto written = format::decode_run(world.text("tornasole/run.json"));
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->run_id, identity.run_id);
  EXPECT_EQ(written->world_size, 1);
  EXPECT_EQ(run.look()->occupant, Occupant::kDead) << "its own files are of no live stranger";
  EXPECT_EQ(RunDirectory(&world.store(), &world.clock, world.identity()).look()->occupant, Occupant::kLive);
  EXPECT_FALSE(run.begin(kNoSleep, &first).ok()) << "once is enough";
}

TEST_P(OnEachStore, ADeadRunIsMovedAsideWhole) {
  World world(GetParam());
  world.put_dead_run(dead_process());
  world.put("stop_request.json", "{}");
  world.put("tensorboard/TRAIN/x.tfevents", "t");
  const auto before = world.files();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    RunDirectory run(&world.store(), &world.clock, world.identity(dead_process()));
    std::int64_t first = -1;
    const Status begun = run.begin(kNoSleep, &first);
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    EXPECT_EQ(first, 0);
    const auto moved = world.files("attempts/" + std::to_string(attempt));
    EXPECT_EQ(moved.size(), attempt == 1 ? before.size() : 3U);
  }
  for (const std::string& path : before) EXPECT_TRUE(world.has("attempts/1/" + path)) << path;
  EXPECT_EQ(world.text("attempts/1/" + format::event_path(1007, "worker_0")), "values of 1007");
  EXPECT_THAT(world.files("index"), IsEmpty());
  EXPECT_FALSE(world.has("stop_request.json"));
}

TEST_P(OnEachStore, AClaimAloneIsTakenOverWithoutAnAttempt) {
  World world(GetParam());
  world.put("claim.smd", "");
  RunDirectory run(&world.store(), &world.clock, world.identity());
  std::int64_t first = -1;
  ASSERT_TRUE(run.begin(kNoSleep, &first).ok());
  EXPECT_FALSE(world.has("attempts"));
  EXPECT_EQ(format::decode_claim(world.text("claim.smd")).value(), this_process());
}

TEST_P(OnEachStore, ResumeContinuesAfterTheLastStep) {
  World world(GetParam());
  world.put_dead_run(dead_process());
  world.put("index/000000001/000000001008_worker_0.json.tmp", "{", 100);
  world.put("stop_request.json", "{}", 100);
  RunIdentity identity = world.identity();
  identity.resume = true;
  RunDirectory run(&world.store(), &world.clock, identity);
  std::int64_t first = -1;
  const Status begun = run.begin(kNoSleep, &first);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  EXPECT_EQ(first, 1008);
  EXPECT_EQ(world.text(format::event_path(3, "worker_0")), "values of 3");
  EXPECT_EQ(world.text(format::index_path(1007, "worker_0")), "index of 1007");
  EXPECT_FALSE(world.has("attempts"));
  EXPECT_FALSE(world.has("stop_request.json")) << "it was meant for the run before";
  for (const std::string& path : world.files()) EXPECT_THAT(path, Not(::testing::EndsWith(".tmp")));
  EXPECT_EQ(format::decode_claim(world.text("claim.smd")).value(), this_process());
}

TEST_P(OnEachStore, ResumeKeepsAStopRequestOfItsOwn) {
  World world(GetParam());
  world.put_dead_run(dead_process());
  world.put("stop_request.json", "{}", 5);
  RunIdentity identity = world.identity();
  identity.resume = true;
  identity.start_time -= 60;
  std::int64_t first = -1;
  ASSERT_TRUE(RunDirectory(&world.store(), &world.clock, identity).begin(kNoSleep, &first).ok());
  EXPECT_TRUE(world.has("stop_request.json"));
}

TEST_P(OnEachStore, ResumePublishesAStepThatLackedOnlyItsLastRename) {
  World world(GetParam());
  world.put_dead_run(dead_process());
  const format::Index index{.mode = Mode::kTrain, .mode_step = 4, .event_file = format::event_path(2000, "worker_0")};
  const format::Index orphan{.mode = Mode::kTrain, .mode_step = 5, .event_file = format::event_path(2001, "worker_0")};
  world.put(index.event_file, "values");
  world.put(format::index_path(2000, "worker_0") + ".tmp", format::encode_index(index));
  world.put(format::index_path(2001, "worker_0") + ".tmp", format::encode_index(orphan));
  RunIdentity identity = world.identity();
  identity.resume = true;
  std::int64_t first = -1;
  ASSERT_TRUE(RunDirectory(&world.store(), &world.clock, identity).begin(kNoSleep, &first).ok());
  EXPECT_EQ(first, 2001);
  EXPECT_EQ(world.text(format::index_path(2000, "worker_0")), format::encode_index(index));
  EXPECT_FALSE(world.has(format::index_path(2001, "worker_0"))) << "its values were never published";
  EXPECT_FALSE(world.has(format::index_path(2001, "worker_0") + ".tmp"));
}

class ObjectStore final : public WrappedStore {
 public:
  using WrappedStore::WrappedStore;
  store::Capabilities capabilities() const noexcept override { return {.can_rename = false, .can_claim = false}; }
  Status create_exclusive(std::string_view path, ByteView) override {
    return unsupported_error("create {} exclusively", path);
  }
  Status rename(std::string_view from, std::string_view) override { return unsupported_error("rename {}", from); }
};

TEST(RunDirectory, WhereNothingCanBeMovedTheUserChooses) {
  World world(/*is_local=*/false);
  world.put_dead_run(dead_process());
  ObjectStore store(&world.store());
  RunIdentity identity = world.identity();
  std::int64_t first = -1;
  for (const Status& refused : {RunDirectory(&store, &world.clock, identity).check(kNoSleep),
                                RunDirectory(&store, &world.clock, identity).begin(kNoSleep, &first)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kRuntime);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("resume=True"), HasSubstr("another prefix"), HasSubstr("step 1007")));
  }
  identity.resume = true;
  RunDirectory run(&store, &world.clock, identity);
  ASSERT_TRUE(run.begin(kNoSleep, &first).ok());
  EXPECT_EQ(first, 1008);
  ASSERT_TRUE(run.end({}).ok());
  EXPECT_TRUE(world.has("training_job_end.ts"));
}

TEST_P(OnEachStore, EndWritesHealthAndMarkerAndGivesTheClaimBack) {
  for (const auto state : {format::RunState::kEnded, format::RunState::kFailed, format::RunState::kRunning}) {
    World world(GetParam());
    RunDirectory run(&world.store(), &world.clock, world.identity());
    std::int64_t first = -1;
    EXPECT_FALSE(run.end({}).ok()) << "nothing to end";
    ASSERT_TRUE(run.begin(kNoSleep, &first).ok());
    world.clock.wall_s += 12;
    const Status ended = run.end({.state = state, .reason = "why", .due = 7});
    ASSERT_TRUE(ended.ok()) << ended.error().message;
    const auto health = format::decode_health(world.text(format::health_path("worker_0")));
    ASSERT_TRUE(health.ok());
    EXPECT_EQ(health->state, state == format::RunState::kFailed ? state : format::RunState::kEnded);
    EXPECT_EQ(health->due, 7);
    EXPECT_EQ(health->heartbeat, world.clock.wall_s);
    EXPECT_EQ(world.text("training_job_end.ts"), "");
    EXPECT_FALSE(world.has("claim.smd"));
    EXPECT_FALSE(run.publish_health({}).ok()) << "the last word is said";
    EXPECT_FALSE(RunDirectory(&world.store(), &world.clock, world.identity()).check(kNoSleep).ok());
  }
}

TEST_P(OnEachStore, AClearedDirectoryIsNotFilledAgain) {
  World world(GetParam());
  RunDirectory run(&world.store(), &world.clock, world.identity());
  std::int64_t first = -1;
  ASSERT_TRUE(run.begin(kNoSleep, &first).ok());
  ASSERT_TRUE(run.publish_health({}).ok());
  for (const std::string& path : world.files()) ASSERT_TRUE(world.store().remove(path).ok());
  const Status published = run.publish_health({});
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(world.files(), IsEmpty());
}

TEST_P(OnEachStore, InAManagedJobThereIsNoMarker) {
  World world(GetParam());
  RunIdentity identity = world.identity();
  identity.in_sagemaker = true;
  RunDirectory run(&world.store(), &world.clock, identity);
  std::int64_t first = -1;
  ASSERT_TRUE(run.begin(kNoSleep, &first).ok());
  ASSERT_TRUE(run.end({}).ok());
  EXPECT_FALSE(world.has("training_job_end.ts"));
  EXPECT_FALSE(world.has("claim.smd"));
}

TEST_P(OnEachStore, ASecondHookOfTheProcessStartsANewAttempt) {
  World world(GetParam());
  RunDirectory first_hook(&world.store(), &world.clock, world.identity());
  first_hook.release();
  EXPECT_THAT(world.files(), IsEmpty()) << "nothing was begun, so nothing is given up";
  std::int64_t first = -1;
  ASSERT_TRUE(first_hook.begin(kNoSleep, &first).ok());
  world.put_step(0);
  ASSERT_TRUE(first_hook.publish_health({.committed = 1}).ok());
  RunDirectory second_hook(&world.store(), &world.clock, world.identity());
  EXPECT_FALSE(second_hook.check(kNoSleep).ok()) << "the first one still writes";
  first_hook.release();
  EXPECT_FALSE(first_hook.has_begun());
  EXPECT_FALSE(world.has("claim.smd"));
  EXPECT_FALSE(world.has("training_job_end.ts"));
  ASSERT_TRUE(second_hook.check(kNoSleep).ok());
  ASSERT_TRUE(second_hook.begin(kNoSleep, &first).ok());
  const auto health = format::decode_health(world.text("attempts/1/" + format::health_path("worker_0")));
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->state, format::RunState::kFailed);
  EXPECT_EQ(health->reason, "superseded by a new hook of the same process");
  EXPECT_EQ(health->committed, 1) << "what was known stays known";
  EXPECT_TRUE(world.has("attempts/1/" + format::index_path(0, "worker_0")));
}

class FullStore final : public WrappedStore {
 public:
  using WrappedStore::WrappedStore;
  Result<std::unique_ptr<store::PendingFile>> create(std::string_view path) override {
    if (is_full) return io_error("create {}: no space", path);
    return WrappedStore::create(path);
  }
  bool is_full = false;
};

TEST(RunDirectory, AFullDiskDoesNotMakeASupersededHookLookAlive) {
  World world(/*is_local=*/true);
  FullStore store(&world.store());
  RunDirectory first_hook(&store, &world.clock, world.identity());
  std::int64_t first = -1;
  ASSERT_TRUE(first_hook.begin(kNoSleep, &first).ok());
  store.is_full = true;
  EXPECT_EQ(first_hook.publish_health({}).error().code, ErrorCode::kIo);
  first_hook.release();
  store.is_full = false;
  EXPECT_TRUE(RunDirectory(&store, &world.clock, world.identity()).begin(kNoSleep, &first).ok());
}

TEST(RunDirectory, AFullDiskAtTheEndStillGivesTheClaimBack) {
  World world(/*is_local=*/true);
  FullStore store(&world.store());
  RunDirectory run(&store, &world.clock, world.identity());
  std::int64_t first = -1;
  ASSERT_TRUE(run.begin(kNoSleep, &first).ok());
  store.is_full = true;
  EXPECT_EQ(run.end({}).error().code, ErrorCode::kIo);
  EXPECT_FALSE(world.has("claim.smd"));
  EXPECT_TRUE(world.has("training_job_end.ts"));
}

TEST_P(OnEachStore, ARunThatWasPresumedDeadNoticesItsSuccessor) {
  World world(GetParam());
  const auto stopped = dead_process();
  RunDirectory sleeper(&world.store(), &world.clock, world.identity(stopped));
  RunDirectory successor(&world.store(), &world.clock, world.identity());
  std::int64_t first = -1;
  ASSERT_TRUE(sleeper.begin(kNoSleep, &first).ok());
  ASSERT_TRUE(successor.begin(kNoSleep, &first).ok());
  const std::string health = world.text(format::health_path("worker_0"));
  EXPECT_EQ(sleeper.publish_health({}).error().code, ErrorCode::kEnded);
  EXPECT_EQ(sleeper.end({}).error().code, ErrorCode::kEnded);
  EXPECT_EQ(world.text(format::health_path("worker_0")), health);
  EXPECT_FALSE(world.has("training_job_end.ts"));
  EXPECT_TRUE(world.has("claim.smd"));
}

// ---- runs written by the original debugger

void copy_golden(const std::string& name, const World& world) {
  std::filesystem::copy(tests_dir() + "/golden/smdebug/" + name + "/trial", world.root(),
                        std::filesystem::copy_options::recursive);
}

TEST(RunDirectory, AnInterruptedRunOfTheOriginalIsMovedAsideUnchanged) {
  World world(/*is_local=*/true);
  copy_golden("interrupted", world);
  const auto before = world.files();
  ASSERT_THAT(before, ::testing::Contains("claim.smd"));
  std::vector<std::string> contents;
  for (const std::string& path : before) contents.push_back(world.text(path));
  RunDirectory run(&world.store(), &world.clock, world.identity());
  ASSERT_TRUE(run.check(kNoSleep).ok());
  std::int64_t first = -1;
  const Status begun = run.begin(kNoSleep, &first);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(world.text("attempts/1/" + before[i]), contents[i]);
  EXPECT_EQ(world.files("attempts").size(), before.size());
}

TEST(RunDirectory, ARunOfTheOriginalIsContinuedAfterItsLastStep) {
  World world(/*is_local=*/true);
  copy_golden("spot_resume", world);
  RunIdentity identity = world.identity();
  identity.resume = true;
  EXPECT_FALSE(RunDirectory(&world.store(), &world.clock, identity).check(kNoSleep).ok()) << "it has finished";
  ASSERT_TRUE(world.store().remove("training_job_end.ts").ok());
  const auto before = world.files();
  std::int64_t first = -1;
  ASSERT_TRUE(RunDirectory(&world.store(), &world.clock, identity).begin(kNoSleep, &first).ok());
  EXPECT_EQ(first, 11);
  for (const std::string& path : before) EXPECT_TRUE(world.has(path)) << path;
}

TEST(RunDirectory, AManagedRunOfTheOriginalHasNoMarkerAndIsTakenForDead) {
  World world(/*is_local=*/true);
  copy_golden("sagemaker_metrics", world);
  const auto seen = RunDirectory(&world.store(), &world.clock, world.identity()).look();
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->occupant, Occupant::kDead);
  EXPECT_EQ(seen->last_step, 3);
}

}  // namespace
}  // namespace tornasole::capture
