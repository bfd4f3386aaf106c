// Another user of the machine sees what the umask and `shared` allow, and gains nothing by waiting at our names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include "store/conformance.h"
#include "store/local/local_store.h"

namespace tornasole::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat status{};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

class UmaskGuard {
 public:
  explicit UmaskGuard(mode_t mask) : old_(umask(mask)) {}
  ~UmaskGuard() { umask(old_); }
  UmaskGuard(const UmaskGuard&) = delete;
  UmaskGuard& operator=(const UmaskGuard&) = delete;

 private:
  mode_t old_;
};

TEST(LocalPermissions, ModesAreOurOwnLessTheUmask) {
  const struct {
    const char* what;
    mode_t mask;
    bool shared;
    mode_t directory, file;
  } kCases[] = {
      {"open umask, private", 0000, false, 0700, 0600},   {"usual umask, private", 0022, false, 0700, 0600},
      {"closed umask, private", 0077, false, 0700, 0600}, {"open umask, shared", 0000, true, 0770, 0660},
      {"usual umask, shared", 0022, true, 0750, 0640},    {"closed umask, shared", 0077, true, 0700, 0600},
  };
  for (const auto& c : kCases) {
    const TemporaryDirectory directory;
    const UmaskGuard guard(c.mask);
    const std::string root = directory.path() + "/new/root";
    const auto store = open_local_store(root, {.shared = c.shared});
    ASSERT_TRUE(store.ok());
    auto pending = (*store)->create("d/e/pending");
    ASSERT_TRUE(pending.ok());
    ASSERT_TRUE(put(**store, "d/f", "x").ok());
    ASSERT_TRUE((*store)->create_exclusive("claim", "x").ok());
    ASSERT_TRUE((*store)->rename("claim", "moved/claim").ok());
    for (const char* made : {"/new", "/new/root", "/new/root/d", "/new/root/d/e", "/new/root/moved"}) {
      EXPECT_EQ(mode_of(directory.path() + made), c.directory) << c.what << ": " << made;
    }
    for (const char* made : {"/d/e/pending.tmp", "/d/f", "/moved/claim"}) {
      EXPECT_EQ(mode_of(root + made), c.file) << c.what << ": " << made;
    }
  }
}

// What waits at a name we want, made by `make` at that path; `victim` is what a link there points to.
struct Trap {
  const char* what;
  void (*make)(const std::string& path, const std::string& victim);
  bool is_directory = false;
};
const Trap kTraps[] = {
    {"a link to a file", [](const std::string& path, const std::string& victim) { fs::create_symlink(victim, path); }},
    {"a link to nothing",
     [](const std::string& path, const std::string& victim) { fs::create_symlink(victim + "-new", path); }},
    {"a hard link", [](const std::string& path, const std::string& victim) { fs::create_hard_link(victim, path); }},
    {"a pipe", [](const std::string& path, const std::string&) { ASSERT_EQ(mkfifo(path.c_str(), 0666), 0); }},
    {"a directory", [](const std::string& path, const std::string&) { fs::create_directory(path); }, true},
    {"a file", [](const std::string& path, const std::string&) { std::ofstream(path) << "foreign"; }},
};

