#include "store/local/local_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/conformance.h"
#include "store/local/file_handle.h"

namespace tornasole::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Paths = std::vector<std::string>;

class LocalStoreTest : public testing::Test {
 protected:
  std::string path(std::string_view below) const { return directory_.path() + "/" + std::string(below); }
  static void write(const std::string& path, std::string_view content) { std::ofstream(path) << content; }
  std::unique_ptr<Store> open(const std::string& root, LocalStoreOptions options = {}) {
    auto store = open_local_store(root, options);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return store.ok() ? std::move(*store) : nullptr;
  }

  TemporaryDirectory directory_;
};

TEST_F(LocalStoreTest, OpeningLooksButWritesNothing) {
  const auto store = open(path("a/b/c"));
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->description(), path("a/b/c"));
  EXPECT_EQ(code_of(store->status("")), ErrorCode::kNotFound);
  EXPECT_EQ(listed(*store, "", true), Paths());
  EXPECT_FALSE(fs::exists(path("a")));
  ASSERT_TRUE(put(*store, "f", "x").ok());
  EXPECT_TRUE(fs::exists(path("a/b/c/f")));
}

TEST_F(LocalStoreTest, RootsThatCannotBeAreRefusedWithTheirPath) {
  write(path("file"), "");
  fs::create_symlink(path("nowhere"), path("dangling"));
  fs::create_symlink(path("loop"), path("loop"));
  const struct {
    const char* what;
    std::string root;
    const char* message;
  } kCases[] = {
      {"a relative path", "runs/a", "runs/a"},
      {"no path", "", "absolute path"},
      {"a NUL", path(std::string_view("a\0b", 3)), "NUL"},
      {"a file", path("file"), "file is a file, not a directory"},
      {"a file with a slash", path("file/"), "file is a file, not a directory"},
      {"below a file", path("file/a/b"), "file is a file, not a directory"},
      {"a link to nothing", path("dangling"), "dangling is a link"},
      {"below a link to nothing", path("dangling/a"), "dangling is a link"},
      {"a link to itself", path("loop/a"), "loop"},
      {"too long a name", path(std::string(300, 'x')), "xxx"},
  };
  for (const auto& c : kCases) {
    const auto store = open_local_store(c.root);
    ASSERT_FALSE(store.ok()) << c.what;
    EXPECT_EQ(store.error().code, ErrorCode::kInvalid) << c.what;
    EXPECT_THAT(store.error().message, HasSubstr(c.message)) << c.what;
  }
}

TEST_F(LocalStoreTest, TheRootMayBeALinkToADirectory) {
  fs::create_directory(path("real"));
  fs::create_symlink(path("real"), path("link"));
  const auto store = open(path("link//"));
  ASSERT_TRUE(put(*store, "d/f", "x").ok());
  EXPECT_TRUE(fs::exists(path("real/d/f")));
}

TEST_F(LocalStoreTest, ALinkToNothingAboveTheRootEndsTheAttempt) {
  const auto store = open(path("above/root"));
  fs::create_symlink(path("nothing"), path("above"));
  const auto created = store->create("f");
  EXPECT_EQ(code_of(created), ErrorCode::kIo);
  EXPECT_THAT(created.error().message, HasSubstr("above/root"));
}

TEST_F(LocalStoreTest, ARemovedRootIsReportedByEveryCallAndMadeAgainOnRequest) {
  for (const bool has_openat2 : {true, false}) {
    const auto store = open(path("root"), {.calls = {.openat2 = has_openat2}});
    ASSERT_TRUE(put(*store, "d/f", "x").ok());
    auto pending = store->create("d/p");
    ASSERT_TRUE(pending.ok());
    ASSERT_TRUE((*pending)->append("pending").ok());
    fs::remove_all(path("root"));

    const auto created = store->create("d/g");
    EXPECT_EQ(code_of(created), ErrorCode::kIo);
    EXPECT_THAT(created.error().message, HasSubstr(path("root") + " was removed"));
    EXPECT_EQ(code_of(store->create("g")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->create_exclusive("g", "x")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->sync_directory("")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->status("")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->status("d/f")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->list("", true)), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->list("d", false)), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->read("d/f", 0, 1)), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->read_all("d/f", 1)), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->remove("d/f")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->rename("d/f", "e")), ErrorCode::kIo);
    EXPECT_EQ(code_of(store->now_s()), ErrorCode::kIo);
    EXPECT_EQ(*(*pending)->read_back(0, 100), "pending");
    EXPECT_EQ(*(*pending)->read_back(2, 3), "ndi");
    EXPECT_EQ(*(*pending)->read_back(100, 3), "");
    EXPECT_EQ(code_of((*pending)->publish(false)), ErrorCode::kIo);
    EXPECT_EQ(*(*pending)->read_back(0, 100), "pending");
    (*pending)->abandon();
    EXPECT_EQ(code_of((*pending)->read_back(0, 100)), ErrorCode::kInvalid);
    EXPECT_FALSE(fs::exists(path("root")));

    EXPECT_TRUE(store->renew_root());
    EXPECT_FALSE(store->renew_root()) << "there is nothing to let go of";
    EXPECT_EQ(code_of(store->status("d/f")), ErrorCode::kNotFound);
    EXPECT_FALSE(fs::exists(path("root")));
    ASSERT_TRUE(put(*store, "d/f", "y").ok());
    EXPECT_EQ(*store->read_all("d/f", 1), "y");
    EXPECT_FALSE(store->renew_root());
    fs::remove_all(path("root"));
  }
}

