#include "config/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::HasSubstr;

TEST(Schedules, WithoutFieldsEveryModeHasTheDefaults) {
  const auto schedules = make_schedules({}, 500);
  ASSERT_TRUE(schedules.ok());
  for (const auto& schedule : *schedules) EXPECT_EQ(schedule, Schedule{});
}

TEST(Schedules, FieldsAreForEveryMode) {
  const auto schedules = make_schedules(
      {.save_interval = 3, .start_step = 1, .end_step = 9, .save_steps = {{7, 5, 7}}, .when_nan = {{"l"}}}, 500);
  ASSERT_TRUE(schedules.ok());
  for (const auto& schedule : *schedules) EXPECT_EQ(schedule, (Schedule{3, 1, 9, {5, 7}, {"l"}}));
}

TEST(Schedules, OnlyModesLeavesTheOthersUnset) {
  const auto schedules = make_schedules({.modes = {{Mode::kEval, {.start_step = 4}}}}, 10);
  ASSERT_TRUE(schedules.ok());
  EXPECT_FALSE((*schedules)[mode_index(Mode::kTrain)].has_value());
  EXPECT_FALSE((*schedules)[mode_index(Mode::kGlobal)].has_value());
  EXPECT_EQ(*(*schedules)[mode_index(Mode::kEval)], (Schedule{.save_interval = 10, .start_step = 4}));
}

TEST(Schedules, FieldsBesideModesAreForTheModesNotListed) {
  const auto schedules = make_schedules({.save_interval = 3, .modes = {{Mode::kEval, {.start_step = 4}}}}, 500);
  ASSERT_TRUE(schedules.ok());
  EXPECT_EQ((*schedules)[mode_index(Mode::kTrain)]->save_interval, 3);
  EXPECT_EQ((*schedules)[mode_index(Mode::kEval)]->save_interval, 500) << "a missing field is the library's default";
}

TEST(Schedules, RefuseWhatCannotBe) {
  EXPECT_EQ(make_schedules({.save_interval = 0}, 500).error().message,
            "save_interval: 0 is not allowed; allowed: an integer of at least 1");
  EXPECT_THAT(make_schedules({.modes = {{Mode::kEval, {.save_interval = -2}}}}, 500).error().message,
              HasSubstr("save_interval of mode EVAL: -2"));
  EXPECT_THAT(make_schedules({.modes = {{static_cast<Mode>(9), {}}}}, 500).error().message, HasSubstr("not a mode"));
  EXPECT_THAT(make_schedules({.when_nan = {{std::string(4097, 'a')}}}, 500).error().message, HasSubstr("4097 bytes"));
  EXPECT_EQ(make_schedules({.save_interval = 0}, 500).error().kind, ErrorKind::kValue);
}

// A file's fields, with the answer worked out by the sentence of the documentation: collection's mode, collection,
// hook's mode, hook, default.
TEST(Schedules, PrecedenceHoldsForEveryCombinationOfSources) {
  struct Field {
    const char* name;
    std::int64_t Schedule::* member;
    std::int64_t fallback;
  };
  const Field kFields[] = {{"save_interval", &Schedule::save_interval, 500}, {"start_step", &Schedule::start_step, 0}};
  const std::array<const char*, 4> kPrefixes = {"train.", "eval.", "predict.", "global."};
  for (const Field& field : kFields) {
    for (const Mode mode : kAllModes) {
      const std::string prefix = kPrefixes[mode_index(mode)];
      for (unsigned bits = 0; bits < 16; ++bits) {
        const auto member = [&](const std::string& mode_prefix, int value) {
          return "\"" + mode_prefix + field.name + "\": " + std::to_string(value);
        };
        std::string collection;
        std::string hook;
        const auto add = [](std::string* to, const std::string& text) { *to += (to->empty() ? "" : ", ") + text; };
        if (bits & 1U) add(&collection, member(prefix, 11));
        if (bits & 2U) add(&collection, member("", 12));
        if (bits & 4U) add(&hook, member(prefix, 13));
        if (bits & 8U) add(&hook, member("", 14));
        const std::string text = "{\"LocalPath\": \"/r\", \"HookParameters\": {" + hook +
                                 "}, \"CollectionConfigurations\": [{\"CollectionName\": \"c\", "
                                 "\"CollectionParameters\": {" +
                                 collection + "}}]}";
        const auto config = parse(text);
        ASSERT_TRUE(config.ok()) << text << config.error().message;
        const std::int64_t of_hook = bits & 4U ? 13 : bits & 8U ? 14 : field.fallback;
        const std::int64_t expected = bits & 1U ? 11 : bits & 2U ? 12 : of_hook;
        const auto& own = config->collections[0].schedules[mode_index(mode)];
        const Schedule& hooks = config->schedules[mode_index(mode)];
        EXPECT_EQ(hooks.*field.member, of_hook) << text;
        EXPECT_EQ((own ? *own : hooks).*field.member, expected) << text;
      }
    }
  }
}

TEST(Schedules, ListsReplaceAndDoNotMerge) {
  const auto config = parse(R"({"LocalPath": "/r", "HookParameters": {"save_steps": "1,2", "when_nan": "a"},
    "CollectionConfigurations": [
      {"CollectionName": "c", "CollectionParameters": {"save_steps": [9], "eval.when_nan": "b"}}]})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto& own = config->collections[0].schedules;
  EXPECT_EQ(own[mode_index(Mode::kTrain)]->save_steps, std::vector<std::int64_t>{9});
  EXPECT_EQ(own[mode_index(Mode::kTrain)]->when_nan, std::vector<std::string>{"a"});
  EXPECT_EQ(own[mode_index(Mode::kEval)]->when_nan, std::vector<std::string>{"b"});
  EXPECT_EQ(config->schedules[0].save_steps, (std::vector<std::int64_t>{1, 2}));
}

TEST(Schedules, OfACollectionInheritFieldsOfTheHook) {
  const auto config = parse(R"({"LocalPath": "/r", "HookParameters": {"end_step": 90, "eval.start_step": 5},
    "CollectionConfigurations": [{"CollectionName": "c", "CollectionParameters": {"save_interval": 4}}]})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config->collections[0].schedules[mode_index(Mode::kEval)],
            (Schedule{.save_interval = 4, .start_step = 5, .end_step = 90}));
}

TEST(Schedules, XgboostStartsFromTenRounds) {
  EXPECT_EQ(default_save_interval(Framework::kXgboost), 10);
  for (const Framework framework : {Framework::kCpp, Framework::kPytorch, Framework::kMxnet, Framework::kTensorflow}) {
    EXPECT_EQ(default_save_interval(framework), 500);
  }
  const auto config = parse(with_collection("\"start_step\": 1"), Framework::kXgboost);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->schedules[0].save_interval, 10);
  EXPECT_EQ(config->collections[0].schedules[0]->save_interval, 10);
}

TEST(Schedules, AtMostAThousandPatternsInAll) {
  Config config;
  config.include_regex.assign(600, "a");
  config.collections.push_back({.name = "c", .include_regex = std::vector<std::string>(400, "b")});
  EXPECT_TRUE(check_pattern_count(config).ok());
  for (Schedule& schedule : config.schedules) schedule.when_nan = {"loss"};
  const auto checked = check_pattern_count(config);
  ASSERT_FALSE(checked.ok()) << "a watched pattern counts too, once for all modes";
  EXPECT_THAT(checked.error().message, HasSubstr("1001 patterns"));
}

}  // namespace
}  // namespace tornasole::config
