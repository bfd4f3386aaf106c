// Several processes that want one directory, moves that are interrupted, and runs of several workers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "base/errors.h"
#include "capture/run_lock.h"
#include "capture/run_world.h"

namespace tornasole::capture {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const auto kYield = [](double) { std::this_thread::yield(); };

// ---- two that want the same

TEST(RunRace, OfSeveralThreadsOneTakesADeadRunOver) {
  constexpr int kRounds = 30;
  constexpr int kThreads = 4;
  const auto dead = dead_process();
  for (int round = 0; round < kRounds; ++round) {
    World world(/*is_local=*/true);
    world.put_dead_run(dead);
    std::atomic<int> winners = 0;
    std::atomic<int> waiting = kThreads;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const auto store = store::open_local_store(world.root());
        RunDirectory run(store->get(), &world.clock, world.identity());
        for (--waiting; waiting > 0;) std::this_thread::yield();
        std::int64_t first = -1;
        const Status begun = run.begin(kYield, &first);
        if (begun.ok()) ++winners;
        if (!begun.ok()) {
          EXPECT_EQ(begun.error().code, ErrorCode::kInvalid) << begun.error().message;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1) << "round " << round;
    EXPECT_TRUE(world.has("attempts/1/" + format::index_path(1007, "worker_0")));
    EXPECT_FALSE(world.has("attempts/2"));
    EXPECT_EQ(world.files().size(), world.files("attempts").size() + 3) << "claim, health, run.json";
  }
}

TEST(RunRace, OfSeveralThreadsOneStartsInAFreshDirectory) {
  for (int round = 0; round < 30; ++round) {
    World world(/*is_local=*/false);
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        RunDirectory run(&world.store(), &world.clock, world.identity());
        std::int64_t first = -1;
        if (run.begin(kYield, &first).ok()) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1) << "round " << round;
    EXPECT_FALSE(world.has("attempts"));
  }
}

// Reports '1' for a won directory, '0' for a lost one, and then lives on, so that the winner stays alive.
[[noreturn]] void compete(const std::string& root, int start, int report) {
  char go = 0;
  while (read(start, &go, 1) < 0) {
  }
  const auto store = store::open_local_store(root);
  RunIdentity identity;
  identity.process = this_process();
  identity.run_id = make_run_id();
  identity.start_time = system_clock().wall_seconds();
  RunDirectory run(store->get(), &system_clock(), identity);
  std::int64_t first = -1;
  const char result = run.begin(kYield, &first).ok() ? '1' : '0';
  if (write(report, &result, 1) != 1) _exit(1);
  while (true) pause();
}

TEST(RunRace, OfSeveralProcessesOneTakesADeadRunOver) {
  constexpr int kProcesses = 4;
  for (int round = 0; round < 10; ++round) {
    World world(/*is_local=*/true);
    world.put_dead_run(dead_process());
    std::array<int, 2> start{};
    std::array<int, 2> report{};
    ASSERT_EQ(pipe(start.data()), 0);
    ASSERT_EQ(pipe(report.data()), 0);
    std::array<pid_t, kProcesses> children{};
    for (pid_t& child : children) {
      child = fork();
      if (child == 0) {
        close(start[1]);
        compete(world.root(), start[0], report[1]);
      }
    }
    close(start[1]);  // all of them read the end of the pipe at once
    int winners = 0;
    for (int i = 0; i < kProcesses; ++i) {
      char result = 0;
      ASSERT_EQ(read(report[0], &result, 1), 1);
      winners += result == '1' ? 1 : 0;
    }
    for (const pid_t child : children) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    for (const int end : {start[0], report[0], report[1]}) close(end);
    ASSERT_EQ(winners, 1) << "round " << round;
    EXPECT_FALSE(world.has("attempts/2"));
    // The winner is dead now: its run is the second attempt.
    RunDirectory next(&world.store(), &world.clock, world.identity());
    std::int64_t first = -1;
    ASSERT_TRUE(next.begin(kYield, &first).ok());
    EXPECT_TRUE(world.has("attempts/2/tornasole/run.json"));
  }
}

