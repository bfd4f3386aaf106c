// Trials made by somebody who wants to read other files, hang the reader, or fill its memory. Each is opened and read
// in a process of its own, whose time and memory are looked at.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "trial_world.h"

namespace tornasole::trial {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
#else
constexpr bool kIsSanitized = false;
#endif

// The limits are 2 s and 256 MiB. Time is that of the processor, asserted at three times its value, since machines
// differ and are shared; it covers two readings. Whoever takes five minutes hangs.
constexpr double kLimitSeconds = 2 * 3 * 2;
constexpr unsigned kHangSeconds = 300;
constexpr std::int64_t kLimitBytes = std::int64_t{256} << 20U;

double own_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

class HostileTrial : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / fmt::format("hostile_{}_{}", test->name(), getpid());
    fs::remove_all(root_);
    fs::create_directories(root_ / "trial");
    secret_ = root_ / "secret";
    // What lies outside is a sound index and a sound event file, so that reading it would show.
    const EncodedFiles sound = encode_files({.step = 0, .tensors = {{"stolen", {42}}}});
    write_raw(secret_ / "index.json", sound.index);
    write_raw(secret_ / "events.tfevents", sound.events);
    put(format::collections_path("worker_0"), format::encode_collections({}));
  }
  void TearDown() override { fs::remove_all(root_); }

  static void write_raw(const fs::path& path, const Bytes& content) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  fs::path path_of(const std::string& relative) const { return root_ / "trial" / relative; }
  void put(const std::string& relative, const Bytes& content) const { write_raw(path_of(relative), content); }
  void put_index(std::int64_t step, const format::Index& index) const {
    put(format::index_path(step, "worker_0"), format::encode_index(index));
  }
  void link(const fs::path& target, const std::string& relative) const {
    fs::create_directories(path_of(relative).parent_path());
    fs::create_symlink(target, path_of(relative));
  }

  struct Outcome {
    double seconds = 0;
    std::int64_t rss_bytes = 0;
    int status = 0;
  };
  // Opens with skip and with fail, and reads all that is there. Nothing of `secret` may be among it.
  Outcome read_in_child() const {
    malloc_trim(0);  // what the test itself used would count as the child's
    const pid_t child = fork();
    if (child == 0) {
      alarm(kHangSeconds);
      _exit(read_everything());
    }
    rusage usage{};
    Outcome outcome;
    wait4(child, &outcome.status, 0, &usage);
    for (const timeval& used : {usage.ru_utime, usage.ru_stime}) {
      outcome.seconds += static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_usec) * 1e-6;
    }
    outcome.rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
    return outcome;
  }
  void expect_harmless(const char* what) const {
    const Outcome outcome = read_in_child();
    EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0)
        << what << ": status " << outcome.status << ", 1 is a stolen value";
    if (kIsSanitized) return;
    EXPECT_LE(outcome.seconds, kLimitSeconds) << what;
    EXPECT_LE(outcome.rss_bytes, kLimitBytes) << what;
    RecordProperty("seconds", fmt::format("{:.3f}", outcome.seconds));
    RecordProperty("rss_mib", fmt::format("{}", outcome.rss_bytes >> 20));
  }

  void expect_damage_named(const std::string& place, bool is_damage, const char* what) const {
    const std::string path = (root_ / "trial").string();
    const auto skipping = Trial::open({.path = path, .timeout_s = 0, .end_delay_s = 0});
    ASSERT_TRUE(skipping.ok()) << what << ": " << skipping.error().message;
    EXPECT_EQ(skipping->damage_count(), is_damage ? 1 : 0) << what;
    const auto failing = Trial::open({.path = path, .on_damage = OnDamage::kFail, .timeout_s = 0, .end_delay_s = 0});
    ASSERT_EQ(failing.ok(), !is_damage) << what;
    if (!is_damage) return;
    EXPECT_EQ(skipping->damage().front().path, place) << what;
    EXPECT_THAT(skipping->damage().front().what, testing::HasSubstr("not a regular file")) << what;
    EXPECT_THAT(failing.error().message,
                testing::AllOf(testing::HasSubstr(place), testing::HasSubstr("not a regular")));
  }

  int read_everything() const {
    for (const OnDamage on_damage : {OnDamage::kSkip, OnDamage::kFail}) {
      auto trial =
          Trial::open({.path = (root_ / "trial").string(), .on_damage = on_damage, .timeout_s = 0, .end_delay_s = 0});
      if (!trial.ok()) continue;
      if (trial->has_tensor("stolen")) return 1;
      bool is_stolen = false;
      const Status swept = trial->sweep({.reductions = true}, [&](const SweptValue& value) {
        is_stolen |= value.value != nullptr && value.value->element_count() == 1 &&
                     *reinterpret_cast<const float*>(value.value->data()) == 42;
        return true;
      });
      if (is_stolen) return 1;
      const auto names = trial->tensor_names();
      if (!swept.ok() || !names.ok()) return 2;
      if (!names->empty()) (void)trial->tensor(names->front())->values();
      for (const std::string& name : *names) {
        if (trial->tensor(name)->steps(Mode::kGlobal, StepFilter::kIncludingIncomplete).empty()) return 4;
      }
      (void)trial->tensor("no such name", global(0));
      if (!trial->refresh().ok() && on_damage == OnDamage::kSkip) return 3;
    }
    return 0;
  }

  fs::path root_;
  fs::path secret_;
};

