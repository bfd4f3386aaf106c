// The worked examples of docs/configuration.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Examples, E1Minimal) {
  const auto config = parse(example("e1_minimal"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->out_dir, "/my/run1");
  EXPECT_EQ(config->location, "/my/run1");
  EXPECT_THAT(config->include_collections, IsEmpty());
  for (const Schedule& schedule : config->schedules) EXPECT_EQ(schedule, Schedule{});
  EXPECT_EQ(config->reductions, ReductionSpec{});
  EXPECT_TRUE(config->reductions.save_raw_tensor);
  EXPECT_EQ(config->include_workers, IncludeWorkers::kOne);
  EXPECT_FALSE(config->tensorboard_dir.has_value());
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_EQ(parse("{}")->location, "/opt/ml/output/tensors");
}

TEST(Examples, E2AllHookParameters) {
  const auto config = parse(example("e2_all_hook_parameters"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(config->warnings, ElementsAre("run.json: line 22: trailing comma ignored"));
  EXPECT_THAT(config->include_regex, ElementsAre("conv", "dense"));
  for (const Schedule& schedule : config->schedules) EXPECT_EQ(schedule, (Schedule{50, 1, 900, {3, 5, 8}, {}}));
  EXPECT_EQ(config->reductions,
            (ReductionSpec{{{ReductionKind::kMin}, {ReductionKind::kMax}}, /*save_raw_tensor=*/false, false}));
  ASSERT_EQ(config->collections.size(), 1U);
  const CollectionSettings& attention = config->collections[0];
  EXPECT_EQ(attention.name, "attention");
  EXPECT_THAT(attention.include_regex, ElementsAre("attn*"));
  for (const auto& schedule : attention.schedules) EXPECT_EQ(*schedule, (Schedule{200, 1, 900, {3}, {}}));
  EXPECT_EQ(*attention.reductions, (ReductionSpec{{{ReductionKind::kStd}}, false, false}));
  EXPECT_THAT(config->include_collections, ElementsAre("attention"));
}

TEST(Examples, E3Modes) {
  const auto config = parse(example("e3_modes"), Framework::kTensorflow);
  ASSERT_TRUE(config.ok()) << config.error().message;
  const std::array<std::int64_t, 4> hook = {20, 4, 8, 8};
  const std::array<std::int64_t, 4> losses = {20, 1, 8, 64};
  for (const Mode mode : kAllModes) {
    const std::size_t m = mode_index(mode);
    EXPECT_EQ(config->schedules[m].save_interval, hook[m]) << mode_name(mode);
    EXPECT_EQ(config->collections[1].schedules[m]->save_interval, losses[m]) << mode_name(mode);
    EXPECT_FALSE(config->collections[0].schedules[m].has_value()) << "weights say nothing: the hook's";
  }
  EXPECT_THAT(config->include_collections, ElementsAre("weights", "losses"));
}

TEST(Examples, E4CollectionBeatsModeOfHook) {
  const auto config = parse(example("e4_collection_beats_mode_of_hook"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->schedules[mode_index(Mode::kTrain)].save_interval, 7);
  EXPECT_EQ(config->schedules[mode_index(Mode::kEval)].save_interval, 500);
  for (const auto& schedule : config->collections[0].schedules) EXPECT_EQ(schedule->save_interval, 9);
  EXPECT_THAT(config->collections[0].include_regex, ElementsAre("relu|tanh"));
}

TEST(Examples, E5DefaultCollectionOff) {
  const auto config = parse(example("e5_default_collection_off"), Framework::kTensorflow);
  ASSERT_TRUE(config.ok()) << config.error().message;
  for (const auto& schedule : config->collections[0].schedules) {
    EXPECT_EQ(*schedule, (Schedule{500, 0, 0, {1, 2, 3}, {}}));
  }
  EXPECT_EQ(config->schedules[0], (Schedule{500, 0, {}, {1, 2, 3}, {}}));
}

TEST(Examples, E6EverythingAsText) {
  const auto config = parse(example("e6_everything_as_text"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  std::string text;
  for (const Reduction reduction : config->reductions.reductions) text += reduction_config_text(reduction) + ",";
  EXPECT_EQ(text, "mean,median,l1_norm,abs_max,abs_l2_norm,");
  EXPECT_TRUE(config->reductions.save_raw_tensor);
  EXPECT_EQ(config->include_workers, IncludeWorkers::kAll);
  EXPECT_EQ(config->tensorboard_dir, "/my/out/tensorboard");
  EXPECT_EQ(config->collections[0].save_histogram, false);
  EXPECT_EQ(config->origins.at("gradients.save_histogram"), "line 10");
}

TEST(Examples, E7Xgboost) {
  const auto config = parse(example("e7_xgboost"), Framework::kXgboost);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->schedules[0].save_interval, 10);
  EXPECT_EQ(config->collections[0].schedules[0]->save_interval, 1);
  EXPECT_FALSE(config->collections[1].schedules[0].has_value());
  EXPECT_THAT(config->include_collections, ElementsAre("losses", "feature_importance"));
}

TEST(Examples, E8WhenNan) {
  const auto config = parse(example("e8_when_nan"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  for (const Schedule& schedule : config->schedules) EXPECT_EQ(schedule, (Schedule{10, 0, {}, {}, {"loss"}}));
}

TEST(Examples, E9CollectionWithoutPatterns) {
  const auto config = parse(example("e9_collection_without_patterns"));
  ASSERT_TRUE(config.ok()) << "accepted: the script may add patterns before the first step";
  EXPECT_THAT(config->include_collections, ElementsAre("my_layers"));
  EXPECT_THAT(config->collections[0].include_regex, IsEmpty());
}

}  // namespace
}  // namespace tornasole::config
