#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const std::string& text) {
  const auto config = parse(text);
  return config.ok() ? "accepted" : config.error().message;
}

TEST(ConfigFile, WrongValuesNameFileLineKeyValueAndWhatIsAllowed) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::string kBool = " is not allowed; allowed: true, false, 1, 0, or the texts true, false, True, False, 1, 0";
  const std::string kHook = "run.json:2: HookParameters.";
  const std::string kCollection = "run.json:2: CollectionConfigurations[0].CollectionParameters.";
  const std::string kInteger = " is not allowed; allowed: an integer";
  const std::string kSteps = " is not allowed; allowed: an integer, a comma list of integers, or an array of them";
  const std::string kTexts = " is not allowed; allowed: a comma list in one text, or an array of texts";
  const std::string kReductions =
      " is not allowed; allowed: min, max, median, mean, std, variance, sum, prod, l1, l2, each also with abs_ before "
      "it";
  const Case kCases[] = {
      {with_hook("\"save_interval\": \"fifty\""), kHook + "save_interval: \"fifty\"" + kInteger + " of at least 1"},
      {with_hook("\"save_interval\": 0"), kHook + "save_interval: 0" + kInteger + " of at least 1"},
      {with_hook("\"save_interval\": 2.7"), kHook + "save_interval: 2.7" + kInteger + " of at least 1"},
      {with_hook("\"save_interval\": true"), kHook + "save_interval: true" + kInteger + " of at least 1"},
      {with_hook("\"eval.save_interval\": -1"), kHook + "eval.save_interval: -1" + kInteger + " of at least 1"},
      {with_hook("\"start_step\": \"1.5\""), kHook + "start_step: \"1.5\"" + kInteger},
      {with_hook("\"predict.end_step\": [3]"), kHook + "predict.end_step: [3]" + kInteger},
      {with_hook("\"save_steps\": \"3,five\""), kHook + "save_steps: the item \"five\"" + kSteps},
      {with_hook("\"save_steps\": {}"), kHook + "save_steps: {...}" + kSteps},
      {with_hook("\"when_nan\": 5"), kHook + "when_nan: 5" + kTexts},
      {with_hook("\"include_regex\": [\"a\", 1]"), kHook + "include_regex: the item 1" + kTexts},
      {with_hook("\"save_all\": \"yes\""), kHook + "save_all: \"yes\"" + kBool},
      {with_hook("\"dry_run\": 2"), kHook + "dry_run: 2" + kBool},
      {with_hook("\"export_tensorboard\": []"), kHook + "export_tensorboard: []" + kBool},
      {with_hook("\"include_workers\": \"some\""),
       kHook + "include_workers: \"some\" is not allowed; allowed: one, all"},
      {with_hook("\"include_workers\": 1"), kHook + "include_workers: 1 is not allowed; allowed: one, all"},
      {with_hook("\"reductions\": \"min,mode\""), kHook + "reductions: the item \"mode\"" + kReductions},
      {with_hook("\"reductions\": \"min_norm\""), kHook + "reductions: the item \"min_norm\"" + kReductions},
      {with_hook("\"save_raw_tensor\": \"maybe\""), kHook + "save_raw_tensor: \"maybe\"" + kBool},
      {with_hook("\"save_shape\": 7"), kHook + "save_shape: 7" + kBool},
      {with_hook("\"tensorboard_dir\": 7"), kHook + "tensorboard_dir: 7 is not allowed; allowed: a text"},
      {with_hook("\"tensorboard_dir\": \"\""),
       kHook + "tensorboard_dir: \"\" is not allowed; allowed: a text that is not empty"},
      {with_collection("\"save_interval\": \"x\""), kCollection + "save_interval: \"x\"" + kInteger + " of at least 1"},
      {with_collection("\"train.end_step\": \"x\""), kCollection + "train.end_step: \"x\"" + kInteger},
      {with_collection("\"save_histogram\": \"x\""), kCollection + "save_histogram: \"x\"" + kBool},
      {with_collection("\"reductions\": 3"), kCollection + "reductions: 3" + kTexts},
      {with_collection("\"include_regex\": {}"), kCollection + "include_regex: {...}" + kTexts},
      {"{\"LocalPath\": 3}", "run.json:1: LocalPath: 3 is not allowed; allowed: a text"},
      {"{\"LocalPath\": \"\"}", "run.json:1: LocalPath: \"\" is not allowed; allowed: a text that is not empty"},
      {"{\"LocalPath\": \"a\\u0000b\"}",
       "run.json:1: LocalPath: \"a\\u0000b\" is not allowed; allowed: a text without NUL characters"},
      {"{\"LocalPath\": \"s3:///x\"}",
       "run.json:1: LocalPath: \"s3:///x\" names no bucket; allowed: s3://<bucket>/<prefix>"},
      {"{\"S3OutputPath\": 3}", "run.json:1: S3OutputPath: 3 is not allowed; allowed: a text"},
      {"{\"HookParameters\": [1]}", "run.json:1: HookParameters: [1] is not allowed; allowed: an object"},
      {"{\"CollectionConfigurations\": {}}",
       "run.json:1: CollectionConfigurations: {...} is not allowed; allowed: an array of objects"},
      {"{\"CollectionConfigurations\": [\n7]}",
       "run.json:2: CollectionConfigurations[0]: 7 is not allowed; allowed: an object"},
      {"{\"CollectionConfigurations\": [\n{}]}",
       "run.json:2: CollectionConfigurations[0].CollectionName: missing; allowed: the name of a collection"},
      {"{\"CollectionConfigurations\": [{\"CollectionName\": null}]}",
       "run.json:1: CollectionConfigurations[0].CollectionName: missing; allowed: the name of a collection"},
      {"{\"CollectionConfigurations\": [{\"CollectionName\": 5}]}",
       "run.json:1: CollectionConfigurations[0].CollectionName: 5 is not allowed; allowed: a text"},
      {"{\"CollectionConfiguration\": [{\"CollectionName\": \"\"}]}",
       "run.json:1: CollectionConfiguration[0].CollectionName: \"\" is not allowed; allowed: a text that is not empty"},
      {"{\"CollectionConfigurations\": [{\"CollectionName\": \"c\", \"CollectionParameters\": \"x\"}]}",
       "run.json:1: CollectionConfigurations[0].CollectionParameters: \"x\" is not allowed; allowed: an object"},
      {"[]", "run.json:1: [] is not allowed; allowed: an object"},
      {"3", "run.json:1: 3 is not allowed; allowed: an object"},
  };
  for (const Case& c : kCases) {
    const auto config = parse(c.text);
    ASSERT_FALSE(config.ok()) << c.text;
    EXPECT_EQ(config.error().message, c.message) << c.text;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid) << c.text;
    EXPECT_EQ(config.error().kind, ErrorKind::kValue) << c.text;
  }
}

