#include "config/engine_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Good {
  const char* name;
  const char* json;  // in a file
  const char* text;  // in the environment; the same value
  bool (*holds)(const Config&);
};
const Good kGood[] = {
    {"fsync", "\"step\"", "step", [](const Config& c) { return c.fsync == FsyncPolicy::kStep; }},
    {"fsync", "\"0.5s\"", " 0.5s ",
     [](const Config& c) { return c.fsync == FsyncPolicy::kInterval && c.fsync_interval_s == 0.5; }},
    {"when_full", "\"block\"", "block", [](const Config& c) { return c.when_full == WhenFull::kBlock; }},
    {"queue_bytes", "1", "1", [](const Config& c) { return c.queue_bytes == 1; }},
    {"queue_wait_ms", "0", "0", [](const Config& c) { return c.queue_wait_ms == 0; }},
    {"close_wait_s", "0.25", "0.25", [](const Config& c) { return c.close_wait_s == 0.25; }},
    {"spool_dir", "\"/spool//x/\"", "/spool//x/", [](const Config& c) { return c.spool_dir == "/spool/x"; }},
    {"spool_bytes", "\"77\"", "77", [](const Config& c) { return c.spool_bytes == 77; }},
    {"readable_by_smdebug", "true", "True", [](const Config& c) { return c.readable_by_smdebug; }},
    {"resume", "1", "1", [](const Config& c) { return c.resume; }},
    {"shared", "\"true\"", "true", [](const Config& c) { return c.shared; }},
    {"flush_on_signal", "true", "1", [](const Config& c) { return c.flush_on_signal; }},
    {"honour_stop", "false", "False", [](const Config& c) { return !c.honour_stop; }},
    {"reduce_threads", "8", "8", [](const Config& c) { return c.reduce_threads == 8; }},
    {"max_bytes_per_step", "1000", "1000", [](const Config& c) { return c.max_bytes_per_step == 1000; }},
    {"max_bytes_per_run", "1000", "1000", [](const Config& c) { return c.max_bytes_per_run == 1000; }},
    {"keep_steps", "10", "10", [](const Config& c) { return c.keep_steps == 10; }},
    {"flight_recorder_steps", "3", "3", [](const Config& c) { return c.flight_recorder_steps == 3; }},
    {"flight_recorder_bytes", "9", "9", [](const Config& c) { return c.flight_recorder_bytes == 9; }},
    {"flight_recorder_raw", "true", "true", [](const Config& c) { return c.flight_recorder_raw; }},
    {"derived", "[\"counts\", \"hash\"]", "counts, hash,counts",
     [](const Config& c) { return c.derived == std::vector<std::string>{"counts", "hash"}; }},
    {"capture_functional", "true", "1", [](const Config& c) { return c.capture_functional; }},
    {"stable_names", "true", "1", [](const Config& c) { return c.stable_names; }},
    {"warn_unmatched", "false", "0", [](const Config& c) { return !c.warn_unmatched; }},
    {"rules", "\"vanishing_gradient,LossSpike\"", "vanishing_gradient,LossSpike",
     [](const Config& c) { return c.rules == std::vector<std::string>{"vanishing_gradient", "LossSpike"}; }},
};

std::string variable(const std::string& name) {
  std::string text = "TORNASOLE_";
  for (const char c : name) text.push_back(static_cast<char>(std::toupper(c)));
  return text;
}
std::string member(const std::string& name, const std::string& json) { return "\"" + name + "\": " + json; }

TEST(EngineOptions, EachIsReadFromTheFileAndFromTheEnvironment) {
  const auto defaults = parse(with_hook(""));
  ASSERT_TRUE(defaults.ok());
  for (const Good& c : kGood) {
    EXPECT_FALSE(c.holds(*defaults)) << c.name << ": the case would prove nothing";
    const auto from_file = parse(with_hook(member(c.name, c.json)));
    ASSERT_TRUE(from_file.ok()) << from_file.error().message;
    EXPECT_TRUE(c.holds(*from_file)) << c.name;
    const auto from_environment = parse("{}", Framework::kCpp, bare({{variable(c.name), c.text}}));
    ASSERT_TRUE(from_environment.ok()) << from_environment.error().message;
    EXPECT_TRUE(c.holds(*from_environment)) << c.name;
    const auto without_file = make_config({.out_dir = "/r"}, bare({{variable(c.name), c.text}}));
    ASSERT_TRUE(without_file.ok()) << without_file.error().message;
    EXPECT_TRUE(c.holds(*without_file)) << c.name;
  }
}

