// A trial is written by somebody else: no name in it leads outside, and nothing in it blocks or fills the reader.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "store/conformance.h"
#include "store/local/file_handle.h"
#include "store/local/local_listing.h"
#include "store/local/local_store.h"

namespace tornasole::store {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

// Both ways of opening must be equally tight.
class HostileTrial : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    fs::create_directories(root() + "/inside");
    fs::create_directories(outside());
    std::ofstream(outside() + "/secret") << "secret";
    std::ofstream(root() + "/inside/plain") << "plain";
    auto store = open_local_store(root(), {.calls = {.openat2 = GetParam()}});
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(*store);
  }
  std::string root() const { return directory_.path() + "/trial"; }
  std::string outside() const { return directory_.path() + "/outside"; }
  Store& store() { return *store_; }
  void link(const std::string& target, const std::string& name) { fs::create_symlink(target, root() + "/" + name); }
  // Every file outside, with its content.
  std::string outside_state() const {
    std::string state;
    for (const auto& entry : fs::recursive_directory_iterator(outside())) {
      std::ifstream file(entry.path());
      state += entry.path().string() + "=" + std::string(std::istreambuf_iterator<char>(file), {}) + "\n";
    }
    return state;
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Openat2, HostileTrial, testing::Bool(),
                         [](const auto& given) { return given.param ? "InOneCall" : "ByComponents"; });

TEST_P(HostileTrial, LinksAreNeverFollowed) {
  const std::string before = outside_state();
  link(outside() + "/secret", "to_file");
  link("../outside", "to_directory");
  link(outside(), "inside/to_directory");
  link("inside/plain", "to_inside");
  link("inside", "to_inside_directory");
  link("itself", "itself");
  link("/proc/self/root" + outside(), "magic");
  for (const char* path : {"to_file", "to_directory/secret", "inside/to_directory/secret", "to_inside",
                           "to_inside_directory/plain", "itself", "itself/x", "magic/secret"}) {
    EXPECT_EQ(code_of(store().read(path, 0, 100)), ErrorCode::kCorrupt) << path;
    EXPECT_EQ(code_of(store().read_all(path, 100)), ErrorCode::kCorrupt) << path;
    EXPECT_EQ(code_of(store().status(path)), ErrorCode::kCorrupt) << path;
  }
  for (const char* directory : {"to_directory", "inside/to_directory", "to_inside_directory", "itself", "magic"}) {
    const std::string below = directory + std::string("/new");
    EXPECT_EQ(code_of(store().list(directory, true)), ErrorCode::kCorrupt) << directory;
    EXPECT_EQ(code_of(store().create(below)), ErrorCode::kIo) << directory;
    EXPECT_EQ(code_of(store().create(below + "/deeper")), ErrorCode::kIo) << directory;
    EXPECT_EQ(code_of(store().create_exclusive(below, "x")), ErrorCode::kIo) << directory;
    EXPECT_FALSE(store().rename("inside/plain", below).ok()) << directory;
    EXPECT_FALSE(store().rename(directory + std::string("/secret"), "stolen").ok()) << directory;
    EXPECT_FALSE(store().remove(directory + std::string("/secret")).ok()) << directory;
    EXPECT_FALSE(store().sync_directory(directory).ok()) << directory;
  }
  EXPECT_EQ(outside_state(), before);
  EXPECT_TRUE(fs::exists(root() + "/inside/plain"));
}

TEST_P(HostileTrial, LinksAreListedAsEntriesAndRemovedAsLinks) {
  link(outside() + "/secret", "l");
  link(outside(), "m");
  EXPECT_EQ(listed(store(), "", true), Paths({"inside/plain", "l", "m"}));
  EXPECT_EQ(listed(store(), "", false), Paths({"inside/", "l", "m"}));
  EXPECT_EQ(store().list("", false)->at(1).status.size_bytes, 0U);
  EXPECT_TRUE(store().remove("l").ok());
  EXPECT_TRUE(store().remove("m").ok());
  EXPECT_TRUE(fs::exists(outside() + "/secret"));
}