TEST_F(HostileTrial, IndexFilesThatNameFilesOutside) {
  const std::string kNames[] = {(root_ / "secret/events.tfevents").string(), "../secret/events.tfevents",
                                "events/../../secret/events.tfevents", "./../secret/events.tfevents"};
  std::int64_t step = 0;
  for (const std::string& name : kNames) {
    const Bytes record = encode_files({.step = 0, .tensors = {{"stolen", {42}}}}).events;
    format::Index index{.event_file = name, .tensors = {{"x", 0, record.size(), {}}}};
    put_index(step++, index);
  }
  expect_harmless("paths that climb out");
}

TEST_F(HostileTrial, LinksEverywhere) {
  link(secret_ / "index.json", format::index_path(0, "worker_0"));
  link(secret_ / "events.tfevents", format::event_path(1, "worker_0"));
  const Bytes record = encode_files({.step = 1, .tensors = {{"x", {42}}}}).events;
  const format::Index to_link{.event_file = format::event_path(1, "worker_0"),
                              .tensors = {{"x", 0, record.size(), {}}}};
  put_index(1, to_link);
  link(secret_, "index/000000009");
  link(secret_, "events/000000000003");
  const format::Index through_directory{.event_file = "events/000000000003/events.tfevents",
                                        .tensors = {{"y", 0, record.size(), {}}}};
  put_index(3, through_directory);
  link(path_of("index/loop"), "index/loop");
  link(".", "index/self");
  link(secret_ / "index.json", "collections/000000000/worker_9_collections.json");
  link(secret_ / "index.json", "tornasole/worker_0_health.json");
  link(secret_ / "index.json", "training_job_end.ts");
  expect_harmless("links to files, directories and themselves");
}

// What stands where the reader expects a file.
enum class Stand { kPipe, kSocket, kDirectory, kZeroDevice, kTerminalDevice };

bool put_in_place(Stand stand, const fs::path& path) {
  fs::create_directories(path.parent_path());
  fs::remove_all(path);
  switch (stand) {
    case Stand::kPipe: return mkfifo(path.c_str(), 0600) == 0;
    case Stand::kDirectory: return fs::create_directory(path);
    case Stand::kZeroDevice: return mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0;
    case Stand::kTerminalDevice: return mknod(path.c_str(), S_IFCHR | 0600, makedev(5, 0)) == 0;
    case Stand::kSocket: {
      // A socket's address has room for a short name only.
      const int directory = open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
      sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
      fmt::format("/proc/self/fd/{}/{}", directory, path.filename().string())
          .copy(address.sun_path, sizeof address.sun_path - 1);
      const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
      const bool is_bound = bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      close(descriptor);
      close(directory);
      return is_bound;
    }
  }
  return false;
}

