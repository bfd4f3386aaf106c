#include "capture/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>

#include "capture/run_world.h"
#include "support/tests_dir.h"

namespace tornasole::capture {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void write_text(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
void set_modified(const std::string& path, std::int64_t seconds) {
  const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}
std::string golden(const std::string& path) { return tests_dir() + "/golden/smdebug/" + path; }

std::vector<format::CheckpointRecord> records_of(const std::string& directory) {
  bool was_cut = false;
  auto records = format::decode_checkpoint_state(read_text(directory + "/metadata.json"), &was_cut);
  EXPECT_TRUE(records.ok()) << (records.ok() ? "" : records.error().message);
  return records.ok() ? *records : std::vector<format::CheckpointRecord>();
}

struct ChangeCase {
  const char* what;
  std::function<void(const std::string& directory)> change;
  bool is_noted;
};

TEST(CheckpointFiles, AChangeIsToldUntilItIsAccepted) {
  const TemporaryDirectory directory;
  CheckpointFiles files(directory.path() + "/checkpoints");
  const auto changed = [&] {
    auto answer = files.have_changed();
    EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message);
    return answer.ok() && *answer;
  };
  EXPECT_FALSE(changed()) << "a directory that is not there has none";
  write_text(directory.path() + "/checkpoints/a.pt", "1");
  EXPECT_TRUE(changed());
  EXPECT_TRUE(changed()) << "not accepted yet";
  files.accept();
  EXPECT_FALSE(changed());
  files.accept();
  EXPECT_FALSE(changed()) << "accepted twice is accepted";
  write_text(directory.path() + "/checkpoints/metadata.json", "[]");
  EXPECT_FALSE(changed()) << "the state file is no checkpoint";
  fs::remove(directory.path() + "/checkpoints/a.pt");
  EXPECT_FALSE(changed()) << "none is left: nothing to remember";
}

TEST(CheckpointWatch, NotesWhatChangesACheckpoint) {
  const ChangeCase cases[] = {
      {"nothing happened", [](const std::string&) {}, false},
      {"a file was added", [](const std::string& d) { write_text(d + "/b.pt", "1"); }, true},
      {"a file was removed", [](const std::string& d) { fs::remove(d + "/a.pt"); }, true},
      {"a file was resized",
       [](const std::string& d) { write_text(d + "/a.pt", "longer"), set_modified(d + "/a.pt", 9); }, true},
      {"a file was overwritten with the same size", [](const std::string& d) { set_modified(d + "/a.pt", 10); }, true},
      {"a file was added deeper down", [](const std::string& d) { write_text(d + "/x/y/z.pt", "1"); }, true},
      {"a directory alone is no checkpoint", [](const std::string& d) { fs::create_directories(d + "/empty"); }, false},
      {"the state file does not count", [](const std::string& d) { write_text(d + "/metadata.json", "[]"); }, false},
      {"nor what the uploader leaves",
       [](const std::string& d) {
         write_text(d + "/metadata.json.sagemaker-uploaded", "");
         write_text(d + "/x/a.pt.sagemaker-uploaded", "");
       },
       false},
      {"an emptied directory is unchanged", [](const std::string& d) { fs::remove_all(d), fs::create_directory(d); },
       false},
      {"a removed directory is unchanged", [](const std::string& d) { fs::remove_all(d); }, false},
      {"a link to a file counts as the file", [](const std::string& d) { fs::create_symlink("sub/s.pt", d + "/l"); },
       true},
      {"a link to a directory is not walked, but noticed",
       [](const std::string& d) { fs::create_symlink("/", d + "/l"); }, true},
  };
  for (const ChangeCase& c : cases) {
    SCOPED_TRACE(c.what);
    const TemporaryDirectory temporary;
    const std::string directory = temporary.path() + "/checkpoint";
    write_text(directory + "/a.pt", "1");
    write_text(directory + "/sub/s.pt", "1");
    set_modified(directory + "/a.pt", 9);
    CheckpointWatch watch(directory);
    std::vector<std::string> warnings;
    const auto loaded = watch.load(&warnings);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_FALSE(loaded->has_value());
    c.change(directory);
    const Counters counters{.global_step = 4, .last_saved = 3, .mode_steps = {{Mode::kTrain, 2}}};
    const Status noted = watch.note(counters);
    ASSERT_TRUE(noted.ok()) << noted.error().message;
    const std::string state = read_text(directory + "/metadata.json");
    EXPECT_EQ(state.find("latest-global-step-seen") != std::string::npos, c.is_noted) << state;
    ASSERT_TRUE(watch.note(counters).ok());
    EXPECT_EQ(read_text(directory + "/metadata.json"), state) << "the second look sees nothing new";
    for (const auto& entry : fs::directory_iterator(temporary.path())) EXPECT_TRUE(entry.is_directory());
    if (!c.is_noted) continue;
    const auto records = records_of(directory);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].training_run, 0);
    EXPECT_EQ(records[0].last_saved, 3);
    EXPECT_EQ(records[0].last_seen, 4);
    EXPECT_EQ(records[0].mode_steps, (std::map<Mode, std::int64_t>{{Mode::kTrain, 2}, {Mode::kGlobal, 4}}));
  }
}