TEST(ConfigFile, SyntaxErrorsNameFileLineAndColumn) {
  const auto config = parse("{\n  \"LocalPath\": oops\n}");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(config.error().kind, ErrorKind::kValue);
  EXPECT_THAT(config.error().message, AllOf(HasSubstr("run.json: "), HasSubstr("line 2, column")));
  EXPECT_THAT(error_of(""), HasSubstr("run.json: "));
  EXPECT_THAT(error_of("\xFF"), HasSubstr("run.json: "));
}

TEST(ConfigFile, LimitsAreOneMebibyteAndSixtyFourLevels) {
  const std::string head = "{\"LocalPath\": \"/r\"}";
  EXPECT_EQ(error_of(head + std::string((1U << 20) - head.size(), ' ')), "accepted");
  EXPECT_EQ(error_of(head + std::string((1U << 20) - head.size() + 1, ' ')),
            "run.json: 1048577 bytes; allowed: at most 1048576");
  const auto nested = [](std::size_t depth) {
    return "{\"x\": " + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(error_of(nested(64)), "accepted");
  EXPECT_THAT(error_of(nested(65)), AllOf(HasSubstr("run.json: "), HasSubstr("nested deeper than 64 levels")));
  EXPECT_THAT(error_of(nested(200'000)), HasSubstr("nested deeper than 64 levels"));
}

TEST(ConfigFile, PatternsHaveLimits) {
  EXPECT_EQ(error_of(with_hook("\"include_regex\": \"" + std::string(4096, 'a') + "\"")), "accepted");
  EXPECT_THAT(
      error_of(with_hook("\"include_regex\": \"" + std::string(4097, 'a') + "\"")),
      AllOf(HasSubstr("run.json:2: HookParameters.include_regex: "), HasSubstr("4097 bytes; allowed: at most 4096")));
  EXPECT_THAT(error_of(with_collection("\"when_nan\": \"" + std::string(4097, 'a') + "\"")),
              HasSubstr("CollectionParameters.when_nan: the pattern"));
  std::string many = "a";
  for (int i = 1; i < 1000; ++i) many += ",a";
  EXPECT_EQ(error_of(with_hook("\"include_regex\": \"" + many + "\"")), "accepted");
  EXPECT_EQ(error_of(with_hook("\"include_regex\": \"" + many + ",a\"")),
            "run.json: 1001 patterns in include_regex and when_nan; allowed: at most 1000 in all");
}

TEST(ConfigFile, EveryErrorIsFoundAtOnce) {
  const std::string text =
      "{\"LocalPath\": 5,\n\"HookParameters\": {\"save_interval\": 0,\n\"save_all\": \"x\"},\n"
      "\"CollectionConfigurations\": [{},\n{\"CollectionName\": \"c\", \"CollectionParameters\": {\"end_step\": "
      "\"e\"}}]}";
  const auto errors = check_config(text, "run.json", {}, bare());
  std::vector<std::string> starts;
  for (const Error& error : errors) starts.push_back(error.message.substr(0, error.message.find(' ', 12)));
  EXPECT_THAT(starts, ElementsAre("run.json:1: LocalPath:", "run.json:2: HookParameters.save_interval:",
                                  "run.json:3: HookParameters.save_all:",
                                  "run.json:4: CollectionConfigurations[0].CollectionName:",
                                  "run.json:5: CollectionConfigurations[1].CollectionParameters.end_step:"));
  EXPECT_THAT(parse(text).error().message, HasSubstr(" (and 4 more errors)"));
  EXPECT_THAT(check_config("{}", "run.json", {}, bare()), IsEmpty());
  const Inspection inspection = inspect_config(text, "run.json", {}, bare());
  EXPECT_EQ(inspection.config->include_collections, std::vector<std::string>{"c"}) << "what could be read is there";
  EXPECT_FALSE(inspect_config("{", "run.json", {}, bare()).config.has_value());
  EXPECT_EQ(inspection.errors.at(2).place.line, 3);
  EXPECT_EQ(inspection.errors.at(2).place.key, "HookParameters.save_all");
}

TEST(ConfigFile, UnknownKeysAreWarnedOfWithTheNearestOne) {
  struct Case {
    std::string text;
    std::string warning;
  };
  const Case kCases[] = {
      {with_hook("\"save_intervall\": 3"),
       "run.json:2: HookParameters.save_intervall: unknown key ignored; did you mean save_interval?"},
      {with_hook("\"SaveAll\": true"),
       "run.json:2: HookParameters.SaveAll: unknown key ignored; did you mean save_all?"},
      {with_hook("\"TRAIN.save_interval\": 3"),
       "run.json:2: HookParameters.TRAIN.save_interval: unknown key ignored; did you mean train.save_interval?"},
      {with_hook("\"queue_byte\": 3"),
       "run.json:2: HookParameters.queue_byte: unknown key ignored; did you mean queue_bytes?"},
      {with_hook("\"colour_of_the_sky\": 3"), "run.json:2: HookParameters.colour_of_the_sky: unknown key ignored"},
      {with_hook("\"include_collections\": 3"),
       "run.json:2: HookParameters.include_collections: unknown key ignored; list them in CollectionConfigurations"},
      {with_hook("\"save_histogram\": 3"),
       "run.json:2: HookParameters.save_histogram: unknown key ignored; it belongs in CollectionParameters"},
      {with_hook("\"a\\u001b[2J\": 3"), "run.json:2: HookParameters.a\\x1b[2J: unknown key ignored"},
      {with_collection("\"fsync\": \"none\""),
       "run.json:2: CollectionConfigurations[0].CollectionParameters.fsync: unknown key ignored; it belongs in "
       "HookParameters"},
      {with_collection("\"regex\": \"a\""),
       "run.json:2: CollectionConfigurations[0].CollectionParameters.regex: unknown key ignored"},
      {"{\"localpath\": \"/x\"}", "run.json:1: localpath: unknown key ignored; did you mean LocalPath?"},
      {"{\"save_interval\": 3}", "run.json:1: save_interval: unknown key ignored; it belongs in HookParameters"},
      {"{\"CollectionConfigurations\": [{\"CollectionName\": \"c\", \"CollectionParameter\": {}}]}",
       "run.json:1: CollectionConfigurations[0].CollectionParameter: unknown key ignored; did you mean "
       "CollectionParameters?"},
  };
  for (const Case& c : kCases) {
    const auto config = parse(c.text);
    ASSERT_TRUE(config.ok()) << c.text << config.error().message;
    EXPECT_THAT(config->warnings, ElementsAre(c.warning)) << c.text;
  }
}

TEST(ConfigFile, AFileFullOfUnknownKeysStaysCheap) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"save_interva" + std::to_string(i) + "\": 1, ";
  text += "\"" + std::string(200'000, 'k') + "\": 1}";
  const auto config = parse("{\"HookParameters\": " + text + "}");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->warnings.size(), 101U);
  EXPECT_EQ(config->warnings.back(), "only the first 100 warnings are shown");
}

TEST(ConfigFile, ARepeatedKeyIsWarnedOfAndTheLastCounts) {
  const auto config = parse(with_hook("\"save_interval\": \"bad\", \"save_interval\": 3"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->schedules[0].save_interval, 3);
  EXPECT_THAT(config->warnings,
              ElementsAre("run.json:2: HookParameters.save_interval: key given more than once; the last one counts"));
}

TEST(ConfigFile, NullMeansNotGiven) {
  const auto config = parse(R"({"LocalPath": null, "S3Path": null, "HookParameters": {"save_interval": null,
    "fsync": null, "reductions": null}, "CollectionConfigurations": null})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->schedules[0], Schedule{});
  EXPECT_EQ(config->out_dir, "/opt/ml/output/tensors");
  EXPECT_TRUE(parse(R"({"CollectionConfigurations": [{"CollectionName": "c", "CollectionParameters": null}]})").ok());
}

TEST(ConfigFile, TheSameNameTwiceIsOneCollection) {
  const auto config = parse(R"({"CollectionConfigurations": [
    {"CollectionName": "bias", "CollectionParameters": {"include_regex": "a", "save_interval": 2, "start_step": 7,
                                                        "reductions": "min", "save_histogram": 0}},
    {"CollectionName": "other"},
    {"CollectionName": "biases", "CollectionParameters": {"include_regex": "b", "save_interval": 3, "reductions": "max"}},
    {"CollectionName": "biases"}]})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(config->include_collections, ElementsAre("biases", "other"));
  const CollectionSettings& biases = config->collections[0];
  EXPECT_THAT(biases.include_regex, ElementsAre("a", "b"));
  EXPECT_EQ(*biases.schedules[0], Schedule{.save_interval = 3}) << "the later schedule replaces all of the earlier";
  EXPECT_EQ(*biases.reductions, (ReductionSpec{{{ReductionKind::kMax}}, false, false}));
  EXPECT_EQ(biases.save_histogram, false);
}

