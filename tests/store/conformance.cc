#include "store/conformance.h"

#include <atomic>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

namespace tornasole::store {

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = testing::TempDir() + "tornasole-store-XXXXXX";
  path_ = mkdtemp(pattern.data()) == nullptr ? "" : std::filesystem::canonical(pattern).string();
  EXPECT_NE(path_, "") << "no temporary directory at " << pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Status put(Store& store, std::string_view path, ByteView content, bool replace) {
  auto file = store.create(path);
  if (!file.ok()) return std::move(file).error();
  if (auto appended = (*file)->append(content); !appended.ok()) return appended;
  return (*file)->publish(replace);
}

std::vector<std::string> listed(Store& store, std::string_view directory, bool recursive) {
  const auto entries = store.list(directory, recursive);
  if (!entries.ok()) return {"error: " + entries.error().message};
  std::vector<std::string> paths;
  for (const Entry& entry : *entries) paths.push_back(entry.path + (entry.status.is_directory ? "/" : ""));
  return paths;
}

namespace {

using Paths = std::vector<std::string>;
constexpr const char* kNoDirectories = "the store has no directories and no temporary names";
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

TEST_P(StoreConformance, AnEmptyStoreHasNothing) {
  EXPECT_FALSE(store().description().empty());
  EXPECT_EQ(listed(store(), "", false), Paths());
  EXPECT_EQ(listed(store(), "a/b", true), Paths());
  EXPECT_EQ(code_of(store().status("a")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(store().read("a/b", 0, 1)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(store().read_all("a", 1)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(store().remove("a")), ErrorCode::kNotFound);
  const bool can_rename = store().capabilities().can_rename;
  EXPECT_EQ(code_of(store().rename("a", "b/c")), can_rename ? ErrorCode::kNotFound : ErrorCode::kUnsupported);
  EXPECT_EQ(listed(store(), "", true), Paths()) << "none of these calls leaves anything behind";
}

TEST_P(StoreConformance, BadPathsAreRefusedByEveryCallAndNamed) {
  const struct {
    const char* what;
    std::string path;
  } kCases[] = {
      {"nothing", ""},
      {"an absolute path", "/etc/passwd"},
      {"the way up", ".."},
      {"the way up in the middle", "a/../b"},
      {"the way up at the end", "a/.."},
      {"the same directory", "a/./b"},
      {"an empty component", "a//b"},
      {"a slash at the end", "a/"},
      {"a NUL", std::string("a\0b", 3)},
      {"a component of 256 bytes", "a/" + std::string(256, 'x')},
      {"65 components",
       [] {
         std::string deep = "a";
         for (int i = 0; i < 64; ++i) deep += "/a";
         return deep;
       }()},
  };
  ASSERT_TRUE(put(store(), "plain", "x").ok());
  for (const auto& c : kCases) {
    EXPECT_EQ(code_of(store().create(c.path)), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().create_exclusive(c.path, "x")), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().read(c.path, 0, 1)), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().read_all(c.path, 1)), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().remove(c.path)), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().rename(c.path, "free")), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().rename("plain", c.path)), ErrorCode::kInvalid) << c.what;
    if (c.path.empty()) continue;  // the root, where a directory is asked for
    EXPECT_EQ(code_of(store().status(c.path)), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().list(c.path, true)), ErrorCode::kInvalid) << c.what;
    EXPECT_EQ(code_of(store().sync_directory(c.path)), ErrorCode::kInvalid) << c.what;
  }
  EXPECT_NE(store().read("a/../b", 0, 1).error().message.find("a/../b"), std::string::npos);
  EXPECT_EQ(listed(store(), "", true), Paths({"plain"}));
}