TEST(SetUpLock, ADeadOwnerHoldsNothingAndALiveOneHoldsOn) {
  World world(/*is_local=*/true);
  const std::string dead_name = "claim-" + std::string(32, 'a') + ".tmp";
  world.put(dead_name, format::encode_claim(dead_process()));
  {
    const auto lock = SetUpLock::acquire(&world.store(), this_process(), kNoSleep);
    ASSERT_TRUE(lock.ok()) << lock.error().message;
    EXPECT_FALSE(world.has(dead_name)) << "debris is cleared";
    int slept = 0;
    const auto second = SetUpLock::acquire(&world.store(), this_process(), [&](double) { ++slept; });
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(getpid())));
    EXPECT_LE(slept, 200);
  }
  EXPECT_THAT(world.files(), IsEmpty());
  const std::string unreadable = "claim-" + std::string(32, '0') + ".tmp";
  world.put(unreadable, "?", 10);
  EXPECT_FALSE(SetUpLock::acquire(&world.store(), this_process(), kNoSleep).ok()) << "it may be on its way";
  world.put(unreadable, "?", 65);
  EXPECT_TRUE(SetUpLock::acquire(&world.store(), this_process(), kNoSleep).ok());
}

// ---- death in the middle

// After `left` changes nothing works any more, as if the process had died there.
class DyingStore final : public WrappedStore {
 public:
  DyingStore(store::Store* inner, int changes) : WrappedStore(inner), left(changes) {}
  Result<std::unique_ptr<store::PendingFile>> create(std::string_view path) override {
    if (--left < 0) return io_error("dead");
    return WrappedStore::create(path);
  }
  Status create_exclusive(std::string_view path, ByteView content) override {
    return --left < 0 ? io_error("dead") : WrappedStore::create_exclusive(path, content);
  }
  Status remove(std::string_view path) override { return --left < 0 ? io_error("dead") : WrappedStore::remove(path); }
  Status rename(std::string_view from, std::string_view to) override {
    return --left < 0 ? io_error("dead") : WrappedStore::rename(from, to);
  }
  int left;
};

TEST(RunMove, DeathAtAnyPointLosesNothingAndTheNextRunCompletesIt) {
  const auto dead = dead_process();
  int points = 0;
  for (int changes = 0;; ++changes) {
    SCOPED_TRACE(changes);
    World world(/*is_local=*/changes % 2 == 0);
    world.put_dead_run(dead);
    world.put("stop_request.json", "{}");
    const auto before = world.files();
    DyingStore dying(&world.store(), changes);
    std::int64_t first = -1;
    RunDirectory victim(&dying, &world.clock, world.identity(dead));
    const bool has_begun = victim.begin(kNoSleep, &first).ok();

    RunDirectory next(&world.store(), &world.clock, world.identity());
    const Status begun = next.begin(kNoSleep, &first);
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    for (const std::string& path : before) EXPECT_TRUE(world.has("attempts/1/" + path)) << path;
    EXPECT_EQ(world.text("attempts/1/" + format::index_path(1007, "worker_0")), "index of 1007");
    EXPECT_EQ(world.files("attempts/1").size(), before.size()) << "nothing of the later runs is mixed in";
    EXPECT_THAT(world.files("index"), IsEmpty());
    for (const std::string& path : world.files("attempts")) EXPECT_EQ(path.find("attempts/1.tmp"), std::string::npos);
    EXPECT_EQ(next.look()->last_step, -1);
    if (has_begun && dying.left >= 0) break;
    ++points;
  }
  EXPECT_GT(points, 10);
}

TEST(RunMove, WhatStandsInTheWayGoesToTheNextAttempt) {
  World world(/*is_local=*/true);
  world.put("attempts/1/index/000000000/000000000001_worker_0.json", "first");
  world.put("attempts/1.tmp", "");
  world.put_step(2);
  RunDirectory run(&world.store(), &world.clock, world.identity());
  std::int64_t first = -1;
  const Status begun = run.begin(kNoSleep, &first);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  EXPECT_EQ(world.text("attempts/1/index/000000000/000000000001_worker_0.json"), "first");
  EXPECT_EQ(world.text("attempts/2/" + format::index_path(2, "worker_0")), "index of 2");
  EXPECT_FALSE(world.has("attempts/1.tmp"));
}

// ---- several workers

RunIdentity worker(const World& world, int rank, std::int64_t count, const ProcessIdentity& process = this_process()) {
  RunIdentity identity = world.identity(process);
  identity.worker = "worker_" + std::to_string(rank);
  identity.is_chief = rank == 0;
  identity.writer_count = count;
  return identity;
}

