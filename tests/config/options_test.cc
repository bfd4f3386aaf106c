#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Options, MinimalIsCompleted) {
  const auto config = make_config({.out_dir = "/r"}, bare());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->location, "/r");
  EXPECT_EQ(config->worker, "worker_0");
  EXPECT_EQ(config->framework, Framework::kCpp);
  for (const Schedule& schedule : config->schedules) EXPECT_EQ(schedule, Schedule{});
  EXPECT_EQ(config->reductions, ReductionSpec{});
  EXPECT_FALSE(config->strict);
  EXPECT_FALSE(config->in_sagemaker);
  EXPECT_EQ(config->metrics_dir, ".");
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_EQ(config->source, "");
  EXPECT_EQ(config->origins.at("out_dir"), "argument");
}

TEST(Options, EverythingAskedForArrives) {
  const auto config = make_config({.out_dir = "/r",
                                   .export_tensorboard = true,
                                   .dry_run = true,
                                   .reduction_config = ReductionConfig{.reductions = {"mean", "min"},
                                                                       .abs_reductions = {"max"},
                                                                       .norms = {"l2"},
                                                                       .abs_norms = {"l1"},
                                                                       .save_shape = true},
                                   .save_config = {.save_interval = 7, .modes = {{Mode::kEval, {.save_interval = 2}}}},
                                   .include_regex = {"a,b", ""},
                                   .include_collections = {"bias", "weights", "biases"},
                                   .save_all = true,
                                   .include_workers = IncludeWorkers::kAll,
                                   .framework = Framework::kPytorch,
                                   .framework_version = "2.9",
                                   .rank = 3,
                                   .world_size = 4},
                                  bare());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->tensorboard_dir, "/r/tensorboard");
  EXPECT_TRUE(config->dry_run);
  std::string text;
  for (const Reduction reduction : config->reductions.reductions) text += reduction_config_text(reduction) + " ";
  EXPECT_EQ(text, "mean min l2_norm abs_max abs_l1_norm ");
  EXPECT_FALSE(config->reductions.save_raw_tensor);
  EXPECT_TRUE(config->reductions.save_shape);
  EXPECT_EQ(config->schedules[mode_index(Mode::kTrain)].save_interval, 7);
  EXPECT_EQ(config->schedules[mode_index(Mode::kEval)].save_interval, 2);
  EXPECT_THAT(config->include_regex, ElementsAre("a,b", "")) << "a list is not split, and its empty pattern kept";
  EXPECT_THAT(config->include_collections, ElementsAre("biases", "weights"));
  EXPECT_TRUE(config->save_all);
  EXPECT_EQ(config->include_workers, IncludeWorkers::kAll);
  EXPECT_EQ(config->framework_version, "2.9");
  EXPECT_EQ(config->worker, "worker_3");
}

TEST(Options, ModesNotListedHaveTheDefaultsOfTheFramework) {
  const auto config = make_config({.out_dir = "/r",
                                   .save_config = {.modes = {{Mode::kTrain, {.save_interval = 3}}}},
                                   .framework = Framework::kXgboost},
                                  bare());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->schedules[mode_index(Mode::kTrain)].save_interval, 3);
  EXPECT_EQ(config->schedules[mode_index(Mode::kPredict)].save_interval, 10);
}

TEST(Options, WrongOnesAreRefused) {
  struct Case {
    HookOptions options;
    const char* message;
    ErrorKind kind = ErrorKind::kValue;
  };
  const Case kCases[] = {
      {{}, "out_dir: not given", ErrorKind::kRuntime},
      {{.out_dir = std::string("a\0b", 3)}, "allowed: a path without NUL characters"},
      {{.out_dir = "s3://"}, "names no bucket"},
      {{.out_dir = "/r", .reduction_config = ReductionConfig{.reductions = {"l1"}}},
       "reduction_config: reductions: the item \"l1\" is not allowed; allowed: min, max, median"},
      {{.out_dir = "/r", .reduction_config = ReductionConfig{.abs_reductions = {"abs_min"}}},
       "abs_reductions: the item"},
      {{.out_dir = "/r", .reduction_config = ReductionConfig{.norms = {"l3"}}},
       "norms: the item \"l3\" is not allowed; allowed: l1, l2"},
      {{.out_dir = "/r", .reduction_config = ReductionConfig{.abs_norms = {"min"}}}, "abs_norms: the item \"min\""},
      {{.out_dir = "/r", .save_config = {.save_interval = 0}}, "save_config: save_interval: 0 is not allowed"},
      {{.out_dir = "/r", .include_regex = {std::string(4097, 'a')}}, "include_regex: the pattern"},
      {{.out_dir = "/r", .include_regex = {"\xFF"}}, "allowed: UTF-8 text"},
      {{.out_dir = "/r", .include_regex = std::vector<std::string>(1001, "a")}, "1001 patterns"},
      {{.out_dir = "/r", .include_collections = {""}}, "include_collections: the item \"\""},
      {{.out_dir = "/r", .include_collections = {"\xC0"}}, "include_collections: the item"},
      {{.out_dir = "/r", .rank = -1}, "rank: -1 is not allowed; allowed: an integer from 0 to 0"},
      {{.out_dir = "/r", .rank = 2, .world_size = 2}, "rank: 2 is not allowed; allowed: an integer from 0 to 1"},
      {{.out_dir = "/r", .world_size = 0}, "world_size: 0 is not allowed; allowed: an integer from 1 to 65536"},
      {{.out_dir = "/r", .world_size = 65537}, "world_size: 65537"},
      {{.out_dir = "/r", .worker = "a/b"}, "worker: \"a/b\" is not allowed"},
      {{.out_dir = "/r", .worker = "a b"}, "worker: \"a b\" is not allowed"},
      {{.out_dir = "/r", .worker = std::string(201, 'w')}, "worker: "},
      {{.out_dir = "/r", .worker = "/device GPU"}, "worker: "},
  };
  for (const Case& c : kCases) {
    const auto config = make_config(c.options, bare());
    ASSERT_FALSE(config.ok()) << c.message;
    EXPECT_THAT(config.error().message, HasSubstr(c.message));
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid) << c.message;
    EXPECT_EQ(config.error().kind, c.kind) << c.message;
  }
}

TEST(Options, WorkerNamesMayBeDevices) {
  for (const char* name : {"worker_0", "a.b-c_9", "/job:localhost/replica:0/task:0/device:GPU:0"}) {
    const auto config = make_config({.out_dir = "/r", .worker = name}, bare());
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->worker, name);
  }
  EXPECT_TRUE(make_config({.out_dir = "/r", .rank = 65535, .world_size = 65536}, bare()).ok());
}

TEST(Options, XgboostIgnoresAReductionConfig) {
  const auto config = make_config(
      {.out_dir = "/r", .reduction_config = ReductionConfig{.reductions = {"min"}}, .framework = Framework::kXgboost},
      bare());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->reductions, ReductionSpec{});
  EXPECT_THAT(config->warnings, ElementsAre(HasSubstr("XGBoost")));
}

TEST(Options, FrameworksHaveNames) {
  for (const Framework framework :
       {Framework::kCpp, Framework::kPytorch, Framework::kMxnet, Framework::kTensorflow, Framework::kXgboost}) {
    EXPECT_EQ(parse_framework(framework_name(framework)), framework);
  }
  EXPECT_EQ(parse_framework("jax"), std::nullopt);
}

}  // namespace
}  // namespace tornasole::config
