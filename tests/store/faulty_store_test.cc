#include "support/faulty_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "store/conformance.h"
#include "store/memory/memory_store.h"

namespace tornasole::store {
namespace {

using Paths = std::vector<std::string>;

struct Failing {
  explicit Failing(FailurePlan plan)
      : control(std::make_shared<FailureControl>(plan)),
        base(std::make_unique<MemoryStore>()),
        store(base->share(), control) {}
  std::shared_ptr<FailureControl> control;
  std::unique_ptr<MemoryStore> base;
  FailingStore store;
};

TEST(FailingStore, FailsTheCallItIsToldTo) {
  const struct {
    const char* what;
    FailurePlan plan;
    std::vector<bool> works;  // of five files, each one create, append and publish
  } kCases[] = {
      {"the first call of all", {.first = 1}, {false, true, true, true, true}},
      {"the fifth call: the append of the second file", {.first = 5}, {true, false, true, true, true}},
      {"all calls from the fifth on", {.first = 5, .is_lasting = true}, {true, false, false, false, false}},
      {"the third publish", {.call = Call::kPublish, .first = 3}, {true, true, false, true, true}},
      {"no read is ever made", {.call = Call::kRead, .first = 1}, {true, true, true, true, true}},
      {"the seventh call that writes", {.call = Call::kAnyWrite, .first = 7}, {true, true, false, true, true}},
      {"none", {.first = 0}, {true, true, true, true, true}},
  };
  for (const auto& c : kCases) {
    Failing failing(c.plan);
    Paths expected;
    for (std::size_t i = 0; i < c.works.size(); ++i) {
      const std::string path = std::to_string(i);
      EXPECT_EQ(put(failing.store, path, "x").ok(), c.works[i]) << c.what << ": file " << i;
      if (c.works[i]) expected.push_back(path);
    }
    EXPECT_EQ(listed(*failing.base, "", true), expected) << c.what << ": no debris";
  }
}

TEST(FailingStore, TheErrorIsTheOneAskedFor) {
  Failing failing({.call = Call::kStatus, .first = 1, .code = ErrorCode::kUnsupported});
  const auto status = failing.store.status("some/path");
  EXPECT_EQ(code_of(status), ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().message, "status some/path: injected failure");
  EXPECT_EQ(failing.control->failed_calls(), 1);
}

TEST(FailingStore, AShortAppendLeavesHalfAndCannotBePublished) {
  Failing failing({.call = Call::kAppend, .first = 1, .is_short = true});
  auto file = failing.store.create("f");
  ASSERT_TRUE(file.ok());
  const ByteView pieces[] = {"ab", "cdef"};
  EXPECT_EQ(code_of((*file)->append(pieces)), ErrorCode::kIo);
  EXPECT_EQ(*failing.base->read_all("f.tmp", 10), "abc");
  EXPECT_EQ(code_of((*file)->append("more")), ErrorCode::kIo);
  EXPECT_EQ(code_of((*file)->publish(true)), ErrorCode::kIo);
  file->reset();
  EXPECT_EQ(listed(*failing.base, "", true), Paths());
}

TEST(FailingStore, EveryCallCanFail) {
  Failing failing({.first = 1, .is_lasting = true});
  EXPECT_FALSE(failing.store.create("a").ok());
  EXPECT_FALSE(failing.store.create_exclusive("a", "").ok());
  EXPECT_FALSE(failing.store.sync_directory("").ok());
  EXPECT_FALSE(failing.store.status("").ok());
  EXPECT_FALSE(failing.store.list("", false).ok());
  EXPECT_FALSE(failing.store.read("a", 0, 1).ok());
  EXPECT_FALSE(failing.store.read_all("a", 1).ok());
  EXPECT_FALSE(failing.store.remove("a").ok());
  EXPECT_FALSE(failing.store.rename("a", "b").ok());
  EXPECT_FALSE(failing.store.now_s().ok());
  EXPECT_EQ(failing.control->failed_calls(), 10);
  failing.control->heal();
  EXPECT_TRUE(put(failing.store, "a", "x").ok());
  failing.control->set_plan({.call = Call::kSync, .first = 1});
  auto file = failing.store.create("b");
  EXPECT_FALSE((*file)->sync().ok());
  EXPECT_FALSE((*file)->publish(false).ok()) << "a failed sync may have lost bytes";
}

TEST(FailingStore, CallsHaveNames) {
  for (int i = 0; i <= static_cast<int>(Call::kAnyWrite); ++i) {
    EXPECT_EQ(call_from_name(call_name(static_cast<Call>(i))), static_cast<Call>(i));
  }
  EXPECT_EQ(call_name(Call::kAnyWrite), "any_write");
  EXPECT_EQ(call_from_name("fsync"), std::nullopt);
}

struct StoppedClock final : Clock {
  double wall_seconds() const noexcept override { return 0; }
  std::int64_t monotonic_ns() const noexcept override { return now_ns; }
  std::int64_t now_ns = 0;
};

TEST(SlowStore, FilesShareTheSpeedOfTheDevice) {
  StoppedClock clock;
  const auto control = std::make_shared<SlowControl>(1000, clock);
  std::vector<double> waits;
  control->set_wait([&waits](double seconds) { waits.push_back(seconds); });
  SlowStore store(std::make_unique<MemoryStore>(), control);
  ASSERT_TRUE(put(store, "a", Bytes(500, 'x')).ok());
  ASSERT_TRUE(put(store, "b", Bytes(1000, 'x')).ok());
  clock.now_ns = 10'000'000'000;
  ASSERT_TRUE(store.create_exclusive("c", Bytes(250, 'x')).ok());
  ASSERT_EQ(waits.size(), 3U);
  EXPECT_DOUBLE_EQ(waits[0], 0.5);
  EXPECT_DOUBLE_EQ(waits[1], 1.5) << "behind the first one";
  EXPECT_DOUBLE_EQ(waits[2], 0.25) << "the device was idle since";
}

TEST(SlowStore, AWaitCanBeInterrupted) {
  const auto control = std::make_shared<SlowControl>(1e-3);
  SlowStore store(std::make_unique<MemoryStore>(), control);
  auto done = std::async(std::launch::async, [&store] { return put(store, "a", Bytes(1'000'000, 'x')); });
  control->interrupt();
  EXPECT_TRUE(done.get().ok());
  EXPECT_EQ(store.status("a")->size_bytes, 1'000'000U);
}

struct Hanging {
  explicit Hanging(std::int64_t first)
      : control(std::make_shared<HangControl>(first)),
        base(std::make_unique<MemoryStore>()),
        store(std::make_unique<HangStore>(base->share(), control)) {}
  std::shared_ptr<HangControl> control;
  std::unique_ptr<MemoryStore> base;
  std::unique_ptr<HangStore> store;
};

TEST(HangStore, HangsAtTheNthAppendUntilReleased) {
  Hanging hanging(2);
  EXPECT_TRUE(put(*hanging.store, "a", "x").ok());
  auto second = std::async(std::launch::async, [&] { return put(*hanging.store, "b", "x"); });
  hanging.control->wait_until_hanging();
  EXPECT_EQ(hanging.control->hanging_count(), 1);
  EXPECT_EQ(code_of(hanging.base->status("b")), ErrorCode::kNotFound);
  hanging.control->release();
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(put(*hanging.store, "c", "x").ok()) << "the server is back";
}

TEST(HangStore, DestroyingTheStoreEndsTheHangWithAnError) {
  Hanging hanging(1);
  auto file = hanging.store->create("a");
  ASSERT_TRUE(file.ok());
  auto append = std::async(std::launch::async, [&] { return (*file)->append("x"); });
  hanging.control->wait_until_hanging();
  hanging.store.reset();
  EXPECT_EQ(code_of(append.get()), ErrorCode::kIo);
  EXPECT_EQ(code_of((*file)->publish(false)), ErrorCode::kIo);
}

TEST(HangStore, AProcessCanEndWhileAThreadHangs) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Owned by the hanging thread alone, as a hook leaves it behind.
    const auto control = std::make_shared<HangControl>(1);
    auto store = std::make_unique<HangStore>(std::make_unique<MemoryStore>(), control);
    std::thread([store = std::move(store)] { (void)put(*store, "a", "x"); }).detach();
    control->wait_until_hanging();
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(WrapStore, UnderstandsItsFormsAndRefusesOthers) {
  for (const char* spec : {"slow:1MB/s", "slow:1000000", "slow:512KiB/s", "slow:1.5GB", "hang:50", "fail:3", "fail:3+",
                           "fail:3+@append", "short:2", "crash:0", "crash:18446744073709551615", "crash:5@10"}) {
    const auto store = wrap_store(spec, std::make_unique<MemoryStore>());
    EXPECT_TRUE(store.ok()) << spec << ": " << store.error().message;
  }
  for (const char* spec :
       {"",        "slow",   "slow:",    "slow:0",    "slow:-1",  "slow:nan", "slow:inf",       "slow:1XB/s",
        "hang:0",  "hang:x", "hang:-1",  "fail:",     "fail:+",   "fail:0",   "fail:1@nothing", "fail:1@",
        "short:0", "crash:", "crash:-1", "crash:1@0", "crash:1@", "crash:1 ", "explode:1"}) {
    const auto store = wrap_store(spec, std::make_unique<MemoryStore>());
    ASSERT_FALSE(store.ok()) << spec;
    EXPECT_EQ(store.error().code, ErrorCode::kInvalid) << spec;
    EXPECT_NE(store.error().message.find("'" + std::string(spec) + "'"), std::string::npos) << store.error().message;
  }
}

TEST(WrapStore, TheFaultIsTheOneNamed) {
  auto failing = *wrap_store("fail:2@publish", std::make_unique<MemoryStore>());
  EXPECT_TRUE(put(*failing, "a", "x").ok());
  EXPECT_FALSE(put(*failing, "b", "x").ok());
  EXPECT_TRUE(put(*failing, "c", "x").ok());
  auto crashing = *wrap_store("crash:1@4", std::make_unique<MemoryStore>());
  EXPECT_TRUE(put(*crashing, "a", "x").ok());
  EXPECT_FALSE(put(*crashing, "b", "x").ok());
  EXPECT_FALSE(crashing->list("", true).ok());
}

}  // namespace
}  // namespace tornasole::store
