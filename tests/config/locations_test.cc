#include "config/locations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kTensorboardDefault = "/opt/ml/input/config/tensorboardoutputconfig.json";
const std::string kCheckpointDefault = "/opt/ml/input/config/checkpointconfig.json";

TEST(Locations, OutDir) {
  const std::string here = std::filesystem::current_path().string();
  struct Case {
    std::string given, out_dir, location;
  };
  const Case kCases[] = {
      {"/a/b", "/a/b", "/a/b"},
      {"/a//b/./c/", "/a//b/./c/", "/a/b/c"},
      {"/a/../b", "/a/../b", "/a/../b"},
      {"/", "/", "/"},
      {"runs/x", "runs/x", here + "/runs/x"},
      {".", ".", here},
      {"~/runs", "/home/me/runs", "/home/me/runs"},
      {"~", "/home/me", "/home/me"},
      {"a~b", "a~b", here + "/a~b"},
      {"s3://bucket//a///b", "s3://bucket//a///b", "s3://bucket/a/b"},
      {"s3://bucket", "s3://bucket", "s3://bucket"},
      {"s3://bucket/~/x", "s3://bucket/~/x", "s3://bucket/~/x"},
  };
  for (const Case& c : kCases) {
    const auto config = make_config({.out_dir = c.given}, bare({{"HOME", "/home/me/"}}));
    ASSERT_TRUE(config.ok()) << c.given << config.error().message;
    EXPECT_EQ(config->out_dir, c.out_dir) << c.given;
    EXPECT_EQ(config->location, c.location) << c.given;
    EXPECT_THAT(config->warnings, IsEmpty()) << c.given;
  }
}

TEST(Locations, HomesOfUsers) {
  const auto root = bare().home("root");
  if (root) {
    EXPECT_EQ(make_config({.out_dir = "~root/x"}, bare())->out_dir, *root + "/x");
  }
  const auto config = make_config({.out_dir = "~no-such-user-here/x"}, bare());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->out_dir, "~no-such-user-here/x");
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("names a user without home directory")));
}

TEST(Locations, AnotherSchemeIsWarnedOf) {
  const auto config = make_config({.out_dir = "gs://bucket/x"}, bare());
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("is taken as a local path")));
}

TEST(Locations, SageMakerHasADefaultOutDir) {
  const auto config = make_config({}, bare({{"TRAINING_JOB_NAME", ""}}));
  ASSERT_TRUE(config.ok()) << "the variable counts whatever its value";
  EXPECT_TRUE(config->in_sagemaker);
  EXPECT_EQ(config->location, "/opt/ml/output/tensors");
  EXPECT_EQ(make_config({.out_dir = "/r"}, bare({{"TRAINING_JOB_NAME", "x"}}))->location, "/r");
}

TEST(Locations, TensorboardOfAConstructor) {
  struct Case {
    bool is_on;
    const char* given;
    std::optional<std::string> directory;
  };
  const Case kCases[] = {{false, "", {}}, {true, "", "/r/tensorboard"}, {false, "/tb", "/tb"}, {true, "~/tb", "/h/tb"}};
  for (const Case& c : kCases) {
    const auto config = make_config({.out_dir = "/r", .export_tensorboard = c.is_on, .tensorboard_dir = c.given},
                                    bare({{"HOME", "/h"}}));
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->tensorboard_dir, c.directory) << c.given;
  }
  EXPECT_EQ(make_config({.out_dir = "s3://b/p", .export_tensorboard = true}, bare())->tensorboard_dir,
            "s3://b/p/tensorboard");
}

TEST(Locations, TensorboardFromFiles) {
  const std::string kFile = R"({"LocalPath": "/from/file"})";
  const char* const kVariable = "TENSORBOARD_CONFIG_FILE_PATH";
  struct Case {
    const char* what;
    Variables variables;
    std::map<std::string, std::string> files;
    const char* hook;
    std::optional<std::string> directory;
  };
  const std::string kOn = "\"export_tensorboard\": true";
  const Case kCases[] = {
      {"in a job the default file counts",
       {{"TRAINING_JOB_NAME", "j"}},
       {{kTensorboardDefault, kFile}},
       "",
       "/from/file"},
      {"in a job the named file counts",
       {{"TRAINING_JOB_NAME", "j"}, {kVariable, "/tb"}},
       {{"/tb", kFile}},
       "",
       "/from/file"},
      {"in a job the file wins over the hook",
       {{"TRAINING_JOB_NAME", "j"}},
       {{kTensorboardDefault, kFile}},
       "\"tensorboard_dir\": \"/hook\"",
       "/from/file"},
      {"in a job without file the hook counts",
       {{"TRAINING_JOB_NAME", "j"}},
       {},
       "\"tensorboard_dir\": \"/hook\"",
       "/hook"},
      {"in a job without either there is none", {{"TRAINING_JOB_NAME", "j"}}, {}, "", {}},
      {"in a job a file without LocalPath says nothing",
       {{"TRAINING_JOB_NAME", "j"}},
       {{kTensorboardDefault, "{}"}},
       "\"export_tensorboard\": true",
       "/run/tensorboard"},
      {"elsewhere the default file does not count", {}, {{kTensorboardDefault, kFile}}, "", {}},
      {"elsewhere the hook counts",
       {{kVariable, "/tb"}},
       {{"/tb", kFile}},
       "\"export_tensorboard\": true",
       "/run/tensorboard"},
      {"elsewhere the named file fills the gap", {{kVariable, "/tb"}}, {{"/tb", kFile}}, "", "/from/file"},
  };
  for (const Case& c : kCases) {
    const auto config = parse(with_hook(c.hook), Framework::kPytorch, bare(c.variables, c.files));
    ASSERT_TRUE(config.ok()) << c.what << config.error().message;
    EXPECT_EQ(config->tensorboard_dir, c.directory) << c.what;
    EXPECT_THAT(config->warnings, IsEmpty()) << c.what;
  }
}

