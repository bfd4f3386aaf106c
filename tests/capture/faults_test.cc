// What goes wrong around a hook, and what the hook makes of it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "capture/open_hook.h"
#include "capture/run_resume.h"
#include "capture/written_trial.h"
#include "format/index.h"
#include "format/paths.h"
#include "store/local/local_store.h"
#include "store/memory/memory_store.h"
#include "support/faulty_store.h"

namespace tornasole::capture {
namespace {

const std::vector<float> kValues(100, 1.5F);

HookOptions quiet_options() {
  HookOptions options{.out_dir = "/nowhere/run", .save_config = {.save_interval = 1}, .save_all = true};
  options.log = nullptr;
  return options;
}

std::int64_t sum(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t total = 0;
  for (const auto& [cause, count] : counts) total += count;
  return total;
}

// A clock that tests move.
class HandClock final : public Clock {
 public:
  double wall_seconds() const noexcept override { return 1'700'000'000.0 + static_cast<double>(now_ns_) * 1e-9; }
  std::int64_t monotonic_ns() const noexcept override { return now_ns_; }
  void advance_s(std::int64_t seconds) { now_ns_ += seconds * 1'000'000'000; }

 private:
  std::atomic<std::int64_t> now_ns_ = 1;
};

TEST(Faults, AStepThatFailsIsDroppedAndTheNextIsWritten) {
  store::MemoryStore store;
  auto wrapped = store::wrap_store("fail:2@append", store.share());
  ASSERT_TRUE(wrapped.ok()) << wrapped.error().message;
  auto hook = open_hook(quiet_options(), {.store = std::move(*wrapped)});
  ASSERT_TRUE(hook.ok());
  for (int i = 0; i < 10; ++i) hook->begin_step(Mode::kTrain).save("x", kValues);
  EXPECT_FALSE(hook->close().ok());
  const CaptureReport report = hook->report();
  EXPECT_EQ(report.due_steps, 10);
  EXPECT_EQ(report.committed_steps + sum(report.dropped_steps), 10);
  EXPECT_GE(report.committed_steps, 8) << report.errors.at(0) << report.errors.at(1);
  EXPECT_EQ(static_cast<std::int64_t>(read_steps(store).size()), report.committed_steps);
  for (const std::string& name : file_names(store)) EXPECT_FALSE(name.ends_with(".tmp")) << name;
}

TEST(Faults, FiveFailuresSwitchCaptureOffAndAMinuteLaterItIsTriedAgain) {
  store::MemoryStore store;
  HandClock clock;
  auto control = std::make_shared<store::FailureControl>(store::FailurePlan{.first = 0});
  auto failing = std::make_unique<store::FailingStore>(store.share(), control);
  auto hook = open_hook(quiet_options(), {.store = std::move(failing), .clock = &clock});
  ASSERT_TRUE(hook.ok());
  const auto step = [&] {
    const CaptureReport before = hook->report();
    hook->begin_step(Mode::kTrain).save("x", kValues);
    // Until the writer has decided about it.
    for (;;) {
      const CaptureReport now = hook->report();
      if (now.committed_steps + sum(now.dropped_steps) > before.committed_steps + sum(before.dropped_steps)) return;
      std::this_thread::yield();
    }
  };
  step();
  EXPECT_EQ(hook->report().committed_steps, 1);
  control->set_plan({.call = store::Call::kCreate, .first = 1, .is_lasting = true});
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(sum(hook->report().dropped_steps), 5);
  control->heal();
  step();  // off: not even tried
  EXPECT_EQ(hook->report().dropped_steps.at("off"), 1);
  EXPECT_EQ(hook->report().committed_steps, 1);
  clock.advance_s(61);
  step();
  EXPECT_EQ(hook->report().committed_steps, 2);
  step();
  EXPECT_EQ(hook->report().committed_steps, 3);
  EXPECT_FALSE(hook->close().ok());
  EXPECT_EQ(read_health(store).due, 9);
}

TEST(Faults, AFullQueueDropsWholeStepsWithinTheLimits) {
  store::MemoryStore store;
  auto control = std::make_shared<store::HangControl>(1);
  HookOptions options = quiet_options();
  options.queue_bytes = 4 << 20;
  options.queue_wait_ms = 10;
  options.close_wait_s = 0.2;
  auto hook = open_hook(options, {.store = std::make_unique<store::HangStore>(store.share(), control)});
  ASSERT_TRUE(hook.ok());
  const std::vector<float> large(200'000);
  for (int i = 0; i < 20; ++i) hook->begin_step(Mode::kTrain).save("x", large);
  EXPECT_FALSE(hook->close().ok());
  const CaptureReport report = hook->report();
  EXPECT_EQ(report.due_steps, 20);
  EXPECT_EQ(report.committed_steps + sum(report.dropped_steps), 20);
  EXPECT_GT(report.dropped_steps.at("queue_full"), 0);
  EXPECT_LE(report.queue_peak_bytes, 4 << 20);
}

TEST(Faults, AThrowingLogHookChangesNothing) {
  store::MemoryStore store;
  HookOptions options = quiet_options();
  options.include_collections = {"nobody"};
  options.log = [](LogLevel, std::string_view) { throw std::runtime_error("log"); };
  {
    auto hook = open_hook(options, {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    hook->begin_step(Mode::kTrain).save("", kValues);
    hook->begin_step(Mode::kTrain).save("x", kValues);
  }
  EXPECT_EQ(step_numbers(store), std::vector<std::int64_t>{1});
}

TEST(Faults, StrictModeAbortsAtTheFirstFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        setenv("TORNASOLE_STRICT", "1", 1);
        store::MemoryStore store;
        auto hook = open_hook(quiet_options(), {.store = store.share()});
        hook->begin_step(Mode::kTrain).save("", kValues);
      },
      "strict mode: bad_name");
}

TEST(Faults, TwoHooksInOneProcessWriteSideBySide) {
  store::MemoryStore first_store;
  store::MemoryStore second_store;
  HookOptions second_options = quiet_options();
  second_options.out_dir = "/nowhere/other";
  {
    auto first = open_hook(quiet_options(), {.store = first_store.share()});
    auto second = open_hook(second_options, {.store = second_store.share()});
    ASSERT_TRUE(first.ok() && second.ok());
    std::thread other([&] {
      for (int i = 0; i < 50; ++i) second->begin_step(Mode::kTrain).save("y", kValues);
    });
    for (int i = 0; i < 50; ++i) first->begin_step(Mode::kTrain).save("x", kValues);
    other.join();
  }
  EXPECT_EQ(read_steps(first_store).size(), 50U);
  EXPECT_EQ(read_steps(second_store).size(), 50U);
}

TEST(Faults, ASecondHookOnTheSameDirectoryClosesTheFirstAndStartsAnew) {
  store::MemoryStore store;
  auto first = open_hook(quiet_options(), {.store = store.share()});
  ASSERT_TRUE(first.ok());
  first->begin_step(Mode::kTrain).save("first", kValues);
  auto second = open_hook(quiet_options(), {.store = store.share()});
  ASSERT_TRUE(second.ok()) << second.error().message;
  first->begin_step(Mode::kTrain).save("ignored", kValues);
  second->begin_step(Mode::kTrain).save("second", kValues);
  EXPECT_TRUE(second->close().ok());
  const auto steps = read_steps(store);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_TRUE(steps.at(0).values.contains("second"));
  EXPECT_TRUE(store.status("attempts/1/index").ok());
}

// What only the writer thread knew of is a leak to a child, which has no such thread: a leak checker would say so.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCanChildExit = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kCanChildExit = false;
#else
constexpr bool kCanChildExit = true;
#endif
#else
constexpr bool kCanChildExit = true;
#endif

TEST(Faults, AForkedChildNeitherWritesNorHangs) {
  store::MemoryStore store;
  auto hook = open_hook(quiet_options(), {.store = store.share()});
  ASSERT_TRUE(hook.ok());
  hook->begin_step(Mode::kTrain).save("x", kValues);
  for (const bool exits : {true, false}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(300);
      auto step = hook->begin_step(Mode::kTrain);
      step.save("child", kValues);
      step.end();
      hook->save_scalar("child", 1);
      const Status closed = hook->close();
      if (exits && kCanChildExit) exit(closed.ok() ? 0 : 1);
      _exit(closed.ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  hook->begin_step(Mode::kTrain).save("x", kValues);
  EXPECT_TRUE(hook->close().ok());
  EXPECT_EQ(step_numbers(store), (std::vector<std::int64_t>{0, 1}));
}

TEST(Faults, SeveralWorkersEndTheRunTogether) {
  store::MemoryStore store;
  std::vector<Hook> hooks;
  for (int rank = 0; rank < 3; ++rank) {
    HookOptions options = quiet_options();
    options.include_workers = IncludeWorkers::kAll;
    options.rank = rank;
    options.world_size = 3;
    auto hook = open_hook(options, {.store = store.share()});
    ASSERT_TRUE(hook.ok()) << hook.error().message;
    hooks.push_back(std::move(*hook));
    hooks.back().begin_step(Mode::kTrain).save("x", std::vector<int>{rank});
  }
  hooks[0].begin_step(Mode::kTrain).save("x", std::vector<int>{0});  // which the others have not ended
  EXPECT_TRUE(hooks[0].close().ok());
  EXPECT_FALSE(store.status(format::kEndMarkerPath).ok());
  EXPECT_TRUE(hooks[2].close().ok());
  EXPECT_TRUE(hooks[1].close().ok());
  EXPECT_TRUE(store.status(format::kEndMarkerPath).ok());
  for (int rank = 0; rank < 3; ++rank) {
    const auto steps = read_steps(store, "worker_" + std::to_string(rank));
    EXPECT_EQ(steps.size(), rank == 0 ? 2U : 1U);
    EXPECT_EQ(values_of<int>(steps.at(0).values.at("x")), std::vector<int>{rank});
  }
}

TEST(Faults, OnlyTheChiefWritesUnlessAllAreAskedFor) {
  store::MemoryStore store;
  HookOptions options = quiet_options();
  options.rank = 1;
  options.world_size = 2;
  {
    auto hook = open_hook(options, {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    hook->begin_step(Mode::kTrain).save("x", kValues);
    hook->save_scalar("s", 1);
  }
  EXPECT_EQ(file_names(store), std::vector<std::string>{});
}

TEST(Faults, WorkerNamesThatCouldLeaveTheDirectoryAreRefused) {
  for (const char* worker : {"../x", "a/b", "a b", "", "x\ny"}) {
    HookOptions options = quiet_options();
    options.worker = worker;
    const auto hook = open_hook(options, {.store = std::make_unique<store::MemoryStore>()});
    if (*worker == '\0') {
      EXPECT_TRUE(hook.ok());  // computed
    } else {
      ASSERT_FALSE(hook.ok()) << worker;
      EXPECT_EQ(hook.error().code, ErrorCode::kInvalid);
    }
  }
}

TEST(Faults, CollectionNamesOfAnyKindAreDataOnly) {
  store::MemoryStore store;
  const std::vector<std::string> names = {"../../x", "a\nb", "\x1b[0m", "<script>", std::string(5000, 'c')};
  {
    auto hook = open_hook(quiet_options(), {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    for (const std::string& name : names) ASSERT_TRUE(hook->collection(name).include("x").ok());
    hook->begin_step(Mode::kTrain).save("x", kValues);
  }
  const auto collections = read_collections(store);
  for (const std::string& name : names) EXPECT_TRUE(collections.contains(name)) << name;
  for (const std::string& path : file_names(store)) {
    EXPECT_EQ(path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_./"), std::string::npos) << path;
  }
}

TEST(Faults, AStopRequestIsSeenAtASavedStep) {
  store::MemoryStore store;
  auto hook = open_hook(quiet_options(), {.store = store.share()});
  ASSERT_TRUE(hook.ok());
  hook->begin_step(Mode::kTrain).save("x", kValues);
  while (hook->report().committed_steps == 0) std::this_thread::yield();  // a request from before the run is not for it
  EXPECT_FALSE(hook->stop_requested());
  ASSERT_TRUE(store.create_exclusive(format::kStopRequestPath, R"({"reason": "loss"})").ok());
  for (int i = 0; i < 60'000 && !hook->stop_requested(); ++i) {
    hook->begin_step(Mode::kTrain).save("x", kValues);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // another thread looks for it
  }
  EXPECT_TRUE(hook->stop_requested());
}

TEST(Faults, ResumeContinuesAfterTheLastPublishedStep) {
  store::MemoryStore store;
  const auto run = [&](bool resume) {
    HookOptions options = quiet_options();
    options.resume = resume;
    auto hook = open_hook(options, {.store = store.share()});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    for (int i = 0; i < 3; ++i) hook->begin_step(Mode::kTrain).save("x", kValues);
    return std::move(*hook);
  };
  Hook first = run(false);
  Hook second = run(true);  // the first is closed as superseded, which leaves its steps unfinished
  EXPECT_TRUE(second.close().ok());
  EXPECT_EQ(step_numbers(store), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Faults, ResumeContinuesEachModeAfterItsOwnLastStep) {
  store::MemoryStore store;
  const auto open = [&](bool resume) {
    HookOptions options = quiet_options();
    options.resume = resume;
    auto hook = open_hook(options, {.store = store.share()});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  };
  Hook first = open(false);
  for (int i = 0; i < 4; ++i) first.begin_step(Mode::kTrain).save("x", kValues);
  for (int i = 0; i < 2; ++i) first.begin_step(Mode::kEval).save("x", kValues);
  // Each is superseded by the next. The second saves nothing of TRAIN, and must not forget it.
  Hook second = open(true);
  EXPECT_EQ(second.mode_step(Mode::kTrain), 3);
  EXPECT_EQ(second.mode_step(Mode::kEval), 1);
  EXPECT_EQ(second.step(), 5);
  second.begin_step(Mode::kEval).save("x", kValues);
  Hook third = open(true);
  EXPECT_EQ(third.mode_step(Mode::kTrain), 3);
  EXPECT_EQ(third.mode_step(Mode::kEval), 2);
  third.begin_step(Mode::kTrain).save("x", kValues);
  EXPECT_TRUE(third.close().ok());
  EXPECT_EQ(step_numbers(store), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Faults, WorkersResumeAfterTheLastStepOfAll) {
  store::MemoryStore store;
  const auto publish = [&](std::int64_t step, const std::string& worker) {
    const format::Index index{.mode = Mode::kTrain, .mode_step = step / 2};
    const auto file = store.create(format::index_path(step, worker));
    ASSERT_TRUE((*file)->append(format::encode_index(index)).ok());
    ASSERT_TRUE((*file)->publish(false).ok());
  };
  for (const std::int64_t step : {0, 2, 4}) publish(step, "worker_0");
  for (const std::int64_t step : {0, 2}) publish(step, "worker_1");
  const auto point = find_resume_point(store, {.worker = "worker_1", .is_chief = false, .writer_count = 2});
  ASSERT_TRUE(point.ok()) << point.error().message;
  EXPECT_EQ(point->last_step, 4) << "the last step of another worker counts";
  EXPECT_EQ(point->mode_steps.at(Mode::kTrain), 2);
}

}  // namespace
}  // namespace tornasole::capture
