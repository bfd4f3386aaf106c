// A store that goes away and comes back: what waits on the disk, in what order it arrives, and what a reader sees.

#include "store/spool/spool_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "base/errors.h"
#include "store/conformance.h"
#include "store/local/local_store.h"
#include "store/memory/memory_store.h"
#include "support/forwarding_store.h"

namespace tornasole::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What the test and the store share.
struct Remote {
  std::atomic<bool> is_away = false;
  std::atomic<bool> is_cancelled = false;
  std::atomic<int> refused_calls = 0;
  std::mutex mutex;
  std::vector<std::string> arrived;  // guarded by mutex

  Status check() {
    if (!is_away && !is_cancelled) return {};
    ++refused_calls;
    return io_error("nobody answers");
  }
  void note(const std::string& path) {
    const std::lock_guard lock(mutex);
    arrived.push_back(path);
  }
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex);
    return arrived;
  }
};

class RemoteFile final : public ForwardingFile {
 public:
  RemoteFile(std::unique_ptr<PendingFile> base, std::shared_ptr<Remote> remote, std::string path)
      : ForwardingFile(std::move(base)), remote_(std::move(remote)), path_(std::move(path)) {}
  Status publish(bool replace) override {
    TORNASOLE_CHECK(remote_->check());
    TORNASOLE_CHECK(ForwardingFile::publish(replace));
    remote_->note(path_);
    return {};
  }

 private:
  std::shared_ptr<Remote> remote_;
  std::string path_;
};

class RemoteStore final : public ForwardingStore {
 public:
  explicit RemoteStore(std::shared_ptr<Remote> remote)
      : ForwardingStore(std::make_unique<MemoryStore>()), remote_(std::move(remote)) {}

  std::string description() const override { return "s3://bucket/run"; }
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override {
    TORNASOLE_TRY(auto file, ForwardingStore::create(path));
    return std::unique_ptr<PendingFile>(std::make_unique<RemoteFile>(std::move(file), remote_, std::string(path)));
  }
  Result<FileStatus> status(std::string_view path) override {
    TORNASOLE_CHECK(remote_->check());
    return ForwardingStore::status(path);
  }
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override {
    TORNASOLE_CHECK(remote_->check());
    return ForwardingStore::list(directory, recursive);
  }
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override {
    TORNASOLE_CHECK(remote_->check());
    return ForwardingStore::read_all(path, limit);
  }
  Status remove(std::string_view path) override {
    TORNASOLE_CHECK(remote_->check());
    remote_->note("-" + std::string(path));
    return ForwardingStore::remove(path);
  }
  void cancel() noexcept override { remote_->is_cancelled = true; }

 private:
  std::shared_ptr<Remote> remote_;
};

class SpoolStoreTest : public testing::Test {
 protected:
  std::unique_ptr<Store> open(std::uint64_t max_bytes = std::uint64_t{1} << 30U) {
    remote_ = std::make_shared<Remote>();
    auto store = open_spool_store(std::make_unique<RemoteStore>(remote_), {.directory = directory_.path(),
                                                                           .max_bytes = max_bytes,
                                                                           .location = "s3://bucket/run",
                                                                           .log =
                                                                               [this](std::string_view message) {
                                                                                 const std::lock_guard lock(log_mutex_);
                                                                                 log_.emplace_back(message);
                                                                               },
                                                                           .first_wait_s = 0.01,
                                                                           .max_wait_s = 0.02});
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(*store);
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }
  bool is_spool_empty() const { return std::filesystem::is_empty(directory_.path()); }