TEST_P(StoreConformance, AFileAppearsUnderItsNameOnlyWhenPublished) {
  auto file = store().create("events/000000000000/e.tfevents");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->size_bytes(), 0U);
  ASSERT_TRUE((*file)->append("hello ").ok());
  const ByteView pieces[] = {"wor", "", "ld"};
  ASSERT_TRUE((*file)->append(pieces).ok());
  EXPECT_EQ((*file)->size_bytes(), 11U);

  EXPECT_EQ(code_of(store().status("events/000000000000/e.tfevents")), ErrorCode::kNotFound);
  if (has_directories()) {
    EXPECT_EQ(listed(store(), "", true), Paths({"events/000000000000/e.tfevents.tmp"}));
    const auto before = store().read_all("events/000000000000/e.tfevents.tmp", 100);
    ASSERT_TRUE(before.ok()) << "appended bytes have left the process: " << before.error().message;
    EXPECT_EQ(*before, "hello world");
  } else {
    EXPECT_EQ(listed(store(), "", true), Paths());
  }

  ASSERT_TRUE((*file)->sync().ok());
  ASSERT_TRUE((*file)->publish(false).ok());
  ASSERT_TRUE(store().sync_directory("events/000000000000").ok());
  EXPECT_EQ(listed(store(), "", true), Paths({"events/000000000000/e.tfevents"}));
  EXPECT_EQ(*store().read_all("events/000000000000/e.tfevents", 11), "hello world");
  EXPECT_EQ((*file)->size_bytes(), 11U);
}

TEST_P(StoreConformance, AFileWithoutBytesIsAFile) {
  ASSERT_TRUE(put(store(), "training_job_end.ts", "").ok());
  const auto status = store().status("training_job_end.ts");
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(status->size_bytes, 0U);
  EXPECT_FALSE(status->is_directory);
  EXPECT_EQ(*store().read_all("training_job_end.ts", 0), "");
}

TEST_P(StoreConformance, AnAbandonedFileLeavesNoName) {
  auto file = store().create("a/b");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->append("x").ok());
  (*file)->abandon();
  (*file)->abandon();
  EXPECT_EQ(listed(store(), "", true), Paths());
  EXPECT_EQ(code_of((*file)->append("y")), ErrorCode::kInvalid);
  EXPECT_EQ(code_of((*file)->sync()), ErrorCode::kInvalid);
  EXPECT_EQ(code_of((*file)->publish(true)), ErrorCode::kInvalid);

  {
    ASSERT_TRUE(store().create("a/b").ok()) << "its destructor abandons";
  }
  EXPECT_EQ(listed(store(), "", true), Paths());
}