TEST_P(HostileTrial, SpecialFilesAreDamageAtOnce) {
  ASSERT_EQ(mkfifo((root() + "/pipe").c_str(), 0600), 0);
  // Bound by a short name: the address has room for 107 bytes.
  const FileHandle socket_handle(socket(AF_UNIX, SOCK_STREAM, 0));
  const std::string here = fs::current_path();
  fs::current_path(root());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_handle.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  fs::current_path(here);
  Paths special = {"pipe", "socket", "inside"};
  // Making a device needs rights that a container may lack.
  if (mknod((root() + "/device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) special.push_back("device");
  for (const std::string& path : special) {
    EXPECT_EQ(code_of(store().read(path, 0, 10)), ErrorCode::kCorrupt) << path;
    EXPECT_EQ(code_of(store().read_all(path, 10)), ErrorCode::kCorrupt) << path;
    EXPECT_EQ(store().status(path).ok(), path == "inside") << path;
    EXPECT_NE(store().read(path, 0, 10).error().message.find(path), std::string::npos);
  }
  EXPECT_EQ(listed(store(), "", false).size(), special.size());
}

TEST_P(HostileTrial, AHugeSparseFileIsReadInBoundsOnly) {
  std::ofstream(root() + "/sparse").flush();
  const std::uint64_t size = std::uint64_t{1} << 40;
  // Some file systems have no files of that size; the largest they have will do.
  if (truncate((root() + "/sparse").c_str(), static_cast<off_t>(size)) != 0) {
    ASSERT_EQ(truncate((root() + "/sparse").c_str(), off_t{1} << 33), 0);
  }
  EXPECT_EQ(code_of(store().read_all("sparse", 256 << 20)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(store().read("sparse", 0, kAll)), ErrorCode::kInvalid);
  const auto some = store().read("sparse", (std::uint64_t{1} << 33) - 10, 10);
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(*some, Bytes(10, '\0'));
}

TEST_P(HostileTrial, AListingStopsAtTheDepthThatPathsHave) {
  std::string deep = root();
  for (int level = 0; level < 80; ++level) {
    deep += "/d";
    fs::create_directory(deep);
    std::ofstream(deep + "/f").flush();
  }
  const auto entries = store().list("", true);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_EQ(entries->size(), 64U) << "one in inside, 63 below d: the 64th component of each is f";
  for (const Entry& entry : *entries) EXPECT_TRUE(store().read_all(entry.path, 10).ok()) << entry.path;
}

TEST(Listing, MoreEntriesThanAllowedIsDamage) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 5; ++i) std::ofstream(directory.path() + "/" + std::to_string(i)).flush();
  const FileHandle root(open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(list_beneath(root.get(), directory.path(), "", {.max_entries = 5}).ok());
  EXPECT_EQ(code_of(list_beneath(root.get(), directory.path(), "", {.max_entries = 4})), ErrorCode::kCorrupt);
}

TEST(WritePieces, AWriterWithoutRoomReportsWhatItWrote) {
  const FileHandle full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  const ByteView pieces[] = {"abc"};
  std::uint64_t written = 0;
  EXPECT_EQ(write_pieces(full.get(), pieces, &written), ENOSPC);
  EXPECT_EQ(written, 0U);
}

TEST(Uninterrupted, GivesUpWhenEveryCallIsInterrupted) {
  int calls = 0;
  const auto result = uninterrupted([&calls] {
    ++calls;
    errno = EINTR;
    return -1;
  });
  EXPECT_EQ(result, -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_GT(calls, 10);
  calls = 0;
  EXPECT_EQ(uninterrupted([&calls] {
              errno = EINTR;
              return ++calls < 3 ? -1 : 7;
            }),
            7);
}

}  // namespace
}  // namespace tornasole::store