TEST(EngineOptions, TheTableOfTheseTestsIsComplete) {
  for (const std::string& name : engine_option_names()) {
    EXPECT_TRUE(std::any_of(std::begin(kGood), std::end(kGood), [&](const Good& c) { return c.name == name; })) << name;
  }
}

TEST(EngineOptions, WrongValuesAreRefusedWhereverTheyStand) {
  struct Case {
    const char* name;
    const char* json;
    const char* text;  // null: the mistake cannot be made in a variable
    const char* message;
  };
  const char* const kBool = "allowed: true, false";
  const Case kCases[] = {
      {"fsync", "\"always\"", "always", "allowed: none, step, or a time up to 3600 s as in 5s"},
      {"fsync", "\"0s\"", "0s", "allowed: none, step"},
      {"fsync", "\"-1s\"", "-1s", "allowed: none, step"},
      {"fsync", "\"nans\"", "nans", "allowed: none, step"},
      {"fsync", "\"3601s\"", "3601s", "allowed: none, step"},
      {"fsync", "\"s\"", "s", "allowed: none, step"},
      {"fsync", "5", nullptr, "allowed: none, step"},
      {"when_full", "\"wait\"", "wait", "allowed: drop, block"},
      {"queue_bytes", "0", "0", "allowed: an integer from 1 to 1125899906842624"},
      {"queue_bytes", "\"256MiB\"", "256MiB", "allowed: an integer from 1"},
      {"queue_bytes", "1125899906842625", "1125899906842625", "allowed: an integer from 1"},
      {"queue_wait_ms", "-1", "-1", "allowed: an integer from 0 to 3600000"},
      {"close_wait_s", "-0.1", "-0.1", "allowed: a number from 0 to 86400"},
      {"close_wait_s", "\"nan\"", "nan", "allowed: a number from 0 to 86400"},
      {"close_wait_s", "\"inf\"", "inf", "allowed: a number from 0 to 86400"},
      {"spool_dir", "\"\"", nullptr, "allowed: a text that is not empty"},
      {"spool_dir", "\"s3://bucket/x\"", "s3://bucket/x", "allowed: a local directory"},
      {"spool_bytes", "0", "0", "allowed: an integer from 1"},
      {"readable_by_smdebug", "\"yes\"", "yes", kBool},
      {"resume", "2", "2", kBool},
      {"shared", "\"on\"", "on", kBool},
      {"flush_on_signal", "[]", "[]", kBool},
      {"honour_stop", "\"TRUE\"", "TRUE", kBool},
      {"reduce_threads", "0", "0", "allowed: an integer from 1 to 64"},
      {"reduce_threads", "65", "65", "allowed: an integer from 1 to 64"},
      {"max_bytes_per_step", "0", "0", "allowed: an integer from 1"},
      {"max_bytes_per_run", "-5", "-5", "allowed: an integer from 1"},
      {"keep_steps", "0", "0", "allowed: an integer from 1"},
      {"flight_recorder_steps", "-1", "-1", "allowed: an integer from 0 to 1000000"},
      {"flight_recorder_bytes", "0", "0", "allowed: an integer from 1"},
      {"flight_recorder_raw", "\"raw\"", "raw", kBool},
      {"derived", "\"counts,entropy\"", "counts,entropy", "the item \"entropy\" is not allowed; allowed: counts, "},
      {"derived", "5", nullptr, "allowed: a comma list"},
      {"capture_functional", "3", "3", kBool},
      {"stable_names", "\"x\"", "x", kBool},
      {"warn_unmatched", "\"maybe\"", "maybe", kBool},
      {"rules", "\"../evil.py\"", "../evil.py", "allowed: names of rules"},
      {"rules", "[\"os.system('x')\"]", "os.system('x')", "allowed: names of rules"},
  };
  for (const Case& c : kCases) {
    const auto from_file = parse(with_hook(member(c.name, c.json)));
    ASSERT_FALSE(from_file.ok()) << c.name << c.json;
    EXPECT_THAT(from_file.error().message, HasSubstr(c.message)) << c.name;
    EXPECT_THAT(from_file.error().message, HasSubstr(c.name));
    EXPECT_EQ(from_file.error().kind, ErrorKind::kValue) << c.name;
    if (c.text == nullptr) continue;
    const auto from_environment = make_config({.out_dir = "/r"}, bare({{variable(c.name), c.text}}));
    ASSERT_FALSE(from_environment.ok()) << c.name << c.text;
    EXPECT_THAT(from_environment.error().message, HasSubstr(c.message)) << c.name;
  }
  EXPECT_THAT(make_config({.out_dir = "/r"}, bare({{"TORNASOLE_KEEP_STEPS", "x"}})).error().message,
              "environment variable TORNASOLE_KEEP_STEPS: \"x\" is not allowed; allowed: an integer from 1 to "
              "1099511627776");
  EXPECT_EQ(parse(with_hook("\"keep_steps\": 0")).error().message,
            "run.json:2: HookParameters.keep_steps: 0 is not allowed; allowed: an integer from 1 to 1099511627776");
}