TEST_F(HostileTrial, WhatIsNoFileIsNotReadWhereverItStands) {
  const std::string kPlaces[] = {format::index_path(0, "worker_0"),
                                 format::event_path(1, "worker_0"),
                                 format::collections_path("worker_0"),
                                 format::collections_path("worker_1"),
                                 "tornasole/worker_0_health.json",
                                 "tornasole/run.json",
                                 "claim.smd",
                                 "training_job_end.ts"};
  const std::pair<Stand, const char*> kStands[] = {{Stand::kPipe, "a pipe"},
                                                   {Stand::kSocket, "a socket"},
                                                   {Stand::kDirectory, "a directory"},
                                                   {Stand::kZeroDevice, "the device of endless zeros"},
                                                   {Stand::kTerminalDevice, "a terminal"}};
  for (const auto& [stand, what] : kStands) {
    for (const std::string& place : kPlaces) {
      fs::remove_all(root_ / "trial");
      put(format::collections_path("worker_0"), format::encode_collections({}));
      put(format::index_path(0, "worker_0"), encode_files({.step = 0, .tensors = {{"sound", {7}}}}).index);
      put(format::event_path(0, "worker_0"), encode_files({.step = 0, .tensors = {{"sound", {7}}}}).events);
      put_index(1, {.event_file = format::event_path(1, "worker_0"), .tensors = {{"x", 0, 100, {}}}});
      if (!put_in_place(stand, path_of(place))) {
        const bool is_device = stand == Stand::kZeroDevice || stand == Stand::kTerminalDevice;
        ASSERT_TRUE(is_device && (errno == EPERM || errno == EACCES)) << what << ": " << strerror(errno);
        continue;  // only root makes devices, and not everywhere
      }
      expect_harmless(fmt::format("{} at {}", what, place).c_str());
      const auto trial = Trial::open({.path = (root_ / "trial").string(), .timeout_s = 0, .end_delay_s = 0});
      if (place.starts_with("index/")) {
        ASSERT_TRUE(trial.ok()) << trial.error().message;
        EXPECT_FALSE(trial->has_tensor("sound")) << what;
        EXPECT_TRUE(trial->has_tensor("x")) << what;
        // One that changed a moment ago may be a file tomorrow; an old one is damage. A directory holds files, or none.
        const timespec kPast[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, path_of(place).c_str(), kPast, AT_SYMLINK_NOFOLLOW), 0) << what;
        expect_damage_named(place, stand != Stand::kDirectory, what);
      }
      if (place.starts_with("events/")) {
        ASSERT_TRUE(trial.ok()) << trial.error().message;
        EXPECT_THAT(trial->tensor("x", global(1)).error().message, testing::HasSubstr("not a regular file")) << what;
        EXPECT_TRUE(trial->tensor("sound", global(0)).ok()) << what;
      }
    }
  }
}

TEST_F(HostileTrial, FilesOfOneTebibyteWithNothingInThem) {
  const auto sparse = [&](const std::string& relative) {
    put(relative, "");
    std::error_code error;
    fs::resize_file(path_of(relative), std::uintmax_t{1} << 40U, error);
    // Some file systems have no files of that size; the largest they have will do.
    if (error) fs::resize_file(path_of(relative), std::uintmax_t{1} << 33U);
  };
  sparse(format::index_path(0, "worker_0"));
  sparse("collections/000000000/worker_1_collections.json");
  sparse("tornasole/worker_0_health.json");
  sparse(format::event_path(1, "worker_0"));
  format::Index index{.event_file = format::event_path(1, "worker_0")};
  for (int i = 0; i < 1000; ++i) {
    const auto place = static_cast<std::uint64_t>(i);
    index.tensors.push_back({fmt::format("x{}", i), place << 30U, std::uint64_t{1} << 31U, {}});
    index.tensors.push_back({fmt::format("y{}", i), place << 20U, std::uint64_t{1} << 20U, {}});
  }
  put_index(1, index);
  expect_harmless("sparse files");
}

TEST_F(HostileTrial, LengthsAndOffsetsOfEverySize) {
  format::Index index{.event_file = format::event_path(0, "worker_0")};
  for (unsigned offset_bits = 0; offset_bits < 63; ++offset_bits) {
    for (unsigned length_bits = 0; length_bits < 63; ++length_bits) {
      index.tensors.push_back({fmt::format("t{}_{}", offset_bits, length_bits),
                               (std::uint64_t{1} << offset_bits) - 1,
                               (std::uint64_t{1} << length_bits) - 1,
                               {}});
    }
  }
  put_index(0, index);
  put(format::event_path(0, "worker_0"), encode_files({.step = 0}).events);
  put(format::index_path(1, "worker_0"), R"({"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "e"},)"
                                         R"( "tensor_payload": [{"tensorname": "t", "start_idx": -1, "length": -1}]})");
  expect_harmless("lengths and offsets");
}

TEST_F(HostileTrial, ABillionWorkers) {
  put(format::collections_path("worker_0"), R"({"collections": {}, "_meta": {"num_workers": 1000000000}})");
  put_index(0, {.event_file = "e", .tensors = {{"x", 0, 100, {}}}});
  expect_harmless("a billion workers");
  put(format::collections_path("worker_0"), R"({"collections": {}, "_meta": {"num_workers": 65536}})");
  expect_harmless("as many workers as are allowed");
}