TEST(RunWorkers, OthersAdoptTheRunOfTheChief) {
  for (const bool is_local : {false, true}) {
    World world(is_local);
    world.put_dead_run(dead_process());
    RunDirectory chief(&world.store(), &world.clock, worker(world, 0, 2));
    RunDirectory other(&world.store(), &world.clock, worker(world, 1, 2));
    EXPECT_TRUE(other.check(kNoSleep).ok());
    std::int64_t first = -1;
    int polls = 0;
    const auto sleep = [&](double seconds) {
      EXPECT_EQ(seconds, 0.05);
      std::int64_t chief_first = -1;
      if (++polls == 5) {
        ASSERT_TRUE(chief.begin(kNoSleep, &chief_first).ok());
      }
    };
    const Status joined = other.begin(sleep, &first);
    ASSERT_TRUE(joined.ok()) << joined.error().message;
    EXPECT_EQ(polls, 5);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(other.run_id(), chief.run_id());
    EXPECT_FALSE(world.has("claim.smd")) << "workers of one run do not compete";
    EXPECT_EQ(format::decode_health(world.text(format::health_path("worker_1")))->run_id, chief.run_id());
    EXPECT_EQ(format::decode_run(world.text("tornasole/run.json"))->world_size, 2);
    EXPECT_TRUE(world.has("attempts/1/" + format::index_path(1007, "worker_0")));
  }
}

struct JoinCase {
  const char* what;
  std::function<void(World&)> prepare;
  bool is_joined;
  double most_seconds;
  const char* message = "";
};

TEST(RunWorkers, ARunFileIsBelievedIfItsRunMayBeThisOne) {
  const LiveProcess child;
  const auto put_run = [](World& w, const char* id, double start_ago_s, double age_s) {
    w.put("tornasole/run.json", format::encode_run({id, w.clock.wall_s - start_ago_s, 2}), age_s);
  };
  const JoinCase cases[] = {
      {"none comes", [](World&) {}, false, 30.1, "there is no tornasole/run.json"},
      {"garbage", [](World& w) { w.put("tornasole/run.json", "]"); }, false, 30.1, "unreadable"},
      {"a run without an id", [&](World& w) { put_run(w, "", 0, 0); }, false, 30.1, "run_id of 0 bytes"},
      {"one written since this worker started", [&](World& w) { put_run(w, "a", 300, 0); }, true, 0},
      {"one of a chief that started 11 minutes earlier", [&](World& w) { put_run(w, "a", 660, 0); }, false, 30.1,
       "earlier run"},
      {"an older one whose writer lives",
       [&](World& w) { put_run(w, "a", 300, 200), w.put_health("worker_0", child.identity(), 200, {}, "a"); }, true, 0},
      {"an older one whose writer is dead",
       [&](World& w) { put_run(w, "a", 300, 200), w.put_health("worker_0", dead_process(), 200, {}, "a"); }, false,
       30.1, "earlier run"},
      {"an older one whose writer on another host may live is believed in the end",
       [&](World& w) { put_run(w, "a", 300, 200), w.put_health("worker_0", remote_process(), 5, {}, "a"); }, true,
       30.1},
      {"a finished run", [&](World& w) { put_run(w, "a", 300, 0), w.put("training_job_end.ts", ""); }, false, 0,
       "finished run"},
      {"another run that lives",
       [&](World& w) { put_run(w, "a", 0, 0), w.put_health("worker_7", child.identity(), 0, {}, "b"); }, false, 0,
       "another run"},
      {"a dead one of another run is no hindrance",
       [&](World& w) { put_run(w, "a", 0, 0), w.put_health("worker_7", dead_process(), 0, {}, "b"); }, true, 0},
      {"one elsewhere that was silent since the run began is no hindrance",
       [&](World& w) { put_run(w, "a", 0, 0), w.put_health("worker_7", remote_process(), 9, {}, "b"); }, true, 0},
  };
  for (const JoinCase& c : cases) {
    SCOPED_TRACE(c.what);
    World world(/*is_local=*/false);
    c.prepare(world);
    RunDirectory run(&world.store(), &world.clock, worker(world, 1, 2));
    std::int64_t first = -1;
    double slept_s = 0;
    const Status joined = run.begin([&](double seconds) { slept_s += seconds; }, &first);
    EXPECT_EQ(joined.ok(), c.is_joined) << (joined.ok() ? "" : joined.error().message);
    EXPECT_LE(slept_s, c.most_seconds);
    if (joined.ok()) {
      EXPECT_EQ(run.run_id(), "a");
    }
    if (!joined.ok()) {
      EXPECT_THAT(joined.error().message, HasSubstr(c.message));
    }
  }
}