TEST(CheckpointWatch, RestoresWhatTheOriginalDebuggerWrote) {
  const TemporaryDirectory temporary;
  const std::string directory = temporary.path() + "/checkpoint";
  fs::copy(golden("spot_resume/checkpoint"), directory);
  fs::copy_file(golden("spot_resume/metadata_after_run_1.json"), directory + "/metadata.json",
                fs::copy_options::overwrite_existing);
  CheckpointWatch watch(directory);
  std::vector<std::string> warnings;
  const auto loaded = watch.load(&warnings);
  ASSERT_TRUE(loaded.ok() && loaded->has_value());
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ((*loaded)->last_seen, 5);
  EXPECT_EQ((*loaded)->last_saved, 3);
  EXPECT_EQ((*loaded)->mode_steps,
            (std::map<Mode, std::int64_t>{{Mode::kTrain, 3}, {Mode::kEval, 1}, {Mode::kGlobal, 5}}));
  EXPECT_EQ(watch.training_run(), 1);

  ASSERT_TRUE(watch.note({.global_step = 5}).ok());
  EXPECT_EQ(records_of(directory).size(), 3U) << "the checkpoints were there before";
  write_text(directory + "/model_2_9.bin", "x");
  ASSERT_TRUE(watch.note({.global_step = 7, .last_saved = 7, .mode_steps = {{Mode::kTrain, 4}}}).ok());
  const auto records = records_of(directory);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[3].training_run, 1);
  EXPECT_EQ(records[3].last_seen, 7);
  EXPECT_EQ(records[0].last_seen, 1) << "the history stays";
}

TEST(CheckpointWatch, RecordsAreSortedAndOnePerStep) {
  const TemporaryDirectory temporary;
  const std::string& directory = temporary.path();
  const auto record = [](std::int64_t run, std::int64_t seen) {
    return format::CheckpointRecord{.training_run = run, .last_seen = seen, .mode_steps = {{Mode::kGlobal, seen}}};
  };
  write_text(directory + "/metadata.json",
             format::encode_checkpoint_state({record(0, 9), record(0, 2), record(1, 2), record(0, 9), record(3, 5)}));
  CheckpointWatch watch(directory);
  std::vector<std::string> warnings;
  ASSERT_EQ(watch.load(&warnings).value()->last_seen, 9);
  EXPECT_EQ(watch.training_run(), 1) << "that of the record with the largest step";
  for (const char* name : {"a", "b", "c"}) {
    write_text(directory + "/" + name, "x");
    ASSERT_TRUE(watch.note({.global_step = 12}).ok());
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const auto& each : records_of(directory)) found.emplace_back(each.training_run, each.last_seen);
  EXPECT_EQ(found, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 2}, {3, 5}, {0, 9}, {1, 12}}));
}