TEST(EngineOptions, AnArgumentIsCheckedToo) {
  EXPECT_THAT(make_config({.out_dir = "/r", .queue_bytes = 0}, bare()).error().message,
              HasSubstr("queue_bytes: 0 is not allowed"));
  EXPECT_THAT(make_config({.out_dir = "/r", .close_wait_s = -1.5}, bare()).error().message, HasSubstr("-1.5"));
  EXPECT_THAT(make_config({.out_dir = "/r", .fsync = "often"}, bare()).error().message, HasSubstr("fsync: \"often\""));
  EXPECT_THAT(make_config({.out_dir = "/r", .derived = {{"x"}}}, bare()).error().message,
              HasSubstr("derived: the item"));
  const auto config =
      make_config({.out_dir = "/r", .when_full = WhenFull::kBlock, .resume = true, .rules = {{"a", "b"}}}, bare());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->when_full, WhenFull::kBlock);
  EXPECT_TRUE(config->resume);
  EXPECT_THAT(config->rules, ElementsAre("a", "b"));
}

TEST(EngineOptions, ArgumentBeatsEnvironmentBeatsFile) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    HookOptions options;
    Variables variables;
    if (bits & 1U) options.queue_bytes = 11;
    if (bits & 2U) variables["TORNASOLE_QUEUE_BYTES"] = "12";
    const auto config = parse_config(with_hook(bits & 4U ? "\"queue_bytes\": 13" : ""), "f", options, bare(variables));
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->queue_bytes, bits & 1U ? 11 : bits & 2U ? 12 : bits & 4U ? 13 : 256 << 20) << bits;
  }
  EXPECT_FALSE(parse_config(with_hook("\"queue_bytes\": 0"), "f", {.queue_bytes = 11}, bare()).ok())
      << "a wrong value is an error even where another one wins";
}

TEST(EngineOptions, DefaultsAreThoseDocumented) {
  const auto config = make_config({.out_dir = "/r"}, bare({{"TORNASOLE_FSYNC", ""}}));
  ASSERT_TRUE(config.ok()) << "a blank variable counts as not set";
  EXPECT_EQ(config->fsync, FsyncPolicy::kNone);
  EXPECT_EQ(config->queue_wait_ms, 250);
  EXPECT_EQ(config->close_wait_s, 5);
  EXPECT_EQ(config->spool_bytes, 1 << 30);
  EXPECT_EQ(config->flight_recorder_bytes, 64 << 20);
  EXPECT_TRUE(config->honour_stop);
  EXPECT_FALSE(config->max_bytes_per_run.has_value());
  EXPECT_EQ(make_config({.out_dir = "s3://b/p"}, bare())->close_wait_s, 30) << "uploads take longer";
  EXPECT_EQ(make_config({.out_dir = "s3://b/p", .close_wait_s = 1.0}, bare())->close_wait_s, 1);
}

TEST(EngineOptions, SmdebugHasNoTwinsOfThem) {
  EXPECT_FALSE(make_config({.out_dir = "/r"}, bare({{"SMDEBUG_RESUME", "1"}}))->resume);
}

}  // namespace
}  // namespace tornasole::config
