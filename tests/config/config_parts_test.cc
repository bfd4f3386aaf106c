#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tornasole/options.h"

namespace tornasole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConfigParts, WhatIsLeftOutOfAScheduleHasItsDefault) {
  const auto complete = complete_save_config({.end_step = 9, .save_steps = {{7, 3}}});
  ASSERT_TRUE(complete) << complete.error().message;
  EXPECT_EQ(*complete, (SaveConfigMode{500, 0, 9, {{7, 3}}, std::vector<std::string>{}}));
  EXPECT_EQ(complete_save_config({}, Framework::kXgboost)->save_interval, 10);
}

TEST(ConfigParts, AFieldThatIsNotAllowedIsAValueError) {
  const auto complete = complete_save_config({.save_interval = 0});
  ASSERT_FALSE(complete);
  EXPECT_EQ(complete.error().kind, ErrorKind::kValue);
  EXPECT_THAT(complete.error().message, HasSubstr("save_interval"));
  EXPECT_FALSE(check_reduction_config({.norms = {"l3"}}));
  EXPECT_TRUE(check_reduction_config({.reductions = {"median"}, .norms = {"l2"}}));
}

TEST(ConfigParts, ReductionsAsOneListAndBack) {
  const ReductionConfig config{
      .reductions = {"mean", "median"}, .abs_reductions = {"max"}, .norms = {"l1"}, .abs_norms = {"l2"}};
  EXPECT_EQ(reductions_text(config), "mean,median,l1_norm,abs_max,abs_l2_norm");
  ReductionConfig read;
  ASSERT_TRUE(add_reductions(" mean,median ,l1,, abs_max,abs_l2_norm", &read));
  EXPECT_EQ(read, config);
  EXPECT_FALSE(add_reductions("mean,mode", &read));
}

TEST(ConfigParts, TextsOfNumbersAndNames) {
  EXPECT_EQ(*parse_integer("-12"), -12);
  EXPECT_FALSE(parse_integer("1.5"));
  EXPECT_EQ(collection_name("bias"), "biases");
  EXPECT_EQ(collection_name("mine"), "mine");
  EXPECT_EQ(*framework_of("mxnet"), Framework::kMxnet);
  EXPECT_FALSE(framework_of("jax"));
  EXPECT_EQ(find_config_file("given.json"), "given.json");
}

}  // namespace
}  // namespace tornasole