TEST(CheckpointWatch, ADamagedStateIsNoReasonToStop) {
  const std::string whole = read_text(golden("spot_resume/checkpoint/metadata.json"));
  ASSERT_GT(whole.size(), 100U);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const TemporaryDirectory temporary;
    write_text(temporary.path() + "/metadata.json", whole.substr(0, length));
    CheckpointWatch watch(temporary.path());
    std::vector<std::string> warnings;
    const auto loaded = watch.load(&warnings);
    ASSERT_TRUE(loaded.ok()) << length;
    EXPECT_FALSE(warnings.empty()) << length;
    if (loaded->has_value()) {
      EXPECT_LE((*loaded)->last_seen, 10);
    }
  }
  const TemporaryDirectory temporary;
  write_text(temporary.path() + "/metadata.json", R"([{"training-run": "x"}])");
  CheckpointWatch watch(temporary.path());
  std::vector<std::string> warnings;
  EXPECT_FALSE(watch.load(&warnings)->has_value());
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("damaged")));
  EXPECT_EQ(watch.training_run(), 0);
}

TEST(CheckpointWatch, SpecialFilesAndDepthAreErrorsNotHangs) {
  const TemporaryDirectory temporary;
  ASSERT_EQ(mkfifo((temporary.path() + "/metadata.json").c_str(), 0600), 0);
  std::vector<std::string> warnings;
  EXPECT_THAT(CheckpointWatch(temporary.path()).load(&warnings).error().message, HasSubstr("not a regular file"));
  fs::remove(temporary.path() + "/metadata.json");
  fs::create_symlink("/etc/passwd", temporary.path() + "/metadata.json");
  EXPECT_FALSE(CheckpointWatch(temporary.path()).load(&warnings).ok());
  fs::remove(temporary.path() + "/metadata.json");

  std::string deep = temporary.path();
  for (int i = 0; i < 40; ++i) deep += "/d";
  write_text(deep + "/a.pt", "x");
  EXPECT_THAT(CheckpointWatch(temporary.path()).note({}).error().message, HasSubstr("levels deep"));
  EXPECT_FALSE(CheckpointWatch(temporary.path() + "/d/../../nowhere/x").load(&warnings)->has_value());
}

TEST(CheckpointWatch, AFailedWriteIsTriedAgainAndLeavesNoDebris) {
  const TemporaryDirectory temporary;
  const std::string& directory = temporary.path();
  CheckpointWatch watch(directory);
  write_text(directory + "/a.pt", "x");
  fs::create_directories(directory + "/metadata.json/in_the_way");
  EXPECT_FALSE(watch.note({.global_step = 1}).ok());
  fs::remove_all(directory + "/metadata.json");
  // A link that waits under the temporary name is not written through.
  write_text(directory + "/../victim-of-" + fs::path(directory).filename().string(), "precious");
  const std::string victim = directory + "/../victim-of-" + fs::path(directory).filename().string();
  fs::create_symlink(victim, directory + "/metadata.json." + std::to_string(getpid()) + ".tmp");
  const Status noted = watch.note({.global_step = 2});
  ASSERT_TRUE(noted.ok()) << noted.error().message;
  EXPECT_EQ(read_text(victim), "precious");
  fs::remove(victim);
  EXPECT_EQ(records_of(directory).size(), 1U);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 2);
}

// ---- metrics

std::string metrics_path(const std::string& directory) { return directory + "/" + std::to_string(getpid()) + ".json"; }

