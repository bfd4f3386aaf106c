// A run directory that somebody removes while capture uses it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "capture/open_hook.h"
#include "capture/run_world.h"
#include "capture/written_trial.h"

namespace tornasole::capture {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> kSmall(10, 1.5F);
const std::vector<float> kLarge(100'000, 2.5F);  // too large to be gathered: it is in its file at once

// What the writer puts back while this runs may stay.
const auto kRemove = [](const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
};

bool wait_until(const std::function<bool()>& is_true) {
  for (int i = 0; i < 1000; ++i) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class RemovedDirectory : public ::testing::Test {
 protected:
  std::string root() const { return directory_.path() + "/trial"; }
  bool has(const std::string& path) const { return fs::exists(root() + "/" + path); }
  // The event file is made with the first value, some time after it was saved.
  bool wait_for_values(const std::string& worker = "worker_0") const {
    return wait_until([&] {
      std::error_code error;
      const auto bytes = fs::file_size(root() + "/" + format::event_path(0, worker) + ".tmp", error);
      return !error && bytes > kLarge.size() * sizeof(float);
    });
  }

  HookOptions options() {
    HookOptions options{.out_dir = root(), .save_config = {.save_interval = 1}, .save_all = true};
    options.log = [this](LogLevel level, std::string_view text) {
      if (level < LogLevel::kWarning) return;
      const std::lock_guard lock(mutex_);
      log_.emplace_back(text);
    };
    return options;
  }
  Hook open(HookOptions options) {
    auto hook = open_hook(std::move(options), {});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  // One process stands for two workers: each is told of the place by another name.
  Hook open_worker(int rank) {
    HookOptions given = options();
    given.include_workers = IncludeWorkers::kAll;
    given.rank = rank;
    given.world_size = 2;
    auto store = store::open_local_store(root());
    EXPECT_TRUE(store.ok());
    given.out_dir += std::to_string(rank);
    auto hook = open_hook(std::move(given), {.store = std::move(*store)});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  // A whole run of these workers, whose two steps have both values.
  void expect_whole(const std::vector<std::string>& workers) {
    const auto store = store::open_local_store(root());
    ASSERT_TRUE(store.ok());
    for (const std::string& worker : workers) {
      const auto steps = read_steps(**store, worker);
      ASSERT_EQ(steps.size(), 2U) << worker;
      for (const auto& [number, step] : steps) {
        EXPECT_EQ(values_of<float>(step.values.at("large")), kLarge) << worker << " step " << number;
        EXPECT_EQ(values_of<float>(step.values.at("small")), kSmall) << worker << " step " << number;
      }
      EXPECT_THAT(read_collections(**store, worker).at("all").tensor_names, ElementsAre("large", "small"));
      EXPECT_EQ(read_health(**store, worker).committed, 2);
      EXPECT_EQ(read_health(**store, worker).dropped.size(), 0U);
    }
    EXPECT_TRUE(has("tornasole/run.json"));
    EXPECT_TRUE(has(std::string(format::kEndMarkerPath)));
    EXPECT_FALSE(has("attempts"));
    for (const std::string& name : file_names(**store)) EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
  long removals_logged() {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(log_,
                                 [](const std::string& line) { return line.find("removed") != std::string::npos; });
  }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::vector<std::string> log_;  // guarded by mutex_
};

TEST_F(RemovedDirectory, IsTakenAgainUntilAStepWasPublished) {
  const struct {
    const char* what;
    bool exists_before;
    std::string fsync;
    std::function<void(const std::string& root)> before_step;
    std::function<void(const std::string& root)> within_step;
    std::function<void(const std::string& root)> after_step;
    long logged;
  } cases[] = {
      {"found at set-up, removed before anything was written", true, "none", kRemove, nullptr, nullptr, 0},
      {"removed between two values of the first step", false, "none", nullptr, kRemove, nullptr, 1},
      {"removed and made again by somebody else", false, "none", nullptr,
       [](const std::string& root) {
         kRemove(root);
         fs::create_directory(root);
       },
       nullptr, 1},
      {"removed with the directories above it", false, "none", nullptr,
       [](const std::string& root) { kRemove(fs::path(root).parent_path().string()); }, nullptr, 1},
      {"emptied, as by somebody who could not remove it", false, "none", nullptr,
       [](const std::string& root) {
         for (const auto& entry : fs::directory_iterator(root)) kRemove(entry.path().string());
       },
       nullptr, 1},
      {"half emptied: the values are still there", false, "none", nullptr,
       [](const std::string& root) { kRemove(root + "/tornasole"); }, nullptr, 1},
      {"removed while finished steps wait for their sync", false, "60s", nullptr, nullptr, kRemove, 1},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    fs::create_directories(directory_.path());
    kRemove(root());
    log_.clear();
    if (c.exists_before) fs::create_directory(root());
    HookOptions given = options();
    given.fsync = c.fsync;
    Hook hook = open(given);
    hook.describe_model({});
    if (c.before_step) c.before_step(root());
    {
      StepScope step = hook.begin_step(Mode::kTrain);
      step.save("large", kLarge);
      ASSERT_TRUE(wait_for_values());
      if (c.within_step) c.within_step(root());
      step.save("small", kSmall);
    }
    if (c.after_step) c.after_step(root());
    {
      StepScope step = hook.begin_step(Mode::kTrain);
      step.save("large", kLarge);
      step.save("small", kSmall);
    }
    const Status closed = hook.close();
    EXPECT_TRUE(closed.ok()) << closed.error().message;
    expect_whole({"worker_0"});
    EXPECT_EQ(removals_logged(), c.logged);
    EXPECT_TRUE(has(format::model_path("worker_0")));
  }
}

TEST_F(RemovedDirectory, IsNotMadeAgainOnceAStepWasPublished) {
  Hook hook = open(options());
  hook.begin_step(Mode::kTrain).save("small", kSmall);
  ASSERT_TRUE(wait_until([&] { return has(format::index_path(0, "worker_0")); }));
  kRemove(root());
  for (int i = 0; i < 3; ++i) hook.begin_step(Mode::kTrain).save("small", kSmall);
  EXPECT_FALSE(hook.close().ok());
  EXPECT_EQ(hook.report().committed_steps, 1);
  EXPECT_EQ(hook.report().dropped_steps.at("io"), 3);
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(RemovedDirectory, IsLeftToAnotherRunThatCameFirst) {
  Hook hook = open(options());
  {
    StepScope step = hook.begin_step(Mode::kTrain);
    step.save("large", kLarge);
    ASSERT_TRUE(wait_for_values());
    kRemove(root());
    const LiveProcess other;
    const auto store = store::open_local_store(root());
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->create_exclusive(format::kClaimPath, format::encode_claim(other.identity())).ok());
    step.save("small", kSmall);
    step.end();
    ASSERT_TRUE(wait_until([&] { return !hook.report().dropped_steps.empty(); }));
  }
  EXPECT_FALSE(hook.close().ok());
  EXPECT_THAT(hook.report().errors.at(0), HasSubstr("a live run writes there"));
  EXPECT_EQ(hook.report().committed_steps, 0);
  for (const char* path : {"tornasole", "events", "index", "collections", "training_job_end.ts"})
    EXPECT_FALSE(has(path)) << path;
  EXPECT_TRUE(has(std::string(format::kClaimPath)));
}

// What workers that start together do to each other: the one that comes last clears the place of the first.
TEST_F(RemovedDirectory, IsTakenAgainByAllWorkers) {
  const struct {
    const char* what;
    bool chief_is_first;
    bool has_joined;  // the other one was at work already, too
  } cases[] = {
      {"the chief was at work, the other one clears the place and starts", true, false},
      {"both were at work; the chief notices first", true, true},
      {"both were at work; the other one notices first", false, true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    kRemove(root());
    Hook chief = open_worker(0);
    StepScope first = chief.begin_step(Mode::kTrain);
    first.save("large", kLarge);
    ASSERT_TRUE(wait_for_values());
    if (!c.has_joined) kRemove(root());
    Hook other = open_worker(1);
    StepScope second = other.begin_step(Mode::kTrain);
    second.save("large", kLarge);
    if (c.has_joined) {
      ASSERT_TRUE(wait_for_values("worker_1"));
      kRemove(root());
    }
    StepScope* const order[] = {c.chief_is_first ? &first : &second, c.chief_is_first ? &second : &first};
    for (StepScope* step : order) {
      step->save("small", kSmall);
      step->end();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // time to notice, and to wait for the chief
    }
    for (Hook* hook : {&chief, &other}) {
      StepScope step = hook->begin_step(Mode::kTrain);
      step.save("large", kLarge);
      step.save("small", kSmall);
    }
    EXPECT_TRUE(chief.close().ok());
    EXPECT_TRUE(other.close().ok());
    expect_whole({"worker_0", "worker_1"});
  }
}

}  // namespace
}  // namespace tornasole::capture