TEST_P(StoreConformance, APublishedFileIsDone) {
  auto file = store().create("a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->publish(false).ok());
  EXPECT_EQ(code_of((*file)->append("y")), ErrorCode::kInvalid);
  EXPECT_EQ(code_of((*file)->sync()), ErrorCode::kInvalid);
  EXPECT_EQ(code_of((*file)->publish(true)), ErrorCode::kInvalid);
  (*file)->abandon();
  file->reset();
  EXPECT_EQ(listed(store(), "", true), Paths({"a"}));
}

TEST_P(StoreConformance, ATakenNameIsReplacedOnlyWhenAsked) {
  ASSERT_TRUE(put(store(), "d/a", "old").ok());
  auto file = store().create("d/a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->append("new").ok());
  const auto refused = (*file)->publish(false);
  EXPECT_EQ(code_of(refused), ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message.find("d/a"), std::string::npos) << refused.error().message;
  EXPECT_EQ(*store().read_all("d/a", 10), "old");
  EXPECT_EQ(code_of((*file)->append("more")), ErrorCode::kInvalid) << "publish closed the file";
  ASSERT_TRUE((*file)->publish(true).ok()) << "a failed publish may be tried again";
  EXPECT_EQ(*store().read_all("d/a", 10), "new");
  EXPECT_EQ(listed(store(), "", true), Paths({"d/a"}));
}

TEST_P(StoreConformance, AVersionIsTheContents) {
  auto file = store().create("a/b");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->append("one").ok());
  ASSERT_TRUE((*file)->publish(false).ok());
  const auto version = [&] { return store().list("a", true)->front().status.version; };
  const std::string first = version();
  EXPECT_EQ((*file)->version(), first);
  EXPECT_EQ(store().status("a/b")->version, first);
  EXPECT_EQ(first.empty(), !store().capabilities().is_remote);
  EXPECT_LE(first.size(), kMaxVersionBytes);
  ASSERT_TRUE(put(store(), "a/b", "two", true).ok());
  EXPECT_TRUE(first.empty() || version() != first);
}

TEST_P(StoreConformance, ADirectoryIsNeverReplaced) {
  if (!has_directories()) GTEST_SKIP() << kNoDirectories;
  ASSERT_TRUE(put(store(), "d/a", "x").ok());
  EXPECT_EQ(code_of(put(store(), "d", "y", false)), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(put(store(), "d", "y", true)), ErrorCode::kIo);
  EXPECT_EQ(listed(store(), "", true), Paths({"d/a"}));
}

TEST_P(StoreConformance, WhatWaitsAtATemporaryNameIsLeftAlone) {
  if (!has_directories()) GTEST_SKIP() << kNoDirectories;
  ASSERT_TRUE(put(store(), "a.tmp", "debris").ok());
  const auto file = store().create("a");
  EXPECT_EQ(code_of(file), ErrorCode::kIo);
  EXPECT_NE(file.error().message.find("a.tmp"), std::string::npos) << file.error().message;
  EXPECT_EQ(*store().read_all("a.tmp", 10), "debris");

  const auto first = store().create("b");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(code_of(store().create("b")), ErrorCode::kIo) << "two writers of one file";
}

TEST_P(StoreConformance, ATemporaryFileThatSomebodyRemovedCannotBePublished) {
  if (!has_directories()) GTEST_SKIP() << kNoDirectories;
  auto file = store().create("d/a");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(store().remove("d/a.tmp").ok());
  EXPECT_EQ(code_of((*file)->publish(true)), ErrorCode::kIo);
  EXPECT_EQ(code_of(store().status("d/a")), ErrorCode::kNotFound);
}

TEST_P(StoreConformance, AFileWhereADirectoryShouldBeIsDamageToReadersAndAnErrorToWriters) {
  if (!has_directories()) GTEST_SKIP() << kNoDirectories;
  ASSERT_TRUE(put(store(), "a", "x").ok());
  EXPECT_EQ(code_of(store().create("a/b")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store().create_exclusive("a/b", "x")), ErrorCode::kIo);
  EXPECT_EQ(code_of(store().read("a/b", 0, 1)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(store().status("a/b")), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(store().list("a", false)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(store().list("a/b", true)), ErrorCode::kCorrupt);
}

TEST_P(StoreConformance, ExclusiveCreationHasOneWinner) {
  ASSERT_TRUE(store().create_exclusive("claims/c", "me").ok());
  const auto second = store().create_exclusive("claims/c", "you");
  EXPECT_EQ(code_of(second), ErrorCode::kInvalid);
  EXPECT_EQ(*store().read_all("claims/c", 10), "me");
  EXPECT_EQ(listed(store(), "", true), Paths({"claims/c"})) << "the loser leaves nothing behind";

  std::vector<std::thread> threads;
  std::atomic<int> winners = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const auto made = store().create_exclusive("race/" + std::to_string(round), std::to_string(i));
        if (made.ok()) ++winners;
        EXPECT_TRUE(made.ok() || made.error().code == ErrorCode::kInvalid) << made.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 20);
  EXPECT_EQ(listed(store(), "race", true).size(), 20U);
}

TEST_P(StoreConformance, RangesAreCutAtTheEndOfTheFile) {
  ASSERT_TRUE(put(store(), "f", "0123456789").ok());
  const struct {
    const char* what;
    std::uint64_t offset, length;
    const char* content;
  } kCases[] = {
      {"the whole", 0, 10, "0123456789"},
      {"a part", 3, 4, "3456"},
      {"nothing", 3, 0, ""},
      {"over the end", 8, 5, "89"},
      {"at the end", 10, 1, ""},
      {"behind the end", 11, 1, ""},
      {"lengths beyond all files", 2, kAll, "23456789"},
      {"offsets beyond all files", kAll, kAll, ""},
      {"a sum that wraps", kAll - 1, 3, ""},
  };
  for (const auto& c : kCases) {
    const auto content = store().read("f", c.offset, c.length);
    ASSERT_TRUE(content.ok()) << c.what << ": " << content.error().message;
    EXPECT_EQ(*content, c.content) << c.what;
    Bytes buffer(std::min<std::uint64_t>(c.length, 100), '?');
    const auto count = store().read_into("f", c.offset, buffer);
    ASSERT_TRUE(count.ok()) << c.what << ": " << count.error().message;
    EXPECT_EQ(buffer.substr(0, *count), c.content) << c.what;
  }
  EXPECT_TRUE(store().read_all("f", 10).ok());
  const auto too_big = store().read_all("f", 9);
  EXPECT_EQ(code_of(too_big), ErrorCode::kCorrupt);
  EXPECT_NE(too_big.error().message.find("10 bytes"), std::string::npos) << too_big.error().message;
  ASSERT_TRUE(put(store(), "d/x", "").ok());
  EXPECT_EQ(code_of(store().read("d", 0, 1)), has_directories() ? ErrorCode::kCorrupt : ErrorCode::kNotFound)
      << "a directory";
  Bytes one(1, '?');
  EXPECT_EQ(code_of(store().read_into("d", 0, one)), code_of(store().read("d", 0, 1))) << "a directory";
  EXPECT_EQ(code_of(store().read_into("none", 0, one)), ErrorCode::kNotFound);
}

TEST_P(StoreConformance, ListsAreSortedAsByteStrings) {
  for (const char* path : {"b", "a/z", "a/c/d", "a-b", "a.b", "a/c-", "\xC3\xA4", "Z"}) {
    ASSERT_TRUE(put(store(), path, "12345").ok()) << path;
  }
  const auto pending = store().create("a/pending");
  ASSERT_TRUE(pending.ok());
  EXPECT_EQ(listed(store(), "", false), Paths({"Z", "a/", "a-b", "a.b", "b", "\xC3\xA4"}));
  Paths inside = {"a/c/", "a/c-", "a/pending.tmp", "a/z"};
  Paths all = {"Z", "a-b", "a.b", "a/c-", "a/c/d", "a/pending.tmp", "a/z", "b", "\xC3\xA4"};
  if (!has_directories()) {
    std::erase(inside, "a/pending.tmp");
    std::erase(all, "a/pending.tmp");
  }
  EXPECT_EQ(listed(store(), "a", false), inside);
  EXPECT_EQ(listed(store(), "", true), all);
  EXPECT_EQ(listed(store(), "a/c", true), Paths({"a/c/d"}));
  const auto entries = store().list("a", true);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->front().status.size_bytes, 5U);
  EXPECT_EQ(entries->front().status.modified_s, store().status("a/c-")->modified_s);
}

TEST_P(StoreConformance, StatusTellsFilesFromDirectories) {
  ASSERT_TRUE(put(store(), "a/b", "123").ok());
  EXPECT_EQ(store().status("a/b")->size_bytes, 3U);
  EXPECT_FALSE(store().status("a/b")->is_directory);
  EXPECT_TRUE(store().status("a")->is_directory);
  const auto root = store().status("");
  ASSERT_TRUE(root.ok()) << root.error().message;
  EXPECT_TRUE(root->is_directory);
}

TEST_P(StoreConformance, RemovesFilesAndEmptyDirectories) {
  ASSERT_TRUE(put(store(), "a/b", "1").ok());
  EXPECT_EQ(code_of(store().remove("a")), ErrorCode::kIo) << "not empty";
  EXPECT_TRUE(store().remove("a/b").ok());
  EXPECT_EQ(code_of(store().remove("a/b")), ErrorCode::kNotFound);
  if (has_directories()) {
    EXPECT_TRUE(store().remove("a").ok());
  }
  EXPECT_EQ(code_of(store().status("a")), ErrorCode::kNotFound);
  EXPECT_TRUE(put(store(), "a/b", "2").ok()) << "directories are made again when missing";
}

TEST_P(StoreConformance, RenamesFilesAndTreesToFreeNames) {
  if (!store().capabilities().can_rename) GTEST_SKIP() << "what cannot be renamed is tested elsewhere";
  ASSERT_TRUE(put(store(), "events/0/e", "1").ok());
  ASSERT_TRUE(put(store(), "events/1/e", "2").ok());
  ASSERT_TRUE(put(store(), "events-not", "3").ok());
  ASSERT_TRUE(store().rename("events", "attempts/1/events").ok());
  EXPECT_EQ(listed(store(), "", true), Paths({"attempts/1/events/0/e", "attempts/1/events/1/e", "events-not"}));
  ASSERT_TRUE(store().rename("events-not", "x/y").ok());
  EXPECT_EQ(*store().read_all("x/y", 1), "3");
  EXPECT_EQ(code_of(store().rename("x/y", "attempts/1/events/0/e")), ErrorCode::kInvalid) << "a file is there";
  EXPECT_EQ(code_of(store().rename("x/y", "attempts/1")), ErrorCode::kInvalid) << "a directory is there";
  EXPECT_EQ(code_of(store().rename("attempts", "x")), ErrorCode::kInvalid) << "even for a directory";
  EXPECT_EQ(code_of(store().rename("attempts", "attempts/2/attempts")), ErrorCode::kInvalid) << "into itself";
  EXPECT_EQ(code_of(store().rename("x/y", "x/y")), ErrorCode::kInvalid) << "onto itself";
  EXPECT_EQ(*store().read_all("attempts/1/events/0/e", 1), "1");
  ASSERT_TRUE(put(store(), "events/0/e", "new").ok()) << "the place is free again";
  EXPECT_EQ(*store().read_all("events/0/e", 10), "new");
}

TEST_P(StoreConformance, TheClockIsTheOneOfModificationTimes) {
  const auto before = store().now_s();
  ASSERT_TRUE(before.ok()) << before.error().message;
  ASSERT_TRUE(put(store(), "f", "x").ok());
  const auto after = store().now_s();
  ASSERT_TRUE(after.ok());
  // A service says the time in whole seconds, and may work it out once a second.
  const double coarse_s = store().capabilities().is_remote ? 1 : 0;
  EXPECT_LE(*before, store().status("f")->modified_s + coarse_s);
  EXPECT_LE(store().status("f")->modified_s, *after + coarse_s);
  EXPECT_EQ(listed(store(), "", true), Paths({"f"})) << "asking for the time leaves nothing behind";
}

TEST_P(StoreConformance, SyncOfAMissingDirectoryIsAnError) {
  ASSERT_TRUE(put(store(), "d/f", "x").ok());
  EXPECT_TRUE(store().sync_directory("d").ok());
  EXPECT_TRUE(store().sync_directory("d").ok());
  EXPECT_TRUE(store().sync_directory("").ok());
  if (has_directories()) {
    EXPECT_EQ(code_of(store().sync_directory("e")), ErrorCode::kIo);
  }
}

TEST_P(StoreConformance, AFileMayOutliveItsStore) {
  auto file = store().create("f");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->append("x").ok());
  close();
  (*file)->abandon();
}