TEST(MetricsFile, WritesTheLinesOfTheOriginalDebugger) {
  const TemporaryDirectory temporary;
  {
    MetricsFile file(temporary.path());
    EXPECT_FALSE(fs::exists(metrics_path(temporary.path()))) << "opened at the first metric";
    const double now = 1794773293.5;
    const format::MetricRecord records[] = {
        {"loss", Mode::kTrain, 1.0, 1794773293.5062869, 0},
        {"scalar/accuracy", Mode::kTrain, 0.0, 1794773293.5063002, 0},
        {"scalar/accuracy", Mode::kTrain, 0.1, 1794773293.507892, 2},
        {"loss", Mode::kTrain, 3.0, 1794773293.509504, 2},
        {"scalar/accuracy", Mode::kTrain, 0.2, 1794773293.5095127, 2},
        {"loss", Mode::kEval, 4.0, 1794773293.5136545, 0},
        {"scalar/accuracy", Mode::kEval, 0.30000000000000004, 1794773293.5136755, 0},
    };
    for (const auto& record : records) {
      const Status appended = file.append(record, now);
      ASSERT_TRUE(appended.ok()) << appended.error().message;
    }
  }
  EXPECT_EQ(read_text(metrics_path(temporary.path())), read_text(golden("sagemaker_metrics/metrics/4242.json")));
  struct stat status{};
  ASSERT_EQ(stat(metrics_path(temporary.path()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0077, 0U);
}

struct MetricCase {
  const char* what;
  double value;
  double ahead_s;
  bool is_written;
};

TEST(MetricsFile, SkipsWhatTheServiceWouldRefuse) {
  constexpr double kNow = 1.8e9;
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const MetricCase cases[] = {
      {"now", 1, 0, true},
      {"just within 14 days", 1, -14 * 86400.0, true},
      {"older than 14 days", 1, -14 * 86400.0 - 1, false},
      {"just within two hours", 1, 7200, true},
      {"more than two hours ahead", 1, 7201, false},
      {"no time", 1, nan, false},
      {"not a number", nan, 0, false},
      {"infinite", -infinity, 0, false},
  };
  for (const MetricCase& c : cases) {
    const TemporaryDirectory temporary;
    MetricsFile file(temporary.path());
    const Status appended = file.append({"x", Mode::kTrain, c.value, kNow + c.ahead_s, 1}, kNow);
    EXPECT_EQ(appended.ok(), c.is_written) << c.what;
    if (!appended.ok()) {
      EXPECT_EQ(appended.error().code, ErrorCode::kInvalid) << c.what;
    }
    EXPECT_EQ(fs::exists(metrics_path(temporary.path())), c.is_written) << c.what;
  }
}

TEST(MetricsFile, AppendsAndRefusesLinksAndPipes) {
  const TemporaryDirectory temporary;
  const format::MetricRecord metric{"x", Mode::kTrain, 1, 1.8e9, 1};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(MetricsFile(temporary.path()).append(metric, 1.8e9).ok());
  const std::string line = format::encode_metric(metric);
  EXPECT_EQ(read_text(metrics_path(temporary.path())), line + line);

  const std::string victim = temporary.path() + "/victim";
  fs::rename(metrics_path(temporary.path()), victim);
  fs::create_symlink(victim, metrics_path(temporary.path()));
  EXPECT_EQ(MetricsFile(temporary.path()).append(metric, 1.8e9).error().code, ErrorCode::kIo);
  EXPECT_EQ(read_text(victim), line + line);
  fs::remove(metrics_path(temporary.path()));
  ASSERT_EQ(mkfifo(metrics_path(temporary.path()).c_str(), 0600), 0);
  EXPECT_FALSE(MetricsFile(temporary.path()).append(metric, 1.8e9).ok());
  EXPECT_FALSE(MetricsFile(temporary.path() + "/absent").append(metric, 1.8e9).ok());
}

TEST(MetricsFile, ALineThatDoesNotFitIsTakenBack) {
  const TemporaryDirectory temporary;
  const format::MetricRecord metric{"x", Mode::kTrain, 1, 1.8e9, 1};
  const std::string line = format::encode_metric(metric);
  MetricsFile file(temporary.path());
  ASSERT_TRUE(file.append(metric, 1.8e9).ok());
  // A limit on the size of files stands for a full disk: the kernel takes a part of the second line.
  struct rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = line.size() + 10;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status appended = file.append(metric, 1.8e9);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(appended.error().code, ErrorCode::kIo);
  EXPECT_EQ(read_text(metrics_path(temporary.path())), line);
  ASSERT_TRUE(file.append(metric, 1.8e9).ok());
  EXPECT_EQ(read_text(metrics_path(temporary.path())), line + line);
}

}  // namespace
}  // namespace tornasole::capture