class Traps : public testing::TestWithParam<Trap> {
 protected:
  void SetUp() override {
    fs::create_directories(directory_.path() + "/root/d");
    std::ofstream(victim()) << "precious";
    auto store = open_local_store(directory_.path() + "/root");
    ASSERT_TRUE(store.ok());
    store_ = std::move(*store);
  }
  std::string victim() const { return directory_.path() + "/victim"; }
  std::string path(const std::string& below) const { return directory_.path() + "/root/" + below; }
  void set_trap(const std::string& below) { GetParam().make(path(below), victim()); }
  Store& store() { return *store_; }
  void expect_victims_unchanged() const {
    std::ifstream file(victim());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious");
    EXPECT_FALSE(fs::exists(victim() + "-new"));
  }
  static std::string what_is_at(const std::string& path) {
    const fs::file_status status = fs::symlink_status(path);
    std::string text = std::to_string(static_cast<int>(status.type()));
    if (fs::is_symlink(status)) text += fs::read_symlink(path).string();
    if (fs::is_regular_file(status)) text += std::to_string(fs::file_size(path));
    return text;
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Waiting, Traps, testing::ValuesIn(kTraps), [](const auto& given) {
  std::string name;
  for (const char c : std::string_view(given.param.what)) {
    if (std::isalpha(static_cast<unsigned char>(c))) name += c;
  }
  return name;
});

TEST_P(Traps, AtTheTemporaryNameIsAnErrorAndLeftAlone) {
  set_trap("d/f.tmp");
  const std::string before = what_is_at(path("d/f.tmp"));
  EXPECT_EQ(code_of(store().create("d/f")), ErrorCode::kIo);
  EXPECT_EQ(what_is_at(path("d/f.tmp")), before);
  EXPECT_FALSE(fs::exists(path("d/f")));
  expect_victims_unchanged();
}

TEST_P(Traps, AtTheFinalNameIsNotReplacedUnasked) {
  set_trap("d/f");
  const std::string before = what_is_at(path("d/f"));
  EXPECT_EQ(code_of(put(store(), "d/f", "ours", /*replace=*/false)), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(store().create_exclusive("d/f", "ours")), ErrorCode::kInvalid);
  EXPECT_EQ(what_is_at(path("d/f")), before);
  EXPECT_FALSE(fs::exists(path("d/f.tmp")));
  expect_victims_unchanged();
}

TEST_P(Traps, AtTheFinalNameIsReplacedItselfWhenAsked) {
  set_trap("d/f");
  const auto published = put(store(), "d/f", "ours", /*replace=*/true);
  EXPECT_EQ(published.ok(), !GetParam().is_directory);
  if (published.ok()) {
    EXPECT_EQ(*store().read_all("d/f", 10), "ours");
  }
  EXPECT_FALSE(fs::exists(path("d/f.tmp")));
  expect_victims_unchanged();
}

TEST_P(Traps, SetWhileAFileIsBeingWrittenCatchesNothing) {
  auto file = store().create("d/f");
  ASSERT_TRUE(file.ok());
  fs::remove(path("d/f.tmp"));
  set_trap("d/f.tmp");
  ASSERT_TRUE((*file)->append("ours").ok());
  file->reset();
  expect_victims_unchanged();
}

TEST_P(Traps, InPlaceOfADirectoryIsEnteredOnlyIfItIsOne) {
  set_trap("e");
  EXPECT_EQ(store().create("e/f").ok(), GetParam().is_directory);
  EXPECT_EQ(store().create("e/g/f").ok(), GetParam().is_directory);
  expect_victims_unchanged();
}

// Runs as a user without rights, since root may write everywhere. Returns what the function said.
std::string as_ordinary_user(const std::function<std::string()>& function) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    constexpr unsigned kNobody = 65534;
    std::string answer = "cannot become another user";
    if (getuid() != 0 || (setgid(kNobody) == 0 && setuid(kNobody) == 0)) answer = function();
    const ssize_t written = write(ends[1], answer.data(), answer.size());
    _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string answer;
  char buffer[512];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return answer;
}

template <typename T>
std::string answer_of(const Result<T>& result) {
  return result.ok() ? "ok" : std::string(error_code_name(result.error().code)) + ": " + result.error().message;
}

TEST(LocalPermissions, AnUnwritableDirectoryIsRefusedAtOpenWithItsPath) {
  const TemporaryDirectory directory;
  const std::string closed = directory.path() + "/closed";
  fs::create_directory(closed);
  std::ofstream(closed + "/f") << "x";
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((closed + "/f").c_str(), 0644), 0);
  ASSERT_EQ(chmod(closed.c_str(), 0555), 0);

  EXPECT_THAT(as_ordinary_user([&] { return answer_of(open_local_store(closed)); }),
              HasSubstr("io: cannot write to " + closed));
  EXPECT_THAT(as_ordinary_user([&] { return answer_of(open_local_store(closed + "/a/b")); }),
              HasSubstr("io: cannot create " + closed + "/a/b"));
  EXPECT_EQ(as_ordinary_user([&] {
              const auto store = open_local_store(closed, {.read_only = true});
              return store.ok() ? answer_of((*store)->read_all("f", 1)) : answer_of(store);
            }),
            "ok")
      << "reading needs no such right";
  EXPECT_EQ(as_ordinary_user([&] { return answer_of(open_local_store(closed + "/later", {.read_only = true})); }),
            "ok");
}

TEST(LocalPermissions, ADirectoryThatBecomesUnwritableIsReportedByTheCall) {
  const TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  const std::string answer = as_ordinary_user([&] {
    const std::string root = directory.path() + "/root";
    auto store = open_local_store(root);
    if (!store.ok()) return answer_of(store);
    if (auto first = put(**store, "d/f", "x"); !first.ok()) return answer_of(first);
    chmod((root + "/d").c_str(), 0500);
    const std::string refused = answer_of((*store)->create("d/g"));
    chmod((root + "/d").c_str(), 0000);
    return refused + "; " + answer_of((*store)->read_all("d/f", 1));
  });
  EXPECT_THAT(answer, testing::StartsWith("io: create " + directory.path() + "/root/d/g.tmp: "));
  EXPECT_THAT(answer, HasSubstr("; io: read " + directory.path() + "/root/d/f: "));
}

}  // namespace
}  // namespace tornasole::store