TEST(Locations, CheckpointDirectory) {
  const char* const kVariable = "CHECKPOINT_CONFIG_FILE_PATH";
  struct Case {
    const char* what;
    Variables variables;
    std::map<std::string, std::string> files;
    std::optional<std::string> directory;
  };
  const Case kCases[] = {
      {"no file: off", {}, {}, {}},
      {"the default file", {}, {{kCheckpointDefault, R"({"LocalPath": "/ck"})"}}, "/ck"},
      {"the named file", {{kVariable, "/c.json"}}, {{"/c.json", R"({"LocalPath": "/ck/", "S3Uri": "s3://x"})"}}, "/ck"},
      {"no key: off", {}, {{kCheckpointDefault, R"({"S3Uri": "s3://x"})"}}, {}},
  };
  for (const Case& c : kCases) {
    for (const bool from_file : {false, true}) {
      const auto config = from_file ? parse("{\"LocalPath\": \"/r\"}", Framework::kCpp, bare(c.variables, c.files))
                                    : make_config({.out_dir = "/r"}, bare(c.variables, c.files));
      ASSERT_TRUE(config.ok()) << c.what << config.error().message;
      EXPECT_EQ(config->checkpoint_dir, c.directory) << c.what;
    }
  }
}

TEST(Locations, WrongPlatformFilesAreErrorsThatNameThem) {
  struct Case {
    const char* content;
    const char* message;
  };
  const Case kCases[] = {
      {"{", "/c.json: not JSON"},
      {"[]", "/c.json: [] is not allowed; allowed: an object with LocalPath"},
      {"{\n\"LocalPath\": 5}", "/c.json:2: LocalPath: 5 is not allowed; allowed: a text"},
      {"{\"LocalPath\": \"\"}", "/c.json:1: LocalPath: \"\" is not allowed"},
  };
  for (const Case& c : kCases) {
    for (const char* variable : {"CHECKPOINT_CONFIG_FILE_PATH", "TENSORBOARD_CONFIG_FILE_PATH"}) {
      const auto config = parse("{}", Framework::kCpp, bare({{variable, "/c.json"}}, {{"/c.json", c.content}}));
      ASSERT_FALSE(config.ok()) << c.content;
      EXPECT_THAT(config.error().message, HasSubstr(c.message)) << variable;
    }
  }
  const auto missing = parse("{}", Framework::kCpp, bare({{"CHECKPOINT_CONFIG_FILE_PATH", "/gone.json"}}));
  ASSERT_TRUE(missing.ok());
  EXPECT_THAT(missing->warnings, ElementsAre("/gone.json: no such file, though CHECKPOINT_CONFIG_FILE_PATH names it"));
  EXPECT_FALSE(parse("{}", Framework::kCpp,
                     bare({{"CHECKPOINT_CONFIG_FILE_PATH", "/c"}}, {{"/c", "{\"LocalPath\": \"s3://b/x\"}"}}))
                   .ok());
}

TEST(Locations, TheConfigurationFileIsFound) {
  EXPECT_EQ(find_config_file("/given", bare({{"SMDEBUG_CONFIG_FILE_PATH", "/s"}})), "/given");
  EXPECT_EQ(find_config_file("", bare({{"SMDEBUG_CONFIG_FILE_PATH", "/s"}})), "/s");
  EXPECT_EQ(find_config_file("", bare({{"SMDEBUG_CONFIG_FILE_PATH", "/s"}, {"TORNASOLE_CONFIG_FILE_PATH", "/t"}})),
            "/t");
  EXPECT_EQ(find_config_file("", bare({{"TORNASOLE_CONFIG_FILE_PATH", ""}})),
            "/opt/ml/input/config/debughookconfig.json");
}

}  // namespace
}  // namespace tornasole::config