TEST(RunWorkers, ANewHeartbeatProvesAnOlderRun) {
  World world(/*is_local=*/false);
  world.put("tornasole/run.json", format::encode_run({"a", world.clock.wall_s - 300, 2}), 200);
  world.put_health("worker_0", remote_process(), 5, {}, "a");
  RunDirectory run(&world.store(), &world.clock, worker(world, 1, 2));
  int polls = 0;
  std::int64_t first = -1;
  const auto sleep = [&](double) {
    if (++polls == 9) world.put_health("worker_0", remote_process(), 0, {}, "a");
  };
  ASSERT_TRUE(run.begin(sleep, &first).ok());
  EXPECT_EQ(polls, 9);
}

TEST(RunWorkers, AllContinueAtTheSameStep) {
  World world(/*is_local=*/false);
  world.put_dead_run(dead_process());
  RunIdentity chief_identity = worker(world, 0, 2);
  chief_identity.resume = true;
  RunDirectory chief(&world.store(), &world.clock, chief_identity);
  std::int64_t first = -1;
  ASSERT_TRUE(chief.begin(kNoSleep, &first).ok());
  EXPECT_EQ(first, 1008);
  world.clock.wall_s += 1;
  world.put_step(1008, "worker_0", 0);
  RunIdentity late_identity = worker(world, 1, 2);
  late_identity.start_time -= 20;
  late_identity.resume = true;
  RunDirectory late(&world.store(), &world.clock, late_identity);
  ASSERT_TRUE(late.begin(kNoSleep, &first).ok());
  EXPECT_EQ(first, 1008) << "the chief's new step is not one of the run that is continued";
}

TEST(RunWorkers, TheLastOneToFinishMarksTheEnd) {
  for (const bool is_local : {false, true}) {
    World world(is_local);
    LiveProcess killed;
    RunDirectory chief(&world.store(), &world.clock, worker(world, 0, 4));
    RunDirectory early(&world.store(), &world.clock, worker(world, 1, 4));
    RunDirectory victim(&world.store(), &world.clock, worker(world, 2, 4, killed.identity()));
    RunDirectory last(&world.store(), &world.clock, worker(world, 3, 4));
    std::int64_t first = -1;
    for (RunDirectory* run : {&chief, &early, &victim}) ASSERT_TRUE(run->begin(kNoSleep, &first).ok());
    ASSERT_TRUE(early.end({}).ok());
    EXPECT_FALSE(world.has("training_job_end.ts"));
    ASSERT_TRUE(chief.end({.state = format::RunState::kFailed}).ok());
    EXPECT_FALSE(world.has("training_job_end.ts")) << "one lives, one is yet to come";
    ASSERT_TRUE(last.begin(kNoSleep, &first).ok());
    killed.kill_and_collect();
    EXPECT_FALSE(world.has("training_job_end.ts"));
    ASSERT_TRUE(last.end({}).ok());
    EXPECT_TRUE(world.has("training_job_end.ts"));
  }
}

TEST(RunWorkers, TheChiefRefusesALiveRunAndNamesIt) {
  World world(/*is_local=*/true);
  const LiveProcess child;
  world.put_health("worker_5", child.identity());
  RunDirectory chief(&world.store(), &world.clock, worker(world, 0, 2));
  EXPECT_TRUE(chief.check(kNoSleep).ok()) << "with several workers the chief looks at its first write";
  std::int64_t first = -1;
  const Status begun = chief.begin(kNoSleep, &first);
  ASSERT_FALSE(begun.ok());
  EXPECT_THAT(begun.error().message, AllOf(HasSubstr("live run"), HasSubstr(std::to_string(child.identity().pid))));
  EXPECT_FALSE(world.has("tornasole/run.json"));
}

}  // namespace
}  // namespace tornasole::capture