// Sizes around every limit of the implementation, in pieces of every size.
TEST_P(StoreConformance, BytesComeBackHoweverTheyWereCut) {
  std::mt19937_64 random(7);
  for (const std::size_t size : {1U, 511U, 4096U, 524287U, 524288U, 524289U, 1'500'000U}) {
    Bytes content(size, '\0');
    for (char& byte : content) byte = static_cast<char>(random());
    const std::string path = "sizes/" + std::to_string(size);
    auto file = store().create(path);
    ASSERT_TRUE(file.ok());
    for (std::size_t at = 0; at < size;) {
      std::vector<ByteView> pieces;
      const std::size_t piece_limit = std::size_t{1} << (random() % 20);
      for (std::size_t i = 0; i < 1500 && at < size; ++i) {
        pieces.push_back(ByteView(content).substr(at, random() % (piece_limit + 1)));
        at += pieces.back().size();
      }
      ASSERT_TRUE((*file)->append(pieces).ok());
    }
    EXPECT_EQ((*file)->size_bytes(), size);
    ASSERT_TRUE((*file)->publish(false).ok());
    const auto back = store().read_all(path, size);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(*back == content) << size;
    const std::uint64_t offset = random() % size;
    EXPECT_TRUE(*store().read(path, offset, 1000) == content.substr(offset, 1000)) << size;
  }
}

TEST_P(StoreConformance, ManyThreadsMayWriteAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int step = 0; step < 50; ++step) {
        const std::string path = "events/" + std::to_string(step) + "/worker_" + std::to_string(t);
        const auto written = put(store(), path, path);
        EXPECT_TRUE(written.ok()) << written.error().message;
        EXPECT_EQ(*store().read_all(path, 100), path);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(listed(store(), "events", true).size(), 200U);
}

}  // namespace
}  // namespace tornasole::store