TEST(ConfigFile, FormOfTensors) {
  struct Case {
    const char* what;
    const char* members;
    ReductionSpec spec;
  };
  const Reduction kMin{ReductionKind::kMin};
  const Case kCases[] = {
      {"nothing said: raw", "", {}},
      {"reductions alone drop the raw tensor", "\"reductions\": \"min\"", {{kMin}, false, false}},
      {"raw besides", "\"reductions\": \"min\", \"save_raw_tensor\": true", {{kMin}, true, false}},
      {"the shape besides", "\"reductions\": \"min\", \"save_shape\": \"True\"", {{kMin}, false, true}},
      {"the shape alone drops the raw tensor", "\"save_shape\": true", {{}, false, true}},
      {"shape and raw without reductions", "\"save_shape\": true, \"save_raw_tensor\": 1", {{}, true, true}},
      {"raw alone", "\"save_raw_tensor\": true", {{}, true, false}},
      {"no raw and nothing else: nothing is saved", "\"save_raw_tensor\": false", {{}, false, false}},
      {"no shape is no wish", "\"save_shape\": false", {}},
      {"repeated reductions count once", "\"reductions\": [\"min\", \" min \", \"\"]", {{kMin}, false, false}},
  };
  for (const Case& c : kCases) {
    const auto config = parse(with_hook(c.members));
    ASSERT_TRUE(config.ok()) << c.what << config.error().message;
    EXPECT_EQ(config->reductions, c.spec) << c.what;
    const auto of_collection = parse(with_collection(c.members));
    ASSERT_TRUE(of_collection.ok()) << c.what;
    EXPECT_EQ(of_collection->collections[0].reductions.value_or(ReductionSpec{}), c.spec) << c.what;
  }
}

