#include "support/crash_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "store/conformance.h"
#include "store/local/local_store.h"
#include "store/memory/memory_store.h"
#include "support/crash_journal.h"

namespace tornasole::store {
namespace {

constexpr int kSeeds = 300;

std::unique_ptr<CrashStore> open_crash(std::unique_ptr<Store> base, CrashOptions options) {
  auto store = CrashStore::open(std::move(base), options);
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? std::move(*store) : nullptr;
}

// Every content one path has after the crash, over many seeds; "-" where it is missing.
std::set<std::string> outcomes(const std::string& path, const std::function<void(CrashStore&)>& run) {
  std::set<std::string> found;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto store = open_crash(std::make_unique<MemoryStore>(), {.seed = static_cast<std::uint64_t>(seed)});
    run(*store);
    EXPECT_TRUE(store->crash().ok());
    const auto content = store->base().read_all(path, 1'000'000);
    found.insert(content.ok() ? *content : "-");
  }
  return found;
}

using Outcomes = std::set<std::string>;

TEST(CrashStore, WhatWasSyncedIsThere) {
  EXPECT_EQ(outcomes("d/f",
                     [](CrashStore& store) {
                       auto file = *store.create("d/f");
                       ASSERT_TRUE(file->append("abc").ok());
                       ASSERT_TRUE(file->sync().ok());
                       ASSERT_TRUE(file->publish(false).ok());
                       ASSERT_TRUE(store.sync_directory("d").ok());
                     }),
            Outcomes({"abc"}));
}

TEST(CrashStore, ASyncedFileInAnUnsyncedDirectoryIsWholeOrMissing) {
  EXPECT_EQ(outcomes("d/f",
                     [](CrashStore& store) {
                       auto file = *store.create("d/f");
                       ASSERT_TRUE(file->append("abc").ok());
                       ASSERT_TRUE(file->sync().ok());
                       ASSERT_TRUE(file->publish(false).ok());
                       ASSERT_TRUE(store.sync_directory("").ok());
                     }),
            Outcomes({"abc", "-"}));
}

TEST(CrashStore, UnsyncedBytesAreTornAnywhereBehindTheSyncedOnes) {
  const Outcomes found = outcomes("d/f", [](CrashStore& store) {
    auto file = *store.create("d/f");
    ASSERT_TRUE(file->append("ab").ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(file->append("cd").ok());
    ASSERT_TRUE(file->publish(false).ok());
    ASSERT_TRUE(store.sync_directory("d").ok());
  });
  const Bytes zeros(2, '\0');
  EXPECT_EQ(found, Outcomes({"ab", "abc", "abcd", "ab" + zeros.substr(1), "ab" + zeros}));
}

TEST(CrashStore, SectorsAreLostIndependently) {
  const Bytes content = Bytes(512, 'a') + Bytes(512, 'b') + Bytes(512, 'c');
  const Outcomes found = outcomes("f", [&](CrashStore& store) {
    ASSERT_TRUE(put(store, "f", content).ok());
    ASSERT_TRUE(store.sync_directory("").ok());
  });
  const bool later_without_earlier = std::any_of(found.begin(), found.end(), [](const std::string& outcome) {
    return outcome.size() > 1024 && outcome[0] == '\0' && outcome[1024] == 'c';
  });
  EXPECT_TRUE(later_without_earlier);
  EXPECT_TRUE(found.contains(content));
}

TEST(CrashStore, ALaterPublishMaySurviveAnEarlierOneThatDoesNot) {
  std::set<std::string> states;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto store = open_crash(std::make_unique<MemoryStore>(), {.seed = static_cast<std::uint64_t>(seed)});
    ASSERT_TRUE(put(*store, "event", "e").ok());
    ASSERT_TRUE(put(*store, "index", "i").ok());
    ASSERT_TRUE(store->crash().ok());
    std::string state;
    for (const std::string& path : listed(store->base(), "", true)) state += path + " ";
    states.insert(state);
  }
  for (const char* state : {"", "event ", "index ", "event index ", "event.tmp ", "event.tmp index "}) {
    EXPECT_TRUE(states.contains(state)) << "'" << state << "'";
  }
}

TEST(CrashStore, AReplacedFileIsTheOldOneOrANewOneButNeverMissing) {
  EXPECT_EQ(outcomes("f",
                     [](CrashStore& store) {
                       for (const char* content : {"1", "2", "3"}) {
                         auto file = *store.create("f");
                         ASSERT_TRUE(file->append(content).ok());
                         ASSERT_TRUE(file->sync().ok());
                         ASSERT_TRUE(file->publish(true).ok());
                         if (*content == '1') {
                           ASSERT_TRUE(store.sync_directory("").ok());
                         }
                       }
                     }),
            Outcomes({"1", "2", "3"}));
}

TEST(CrashStore, ARemovedFileMayComeBack) {
  EXPECT_EQ(outcomes("f",
                     [](CrashStore& store) {
                       ASSERT_TRUE(store.create_exclusive("f", "").ok());
                       ASSERT_TRUE(store.sync_directory("").ok());
                       ASSERT_TRUE(store.remove("f").ok());
                     }),
            Outcomes({"", "-"}));
  EXPECT_EQ(outcomes("f",
                     [](CrashStore& store) {
                       ASSERT_TRUE(store.create_exclusive("f", "").ok());
                       ASSERT_TRUE(store.remove("f").ok());
                       ASSERT_TRUE(store.sync_directory("").ok());
                     }),
            Outcomes({"-"}));
}

TEST(CrashStore, WhatTookAMovedTreesPlaceDoesNotMixWithIt) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    auto base = std::make_unique<MemoryStore>();
    ASSERT_TRUE(put(*base, "events/0", "old").ok());
    ASSERT_TRUE(put(*base, "events/1", "old").ok());
    const auto store = open_crash(std::move(base), {.seed = static_cast<std::uint64_t>(seed)});
    ASSERT_TRUE(store->rename("events", "attempts/1/events").ok());
    ASSERT_TRUE(store->create_exclusive("events/0", "").ok());
    ASSERT_TRUE(store->crash().ok());
    const auto after = listed(store->base(), "", true);
    const std::vector<std::vector<std::string>> allowed = {
        {"events/0", "events/1"},
        {"attempts/1/events/0", "attempts/1/events/1"},
        {"attempts/1/events/0", "attempts/1/events/1", "events/0"},
    };
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), after), allowed.end()) << seed;
  }
}