TEST_F(LocalStoreTest, DirectoriesInsideAreMadeAgain) {
  const auto store = open(path("root"));
  ASSERT_TRUE(put(*store, "a/b/f", "x").ok());
  ASSERT_TRUE(store->sync_directory("a/b").ok());
  fs::remove_all(path("root/a"));
  ASSERT_TRUE(put(*store, "a/b/f", "y").ok());
  ASSERT_TRUE(store->sync_directory("a/b").ok());
  EXPECT_EQ(*store->read_all("a/b/f", 1), "y");
}

TEST_F(LocalStoreTest, ADirectoryMovedAsideBySomebodyElseIsNotWrittenToAnyMore) {
  const auto store = open(path("root"));
  ASSERT_TRUE(put(*store, "events/0", "x").ok());
  fs::rename(path("root/events"), path("root/aside"));
  ASSERT_TRUE(put(*store, "events/1", "y").ok());
  EXPECT_EQ(listed(*store, "", true), Paths({"aside/0", "events/1"}));
}

TEST_F(LocalStoreTest, AStoreForReadingOnlyWritesNothing) {
  ASSERT_TRUE(put(*open(path("root")), "f", "x").ok());
  const auto store = open(path("root"), {.read_only = true});
  EXPECT_EQ(*store->read_all("f", 1), "x");
  EXPECT_EQ(code_of(store->create("g")), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(store->create_exclusive("g", "")), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(store->remove("f")), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(store->rename("f", "g")), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(store->now_s()), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(store->sync_directory("")), ErrorCode::kUnsupported);
  EXPECT_EQ(listed(*store, "", true), Paths({"f"}));
  EXPECT_TRUE(listed(*open(path("later"), {.read_only = true}), "", true).empty());
}

TEST_F(LocalStoreTest, WithoutHardLinksNamesAreStillNotReplaced) {
  const auto store = open(path("root"), {.calls = {.openat2 = false, .renameat2 = false, .hard_links = false}});
  ASSERT_TRUE(put(*store, "f", "old").ok());
  EXPECT_EQ(code_of(put(*store, "f", "new")), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(store->create_exclusive("f", "new")), ErrorCode::kInvalid);
  EXPECT_TRUE(store->create_exclusive("g", "x").ok());
  EXPECT_EQ(code_of(store->rename("g", "f")), ErrorCode::kInvalid);
  EXPECT_EQ(*store->read_all("f", 3), "old");
  EXPECT_EQ(listed(*store, "", true), Paths({"f", "g"}));
}

TEST_F(LocalStoreTest, LongNamesCanBeClaimed) {
  const auto store = open(path("root"));
  const std::string name(251, 'x');
  EXPECT_TRUE(store->create_exclusive(name, "x").ok());
  EXPECT_TRUE(put(*store, "d/" + name, "x").ok());
}

TEST_F(LocalStoreTest, StaleDebrisOfClaimsAndClocksIsNotInTheWay) {
  const auto store = open(path("root"));
  ASSERT_TRUE(put(*store, "claim.smd.tmp", "debris").ok());
  EXPECT_TRUE(store->create_exclusive("claim.smd", "mine").ok());
  EXPECT_TRUE(store->now_s().ok());
  EXPECT_EQ(*store->read_all("claim.smd.tmp", 10), "debris");
}