TEST(ConfigFile, TheOlderKeyOfCollectionsIsRead) {
  const auto config = parse(R"({"CollectionConfiguration": [{"CollectionName": "c"}]})");
  EXPECT_THAT(config->include_collections, ElementsAre("c"));
  const auto both = parse(R"({"CollectionConfiguration": [{"CollectionName": "old"}],
                              "CollectionConfigurations": [{"CollectionName": "new"}]})");
  EXPECT_THAT(both->include_collections, ElementsAre("new"));
  EXPECT_THAT(both->warnings, ElementsAre(HasSubstr("CollectionConfiguration: ignored")));
}

TEST(ConfigFile, AliasesAreResolved) {
  const auto config =
      parse(R"({"CollectionConfigurations": [{"CollectionName": "bias"}, {"CollectionName": "searchable_scalars"}]})");
  EXPECT_THAT(config->include_collections, ElementsAre("biases", "sm_metrics"));
}

TEST(ConfigFile, XgboostIgnoresReductionsWithOneWarning) {
  const std::string text = R"({"HookParameters": {"reductions": "min"},
    "CollectionConfigurations": [{"CollectionName": "losses", "CollectionParameters": {"reductions": "max"}}]})";
  const auto config = parse(text, Framework::kXgboost);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->reductions, ReductionSpec{});
  EXPECT_FALSE(config->collections[0].reductions.has_value());
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("ignored for XGBoost")));
}