TEST(CrashStore, ASyncedMoveKeepsAFileWhoseFirstNameWasNeverSynced) {
  EXPECT_EQ(outcomes("b/f",
                     [](CrashStore& store) {
                       auto file = *store.create("a/f");
                       ASSERT_TRUE(file->append("x").ok());
                       ASSERT_TRUE(file->sync().ok());
                       ASSERT_TRUE(file->publish(false).ok());
                       ASSERT_TRUE(store.rename("a/f", "b/f").ok());
                       ASSERT_TRUE(store.sync_directory("b").ok());
                     }),
            Outcomes({"x"}));
}

TEST(CrashStore, EqualSeedsLeaveEqualDisks) {
  const auto run = [](std::uint64_t seed) {
    std::map<std::string, Bytes> disk;
    const auto store = open_crash(std::make_unique<MemoryStore>(), {.seed = seed});
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(put(*store, "f" + std::to_string(i), Bytes(3000, 'x')).ok());
    }
    EXPECT_TRUE(store->crash().ok());
    for (const std::string& path : listed(store->base(), "", true)) disk[path] = *store->base().read_all(path, 3000);
    return disk;
  };
  EXPECT_EQ(run(11), run(11));
  EXPECT_NE(run(11), run(12));
}

TEST(CrashStore, AfterTheCrashEveryCallFailsAndNothingMoreReachesTheBase) {
  auto memory = std::make_unique<MemoryStore>();
  const auto observer = memory->share();
  auto store = open_crash(std::move(memory), {.seed = 3});
  auto file = *store->create("f");
  EXPECT_EQ(listed(*observer, "", true), std::vector<std::string>()) << "before the crash all is in memory";
  EXPECT_FALSE(store->has_crashed());
  ASSERT_TRUE(store->crash().ok());
  EXPECT_TRUE(store->has_crashed());
  const auto after = listed(*observer, "", true);
  EXPECT_EQ(code_of(file->append("x")), ErrorCode::kIo);
  EXPECT_EQ(code_of(file->sync()), ErrorCode::kIo);
  EXPECT_EQ(code_of(file->publish(true)), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->create("g")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->create_exclusive("g", "")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->sync_directory("")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->status("f")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->list("", true)), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->read("f", 0, 1)), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->read_all("f", 1)), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->remove("f")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->rename("f", "g")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store->now_s()), ErrorCode::kIo);
  ASSERT_TRUE(store->crash().ok());
  file.reset();
  store.reset();
  EXPECT_EQ(listed(*observer, "", true), after);
}

TEST(CrashStore, TheCallThatCrashesFailsAndIsNotDone) {
  for (std::int64_t at = 1; at <= 5; ++at) {
    auto store = open_crash(std::make_unique<MemoryStore>(), {.seed = 1, .crash_at_call = at});
    auto written = [&]() -> Status {
      auto file = store->create("f");
      if (!file.ok()) return file.error();
      if (auto appended = (*file)->append("x"); !appended.ok()) return appended;
      if (auto synced = (*file)->sync(); !synced.ok()) return synced;
      if (auto published = (*file)->publish(false); !published.ok()) return published;
      return store->sync_directory("");
    }();
    EXPECT_EQ(code_of(written), ErrorCode::kIo) << at;
    EXPECT_EQ(store->write_calls(), at);
    if (at < 5) {
      EXPECT_EQ(code_of(store->base().status("f")), ErrorCode::kNotFound) << at;
    }
  }
}

TEST(CrashStore, WorksOnADirectoryAndKeepsWhatWasThere) {
  const TemporaryDirectory directory;
  const auto open_base = [&] { return std::move(*open_local_store(directory.path() + "/root")); };
  ASSERT_TRUE(put(*open_base(), "d/old", "old").ok());
  {
    const auto store = open_crash(open_base(), {.seed = 1});
    EXPECT_EQ(*store->read_all("d/old", 3), "old");
    ASSERT_TRUE(put(*store, "d/new", "new").ok());
    ASSERT_TRUE(store->sync_directory("d").ok());
  }
  EXPECT_EQ(*open_base()->read_all("d/old", 3), "old");
  EXPECT_TRUE(open_base()->status("d/new").ok()) << "its name was synced; destruction is a crash";
  {
    const auto store = open_crash(open_base(), {.seed = 2, .crash_when_destroyed = false});
    ASSERT_TRUE(put(*store, "e", "all").ok());
    ASSERT_TRUE(store->remove("d/old").ok());
  }
  EXPECT_EQ(*open_base()->read_all("e", 3), "all");
  EXPECT_EQ(code_of(open_base()->status("d/old")), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tornasole::store