  TemporaryDirectory directory_;
  std::shared_ptr<Remote> remote_;
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

TEST_F(SpoolStoreTest, WhileTheStoreAnswersNothingIsWrittenToTheDisk) {
  const auto store = open();
  ASSERT_TRUE(put(*store, "events/1", "a").ok());
  ASSERT_TRUE(put(*store, "index/1", "b").ok());
  EXPECT_THAT(remote_->order(), ElementsAre("events/1", "index/1"));
  EXPECT_TRUE(is_spool_empty());
  EXPECT_EQ(store->traffic().spooled, 0U);
  EXPECT_TRUE(store->settle().ok());
  EXPECT_THAT(log(), IsEmpty());
}

TEST_F(SpoolStoreTest, WhatComesDuringAnOutageArrivesAfterItInOrder) {
  const auto store = open();
  ASSERT_TRUE(put(*store, "events/1", "a").ok());
  remote_->is_away = true;
  std::vector<std::string> expected = {"events/1"};
  for (int step = 1; step <= 20; ++step) {
    if (step > 1) {
      ASSERT_TRUE(put(*store, "events/" + std::to_string(step), std::string(1000, 'v'), true).ok());
      expected.push_back("events/" + std::to_string(step));
    }
    ASSERT_TRUE(put(*store, "index/" + std::to_string(step), "i").ok());
    expected.push_back("index/" + std::to_string(step));
  }
  EXPECT_THAT(remote_->order(), ElementsAre("events/1"));
  EXPECT_EQ(store->traffic().waiting, 39U);
  remote_->is_away = false;
  EXPECT_TRUE(store->settle().ok());
  EXPECT_EQ(remote_->order(), expected);
  EXPECT_EQ(store->traffic().spooled, 39U);
  EXPECT_EQ(store->traffic().waiting, 0U);
  EXPECT_EQ(store->read_all("events/20", 2000)->size(), 1000U);
  // Said once when it went, once when it was back, by the thread that sent the last of them; and further files go
  // straight there.
  for (int i = 0; i < 1000 && log().size() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(log().size(), 2U);
  ASSERT_TRUE(put(*store, "index/21", "i").ok());
  EXPECT_EQ(store->traffic().spooled, 39U);
}

TEST_F(SpoolStoreTest, AnEmptySpoolLeavesNothingBehind) {
  {
    const auto store = open();
    remote_->is_away = true;
    ASSERT_TRUE(put(*store, "f", "x").ok());
    EXPECT_FALSE(is_spool_empty());
    remote_->is_away = false;
    EXPECT_TRUE(store->settle().ok());
  }
  EXPECT_TRUE(is_spool_empty());
}

TEST_F(SpoolStoreTest, ReadersSeeWhatWaitsAndAreNotKeptWaiting) {
  const auto store = open();
  ASSERT_TRUE(put(*store, "index/1", "one").ok());
  ASSERT_TRUE(put(*store, "index/2", "two").ok());
  remote_->is_away = true;
  ASSERT_TRUE(put(*store, "index/3", "three").ok());
  ASSERT_TRUE(put(*store, "health", "old", true).ok());
  ASSERT_TRUE(put(*store, "health", "newer", true).ok());
  ASSERT_TRUE(store->remove("index/1").ok());
  EXPECT_EQ(*store->read_all("index/3", 10), "three");
  EXPECT_EQ(*store->read("index/3", 1, 3), "hre");
  EXPECT_EQ(*store->read_all("health", 10), "newer");
  EXPECT_EQ(store->status("index/3")->size_bytes, 5U);
  EXPECT_EQ(code_of(store->status("index/1")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(store->status("index/2")), ErrorCode::kIo);
  EXPECT_EQ(code_of(put(*store, "index/3", "other")), ErrorCode::kInvalid) << "published is published";
  remote_->is_away = false;
  ASSERT_TRUE(store->settle().ok());
  EXPECT_THAT(remote_->order(), ElementsAre("index/1", "index/2", "index/3", "health", "health", "-index/1"));
  EXPECT_THAT(listed(*store, "index", true), ElementsAre("index/2", "index/3"));
}

TEST_F(SpoolStoreTest, AFullSpoolWaitsForRoomAndGivesUpWhenCancelled) {
  const auto store = open(2500);
  remote_->is_away = true;
  ASSERT_TRUE(put(*store, "a", std::string(1000, 'a')).ok());
  ASSERT_TRUE(put(*store, "b", std::string(1000, 'b')).ok());
  const Status large = put(*store, "large", std::string(3000, 'l'));
  EXPECT_EQ(code_of(large), ErrorCode::kIo) << "it can never fit";
  EXPECT_THAT(large.error().message, HasSubstr("spool_bytes"));
  std::thread back([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    remote_->is_away = false;
  });
  EXPECT_TRUE(put(*store, "c", std::string(1000, 'c')).ok());
  back.join();
  ASSERT_TRUE(store->settle().ok());
  remote_->is_away = true;
  ASSERT_TRUE(put(*store, "d", std::string(2000, 'd')).ok());
  store->cancel();
  EXPECT_EQ(code_of(put(*store, "e", std::string(1000, 'e'))), ErrorCode::kIo);
  EXPECT_THAT(remote_->order(), ElementsAre("a", "b", "c"));
}

TEST_F(SpoolStoreTest, WhatIsLeftWhenTheProcessEndsIsDeliveredByTheNext) {
  {
    const auto store = open();
    remote_->is_away = true;
    ASSERT_TRUE(put(*store, "events/1", "values").ok());
    store->cancel();
    ASSERT_TRUE(put(*store, "index/1", "index").ok()) << "after cancel the disk still takes it";
    const Status settled = store->settle();
    ASSERT_FALSE(settled.ok());
    EXPECT_THAT(settled.error().message, HasSubstr("2 files of s3://bucket/run wait in"));
    EXPECT_THAT(settled.error().message, HasSubstr("tornasole upload "));
  }
  const auto found = find_spools(directory_.path());
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().owner.location, "s3://bucket/run");
  EXPECT_EQ(found->front().owner.process, this_process());
  MemoryStore target;
  SpoolDelivery delivery;
  const Status delivered = deliver_spool(found->front(), target, &delivery);
  ASSERT_TRUE(delivered.ok()) << delivered.error().message;
  EXPECT_EQ(delivery.files, 2);
  EXPECT_THAT(delivery.problems, IsEmpty());
  EXPECT_EQ(*target.read_all("events/1", 10), "values");
  EXPECT_TRUE(is_spool_empty());
}

TEST_F(SpoolStoreTest, DeliveryRefusesWhatIsDamagedOrTakenAndSendsTheRest) {
  {
    const auto store = open();
    remote_->is_away = true;
    for (const char* path : {"a", "b", "c"}) ASSERT_TRUE(put(*store, path, "content").ok());
    store->cancel();
  }
  const auto found = find_spools(directory_.path());
  ASSERT_EQ(found->size(), 1U);
  {
    const auto spool = open_local_store(found->front().directory);
    ASSERT_TRUE((*spool)->remove(spool_data_path(1)).ok());
    ASSERT_TRUE(put(**spool, spool_data_path(1), "CONTENT").ok());
  }
  MemoryStore target;
  ASSERT_TRUE(put(target, "b", "something else").ok());
  SpoolDelivery delivery;
  ASSERT_TRUE(deliver_spool(found->front(), target, &delivery).ok());
  EXPECT_EQ(delivery.files, 1);
  EXPECT_EQ(delivery.problems.size(), 2U);
  EXPECT_THAT(listed(target, "", true), ElementsAre("b", "c"));
  EXPECT_EQ(*target.read_all("b", 20), "something else");
  EXPECT_FALSE(is_spool_empty()) << "what was not sent is still there";
}

TEST_F(SpoolStoreTest, FilesBeyondMemoryAreCollectedOnTheDisk) {
  const auto store = open();
  const std::string content(std::size_t{17} << 20U, 'x');
  auto file = store->create("large");
  ASSERT_TRUE(file.ok());
  for (std::size_t at = 0; at < content.size(); at += 1 << 20) {
    ASSERT_TRUE((*file)->append(ByteView(content).substr(at, 1 << 20)).ok());
  }
  EXPECT_FALSE(is_spool_empty());
  EXPECT_EQ(*(*file)->read_back(5, 3), "xxx");
  ASSERT_TRUE((*file)->publish(false).ok());
  ASSERT_TRUE(put(*store, "index", "i").ok());
  ASSERT_TRUE(store->settle().ok());
  EXPECT_THAT(remote_->order(), ElementsAre("large", "index"));
  EXPECT_EQ(store->status("large")->size_bytes, content.size());
  auto abandoned = store->create("abandoned");
  ASSERT_TRUE((*abandoned)->append(content).ok());
  (*abandoned)->abandon();
  ASSERT_TRUE(store->settle().ok());
}

TEST(SpoolJournal, TextThatIsNoActionIsRefused) {
  const char* cases[] = {
      "",
      "{}",
      R"({"action": "run", "path": "a", "replace": true, "bytes": 1, "crc32c": 1})",
      R"({"action": "publish", "path": "../a", "replace": true, "bytes": 1, "crc32c": 1})",
      R"({"action": "publish", "path": "/etc/passwd", "replace": true, "bytes": 1, "crc32c": 1})",
      R"({"action": "publish", "path": "a", "replace": 1, "bytes": 1, "crc32c": 1})",
      R"({"action": "publish", "path": "a", "replace": true, "bytes": -1, "crc32c": 1})",
  };
  for (const char* text : cases) EXPECT_FALSE(decode_spool_action(text, 1).ok()) << text;
  const SpoolAction action{.number = 7, .path = "a/b", .replace = true, .size_bytes = 5, .crc = 0xFFFFFFFF};
  const auto read = decode_spool_action(encode_spool_action(action), 7);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->path, "a/b");
  EXPECT_EQ(read->crc, 0xFFFFFFFF);
  EXPECT_FALSE(decode_spool_owner(R"({"location": "s3://b/p", "host": "h", "pid": 0, "start": 1})").ok());
}

}  // namespace
}  // namespace tornasole::store