TEST(ConfigFile, ArgumentsBesideAFileAreIgnoredWithAWarning) {
  const HookOptions options{.out_dir = "/elsewhere", .save_all = true, .rank = 2, .world_size = 4, .worker = "w"};
  const auto config = parse_config("{\"LocalPath\": \"/r\"}", "run.json", options, bare());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->location, "/r");
  EXPECT_FALSE(config->save_all);
  EXPECT_EQ(config->rank, 2);
  EXPECT_EQ(config->worker, "w");
  EXPECT_THAT(config->warnings, ElementsAre("out_dir: the argument is ignored, since a configuration file is used",
                                            "save_all: the argument is ignored, since a configuration file is used"));
}

TEST(ConfigFile, OriginsSayWhereAValueStood) {
  const auto config = parse(with_hook("\"save_interval\": 3,\n\"eval.end_step\": 4, \"fsync\": \"step\""),
                            Framework::kPytorch, bare({{"TORNASOLE_QUEUE_BYTES", "5"}}));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->origins.at("out_dir"), "line 1");
  EXPECT_EQ(config->origins.at("save_interval"), "line 2");
  EXPECT_EQ(config->origins.at("eval.end_step"), "line 3");
  EXPECT_EQ(config->origins.at("fsync"), "line 3");
  EXPECT_EQ(config->origins.at("queue_bytes"), "TORNASOLE_QUEUE_BYTES");
  EXPECT_EQ(config->origins.count("resume"), 0U);
  EXPECT_EQ(config->source, "run.json");
}

}  // namespace
}  // namespace tornasole::config