TEST_F(HostileTrial, NestingAMillionDeep) {
  const Bytes deep(1'000'000, '[');
  put(format::index_path(0, "worker_0"), deep);
  put(format::index_path(1, "worker_0"), R"({"meta": )" + deep);
  put(format::index_path(2, "worker_0"), R"({"x": )" + deep + Bytes(1'000'000, ']') + "}");
  put(format::collections_path("worker_1"), R"({"collections": )" + deep);
  put("tornasole/worker_0_health.json", deep.substr(0, 200'000));
  expect_harmless("deep nesting");
}

TEST_F(HostileTrial, AMillionNamesInOneFile) {
  {
    format::Index index{.event_file = "e"};
    for (int i = 0; i < 1'000'000; ++i) index.tensors.push_back({fmt::format("n{}", i), 0, 16, {}});
    put_index(0, index);
  }
  expect_harmless("a million names");
}

TEST_F(HostileTrial, ANameOfItsOwnForEachStep) {
  for (int step = 0; step < 50'000; ++step) {
    put_index(step, {.event_file = "e", .tensors = {{fmt::format("n{}", step), 0, 16, {}}}});
  }
  put("training_job_end.ts", "");
  expect_harmless("a name of its own for each step");
}

TEST_F(HostileTrial, ManyShapesInOneFile) {
  format::Index index;
  for (int i = 0; i < 500'000; ++i) index.shapes.push_back({fmt::format("n{}", i), fmt::format("o{}", i), {i}});
  put_index(0, index);
  expect_harmless("many shapes");
}

TEST_F(HostileTrial, NamesOfManyFilesThatAreNone) {
  for (int i = 0; i < 2'000; ++i) put(fmt::format("index/{}.json", i), "");
  for (int i = 0; i < 2'000; ++i) put(fmt::format("events/{:012}/x", i), "");
  put_index(0, {.event_file = "events/000000000000/gone", .tensors = {{"x", 0, 100, {}}}});
  expect_harmless("many stray files");
}

TEST_F(HostileTrial, PatternsThatWouldTakeForEver) {
  format::StoredCollection collection{.name = "slow", .include_regex = {"(a+)+$", "(.*)*x", "(a|a)*b"}};
  put(format::collections_path("worker_0"), format::encode_collections({{collection}, 1}));
  put_index(0, {.event_file = "e", .tensors = {{std::string(20'000, 'a') + "!", 0, 100, {}}}});
  const double start = own_seconds();
  const auto trial = Trial::open({.path = (root_ / "trial").string(), .timeout_s = 0});
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  ASSERT_TRUE(trial->tensor_names({.collection = "slow"}).ok());
  std::vector<std::string> reports;
  ASSERT_TRUE(trial->tensor_names({.collection = "slow", .limit_reports = &reports}).ok());
  EXPECT_THAT(reports, testing::Each(testing::AllOf(testing::HasSubstr("pattern \""), testing::HasSubstr("aaaa"),
                                                    testing::HasSubstr("too many steps"))));
  EXPECT_FALSE(reports.empty());
  const auto asked = trial->tensor_names({.regex = {"(a+)+$"}});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(asked.error().message, testing::AllOf(testing::HasSubstr("(a+)+$"), testing::HasSubstr("aaaa")));
  EXPECT_LE(own_seconds() - start, kIsSanitized ? 20 * kLimitSeconds : kLimitSeconds);
}

TEST_F(HostileTrial, ManyNamesMadeForOnePattern) {
  format::Index index{.event_file = "e"};
  for (int i = 0; i < 20'000; ++i) index.tensors.push_back({std::string(200, 'a') + fmt::format("{}", i), 0, 16, {}});
  index.tensors.push_back({"found", 0, 16, {}});
  put_index(0, index);
  const double start = own_seconds();
  const auto trial = Trial::open({.path = (root_ / "trial").string(), .timeout_s = 0});
  ASSERT_TRUE(trial.ok()) << trial.error().message;
  std::vector<std::string> reports;
  EXPECT_EQ(*trial->tensor_names({.regex = {"(a+)+$", "^found$"}, .limit_reports = &reports}),
            std::vector<std::string>{"found"});
  EXPECT_EQ(reports.size(), 1U);
  EXPECT_LE(own_seconds() - start, kIsSanitized ? 20 * kLimitSeconds : kLimitSeconds);
}

TEST_F(HostileTrial, AnEarlierAttemptIsATrialOfItsOwn) {
  const WrittenFile file{.step = 0, .tensors = {{"earlier"}}};
  put("attempts/1/" + format::collections_path("worker_0"), format::encode_collections({}));
  put("attempts/1/" + format::index_path(0, "worker_0"), encode_files(file).index);
  put("attempts/1/" + format::event_path(0, "worker_0"), encode_files(file).events);
  put(format::index_path(5, "worker_0"), encode_files({.step = 5}).index);
  const auto now = Trial::open({.path = (root_ / "trial").string(), .timeout_s = 0});
  const auto earlier = Trial::open({.path = (root_ / "trial/attempts/1").string(), .timeout_s = 0});
  ASSERT_TRUE(now.ok() && earlier.ok());
  EXPECT_FALSE(now->has_tensor("earlier"));
  EXPECT_TRUE(earlier->tensor("earlier", global(0)).ok());
  EXPECT_EQ(earlier->name(), "1");
}

}  // namespace
}  // namespace tornasole::trial
