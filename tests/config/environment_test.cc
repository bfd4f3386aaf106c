#include "config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Environment, IsACopyOfTheProcess) {
  setenv("TORNASOLE_TEST_VARIABLE", "a=b", 1);
  const Environment environment = Environment::from_process();
  unsetenv("TORNASOLE_TEST_VARIABLE");
  EXPECT_EQ(environment.get("TORNASOLE_TEST_VARIABLE"), "a=b");
  EXPECT_EQ(Environment::from_process().get("TORNASOLE_TEST_VARIABLE"), std::nullopt);
}

TEST(Environment, TornasoleWinsOverSmdebug) {
  EXPECT_EQ(bare({{"SMDEBUG_X", "s"}, {"TORNASOLE_X", "t"}}).get_twin("X"), "t");
  EXPECT_EQ(bare({{"SMDEBUG_X", "s"}}).get_twin("X"), "s");
  EXPECT_EQ(bare({{"SMDEBUG_X", "s"}, {"TORNASOLE_X", ""}}).get_twin("X"), "s");
  EXPECT_EQ(bare().get_twin("X"), std::nullopt);
}

TEST(Environment, HomeComesFromTheVariableOrTheUserDatabase) {
  EXPECT_EQ(bare({{"HOME", "/h"}}).home(""), "/h");
  EXPECT_EQ(bare().home("no-such-user-here"), std::nullopt);
  EXPECT_EQ(bare().home(std::string_view("root\0x", 6)), std::nullopt);
}

TEST(Environment, ReadsRegularFilesUpToALimit) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("environment_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  const std::string file = (directory / "file").string();
  std::ofstream(file) << "12345";
  const Environment environment{Variables{}};
  EXPECT_EQ(*environment.read_file(file, 5), "12345");
  EXPECT_THAT(environment.read_file(file, 4).error().message, HasSubstr("longer than the limit of 4 bytes"));
  EXPECT_EQ(environment.read_file(file + "x", 5).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(environment.read_file(file + "/below", 5).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(environment.read_file(directory.string(), 5).error().message, HasSubstr("is a directory"));
  EXPECT_FALSE(environment.read_file(std::string("a\0b", 3), 5).ok());
  const std::string pipe = (directory / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(environment.read_file(pipe, 5).error().message, HasSubstr("is not a regular file"))
      << "and does not wait";
  if (geteuid() != 0) {
    std::filesystem::permissions(file, std::filesystem::perms::none);
    EXPECT_EQ(environment.read_file(file, 5).error().code, ErrorCode::kIo);
  }
  EXPECT_THAT(read_config_file(file + "x", environment).error().message, HasSubstr("configuration file "));
  std::filesystem::remove_all(directory);
}

TEST(Environment, LogVariables) {
  struct Case {
    const char* text;
    LogLevel level;
    bool is_off;
    bool warns;
  };
  const Case kCases[] = {
      {"debug", LogLevel::kDebug, false, false},     {"INFO", LogLevel::kInfo, false, false},
      {"Warning", LogLevel::kWarning, false, false}, {"error", LogLevel::kError, false, false},
      {"critical", LogLevel::kError, false, false},  {"off", LogLevel::kWarning, true, false},
      {"chatty", LogLevel::kInfo, false, true},
  };
  for (const Case& c : kCases) {
    const auto config = make_config({.out_dir = "/r"}, bare({{"SMDEBUG_LOG_LEVEL", c.text}}));
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->log_level, c.level) << c.text;
    EXPECT_EQ(config->log_off, c.is_off) << c.text;
    EXPECT_EQ(!config->warnings.empty(), c.warns) << c.text;
  }
  const auto config = make_config(
      {.out_dir = "/r"},
      bare({{"SMDEBUG_LOG_LEVEL", "debug"}, {"TORNASOLE_LOG_LEVEL", "error"}, {"SMDEBUG_LOG_PATH", "/log"}}));
  EXPECT_EQ(config->log_level, LogLevel::kError);
  EXPECT_EQ(config->log_path, "/log");
  EXPECT_EQ(make_config({.out_dir = "/r"}, bare())->log_level, LogLevel::kWarning);
}

TEST(Environment, StrictModeAndMetrics) {
  EXPECT_TRUE(make_config({.out_dir = "/r"}, bare({{"TORNASOLE_STRICT", "1"}}))->strict);
  EXPECT_FALSE(make_config({.out_dir = "/r"}, bare({{"TORNASOLE_STRICT", "0"}}))->strict);
  EXPECT_FALSE(make_config({.out_dir = "/r"}, bare({{"TORNASOLE_STRICT", ""}}))->strict);
  EXPECT_THAT(make_config({.out_dir = "/r"}, bare({{"TORNASOLE_STRICT", "very"}})).error().message,
              HasSubstr("environment variable TORNASOLE_STRICT: \"very\""));
  EXPECT_EQ(make_config({.out_dir = "/r"}, bare({{"SAGEMAKER_METRICS_DIRECTORY", "/m"}}))->metrics_dir, "/m");
}

TEST(Environment, UseSmdebugSwitchesAutomaticHooksOff) {
  std::vector<std::string> warnings;
  for (const char* text : {"0", "n", "No", "F", "FALSE", "off", " off "}) {
    EXPECT_FALSE(is_capture_enabled(bare({{"USE_SMDEBUG", text}}), &warnings)) << text;
  }
  for (const char* text : {"1", "y", "YES", "t", "True", "on", ""}) {
    EXPECT_TRUE(is_capture_enabled(bare({{"USE_SMDEBUG", text}}), &warnings)) << text;
  }
  EXPECT_TRUE(is_capture_enabled(bare(), &warnings));
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_TRUE(is_capture_enabled(bare({{"USE_SMDEBUG", "perhaps"}}), &warnings));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("\"perhaps\" is neither yes nor no")));
}

}  // namespace
}  // namespace tornasole::config