// Room is taken ahead where the file system is one that it pays on.
TEST_F(LocalStoreTest, ALargeFileTakesNoMoreRoomThanItNeeds) {
  for (const bool is_reserved : {true, false}) {
    const auto store = open(path("root"), {.calls = {.fallocate = is_reserved}});
    const std::string name = is_reserved ? "ahead" : "plain";
    Bytes whole;
    auto file = store->create(name);
    ASSERT_TRUE(file.ok());
    for (const std::size_t piece : {700UL, 300'000UL, 5'000'000UL, 100UL, 2'200'000UL}) {
      const Bytes bytes(piece, static_cast<char>('a' + whole.size() % 26));
      ASSERT_TRUE((*file)->append(bytes).ok());
      whole += bytes;
      EXPECT_EQ(fs::file_size(path("root/" + name + ".tmp")), whole.size()) << "what is taken ahead is not shown";
    }
    ASSERT_TRUE((*file)->publish(/*replace=*/false).ok());
    EXPECT_EQ(*store->read_all(name, whole.size()), whole);
    const FileHandle written(::open(path("root/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(fsync(written.get()), 0);  // until then some file systems have not chosen its blocks
    struct stat found{};
    ASSERT_EQ(fstat(written.get(), &found), 0);
    EXPECT_LT(static_cast<std::size_t>(found.st_blocks) * 512, whole.size() + 64 * 1024);
  }
}

// A file-size limit stands for a full disk: the write that crosses it is short, the next one fails.
TEST_F(LocalStoreTest, AWriteThatDoesNotFitFailsAndLeavesNoDebris) {
  const auto store = open(path("root"));
  ASSERT_TRUE(put(*store, "before", "x").ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto file = store->create("d/big");
    if (!file.ok()) _exit(1);
    if (!(*file)->append(Bytes(60'000, 'a')).ok()) _exit(2);
    if (code_of((*file)->append(Bytes(60'000, 'b'))) != ErrorCode::kIo) _exit(3);
    if (code_of((*file)->append("c")) != ErrorCode::kIo) _exit(4);
    if (code_of((*file)->publish(false)) != ErrorCode::kIo) _exit(5);
    file->reset();
    _exit(listed(*store, "", true) == Paths({"before"}) ? 0 : 6);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST_F(LocalStoreTest, AForkedChildDoesNotRemoveTheFileOfItsParent) {
  const auto store = open(path("root"));
  auto file = store->create("f");
  ASSERT_TRUE(file.ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    file->reset();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE((*file)->append("x").ok());
  EXPECT_TRUE((*file)->publish(false).ok());
}

std::size_t open_descriptors() {
  const fs::directory_iterator descriptors("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(fs::begin(descriptors), fs::end(descriptors)));
}

TEST_F(LocalStoreTest, DescriptorsStayConstantWhateverHappens) {
  const auto store = open(path("root"));
  ASSERT_TRUE(put(*store, "first", "x").ok());
  ASSERT_TRUE(put(*store, "taken/0", "x").ok());
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = std::to_string(i);
    // Few directories and every fourth file kept, to spare the disk of the machine.
    ASSERT_TRUE(put(*store, "d" + std::to_string(i % 100) + "/f", name, true).ok());
    if (i % 4 != 0) continue;
    EXPECT_FALSE(put(*store, "taken/0", name).ok());
    EXPECT_FALSE(store->create("first/below").ok());
    EXPECT_FALSE(store->read("missing", 0, 1).ok());
    EXPECT_FALSE(store->read("d0", 0, 1).ok());
    EXPECT_FALSE(store->create_exclusive("first", name).ok());
    EXPECT_TRUE(store->create("abandoned").ok());
    EXPECT_TRUE(store->status("d0").ok());
    EXPECT_TRUE(store->list("d0", true).ok());
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(listed(*store, "", false).size(), 102U);
}

TEST_F(LocalStoreTest, DescriptorsDoNotReachOtherPrograms) {
  const auto store = open(path("root"));
  auto file = store->create("d/f");
  ASSERT_TRUE(file.ok());
  int of_the_store = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    if (!target.starts_with(path("root"))) continue;
    ++of_the_store;
    const int descriptor = std::stoi(entry.path().filename().string());
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0) << target;
  }
  EXPECT_EQ(of_the_store, 3) << "the root, the directory and the file";
}

}  // namespace
}  // namespace tornasole::store
