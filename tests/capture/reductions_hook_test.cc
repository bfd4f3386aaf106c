// Reductions as a user of the hook meets them: which tensors have them, under what names, in what shape.

#include <gmock/gmock.h>

#include <complex>
#include <limits>

#include "capture/hook_fixture.h"

namespace tornasole::capture {
namespace {

using ::testing::ElementsAre;

const std::vector<float> kValues = {1, -2, 3, 4};

using ReductionsTest = HookFixture;

TEST_F(ReductionsTest, ATensorOfTheScalarSetAloneIsNeverReduced) {
  {
    Hook hook = open({.reduction_config = ReductionConfig{.reductions = {"min"}},
                      .save_config = {.save_interval = 1},
                      .include_collections = {"metrics"}});
    Collection metrics = hook.collection("metrics");
    ASSERT_TRUE(metrics.include("accuracy").ok());
    // Overridden: what belongs to the scalar set is saved whole.
    ASSERT_TRUE(metrics.set_reduction_config({.norms = {"l2"}}).ok());
    ASSERT_TRUE(hook.collection("losses").set_reduction_config({.reductions = {"max"}}).ok());
    auto step = hook.begin_step(Mode::kTrain);
    step.save("loss", kValues);
    step.save("accuracy", 0.5);
  }
  EXPECT_THAT(names_at(0), ElementsAre("accuracy", "loss"));
}

TEST_F(ReductionsTest, ALossThatAnotherCollectionReducesIsBoth) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"mine"}});
    Collection mine = hook.collection("mine");
    ASSERT_TRUE(mine.include("loss").ok());
    ASSERT_TRUE(mine.set_reduction_config({.reductions = {"max"}}).ok());
    hook.begin_step(Mode::kTrain).save("loss", kValues);
  }
  EXPECT_THAT(names_at(0), ElementsAre("loss", "smdebug/reductions/max/loss"));
}

TEST_F(ReductionsTest, TheUnionOverTheDueCollectionsEachOnce) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"one", "two", "rare"}});
    for (const char* name : {"one", "two", "rare"}) ASSERT_TRUE(hook.collection(name).include("x").ok());
    ASSERT_TRUE(hook.collection("one").set_reduction_config({.reductions = {"min", "mean"}}).ok());
    ASSERT_TRUE(hook.collection("two").set_reduction_config({.reductions = {"mean"}, .abs_reductions = {"min"}}).ok());
    ASSERT_TRUE(hook.collection("rare").set_save_config({.save_interval = 2}).ok());
    ASSERT_TRUE(hook.collection("rare").set_reduction_config({.norms = {"l1"}, .abs_norms = {"l1"}}).ok());
    for (int i = 0; i < 2; ++i) hook.begin_step(Mode::kTrain).save("x", kValues);
  }
  const auto steps = read_steps(*store_);
  EXPECT_EQ(steps.at(0).order.size(), 5U);  // each written once
  EXPECT_THAT(names_at(0),
              ElementsAre("smdebug/reductions/abs_l1/x", "smdebug/reductions/abs_min/x", "smdebug/reductions/l1/x",
                          "smdebug/reductions/mean/x", "smdebug/reductions/min/x"));
  EXPECT_THAT(names_at(1),
              ElementsAre("smdebug/reductions/abs_min/x", "smdebug/reductions/mean/x", "smdebug/reductions/min/x"));
  EXPECT_EQ(values_of<float>(steps.at(0).values.at("smdebug/reductions/l1/x")), std::vector<float>{10});
}

TEST_F(ReductionsTest, AStoredReductionHasOneDimensionOfOne) {
  const float number = 3;
  {
    Hook hook = open({.reduction_config = ReductionConfig{.reductions = {"max"}},
                      .save_config = {.save_interval = 1},
                      .save_all = true});
    auto step = hook.begin_step(Mode::kTrain);
    step.save("scalar", TensorView(DType::kFloat32, &number, Shape{}));
    step.save("matrix", TensorView::of(kValues, {2, 2}));
  }
  const auto steps = read_steps(*store_);
  EXPECT_EQ(steps.at(0).values.size(), 2U);
  for (const auto& [name, value] : steps.at(0).values) EXPECT_EQ(value.shape(), Shape{1}) << name;
}

TEST_F(ReductionsTest, NumbersAfterAColonAreDroppedOutsideTensorflow) {
  const std::pair<Framework, const char*> cases[] = {
      {Framework::kPytorch, "smdebug/reductions/mean/net/w"},
      {Framework::kCpp, "smdebug/reductions/mean/net/w"},
      {Framework::kTensorflow, "smdebug/reductions/mean/net/w:0"},
  };
  for (const auto& [framework, name] : cases) {
    renew_store();
    {
      Hook hook = open({.reduction_config = ReductionConfig{.reductions = {"mean"}},
                        .save_config = {.save_interval = 1},
                        .include_regex = {"net"},
                        .framework = framework});
      hook.begin_step(Mode::kTrain).save("net/w:0", kValues);
    }
    EXPECT_THAT(names_at(0), ElementsAre(name));
  }
}

TEST_F(ReductionsTest, AShapeIsSavedUnlessTheValueIs) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"shapes", "raw"}});
    ASSERT_TRUE(hook.collection("shapes").include("x").ok());
    ASSERT_TRUE(hook.collection("shapes").set_reduction_config({.reductions = {"min"}, .save_shape = true}).ok());
    ASSERT_TRUE(hook.collection("raw").include("x").ok());
    ASSERT_TRUE(hook.collection("raw").set_save_config({.save_interval = 2}).ok());
    for (int i = 0; i < 2; ++i) hook.begin_step(Mode::kTrain).save("x", TensorView::of(kValues, {2, 2}));
  }
  const auto steps = read_steps(*store_);
  EXPECT_TRUE(steps.at(0).index.shapes.empty());
  ASSERT_EQ(steps.at(1).index.shapes.size(), 1U);
  EXPECT_EQ(steps.at(1).index.shapes[0].name, "x");
  EXPECT_THAT(names_at(1), ElementsAre("smdebug/reductions/min/x"));
}

TEST_F(ReductionsTest, ACollectionThatWouldSaveNothingIsWarnedOfOnce) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"weights", "biases"}});
    ASSERT_TRUE(hook.collection("weights").set_reduction_config({}).ok());
    ASSERT_TRUE(hook.collection("biases").set_reduction_config({}).ok());
    for (int i = 0; i < 3; ++i) hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
  }
  EXPECT_EQ(warnings_with("\"weights\" would save nothing"), 1);
  EXPECT_EQ(warnings_with("\"biases\" would save nothing"), 1);
  EXPECT_THAT(names_at(0), ElementsAre());
}

TEST_F(ReductionsTest, HelperThreadsChangeNoNumber) {
  std::vector<float> values(3'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1'001) * 0.37F - 150;
  std::vector<Tensor> results;
  for (const std::int64_t threads : {1, 4}) {
    renew_store();
    {
      Hook hook = open({.reduction_config = ReductionConfig{.reductions = {"mean", "std"}, .norms = {"l2"}},
                        .save_config = {.save_interval = 1},
                        .save_all = true,
                        .reduce_threads = threads});
      hook.begin_step(Mode::kTrain).save("x", values);
    }
    const auto steps = read_steps(*store_);
    for (const auto& [name, value] : steps.at(0).values) results.push_back(value);
  }
  ASSERT_EQ(results.size(), 6U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], results[i + 3]);
}

TEST_F(ReductionsTest, TensorsWithANonFiniteStatisticAreToldWhileTheirStepIsOpen) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Hook hook = open({.reduction_config = ReductionConfig{.reductions = {"min", "mean"}},
                    .save_config = {.save_interval = 2},
                    .include_collections = {"reduced", "raw"}});
  ASSERT_TRUE(hook.collection("reduced").include("^x").ok());
  ASSERT_TRUE(hook.collection("raw").include("^raw").ok());
  ASSERT_TRUE(hook.collection("raw").set_reduction_config({.save_raw_tensor = true}).ok());
  EXPECT_THAT(hook.non_finite_tensors(), ElementsAre());
  {
    auto step = hook.begin_step(Mode::kTrain);
    step.save("x_finite", kValues);
    step.save("x_integers", std::vector<int>{1, 2});
    step.save("other", std::vector<float>{kNan});
    step.save("raw", std::vector<float>{kNan});
    EXPECT_THAT(hook.non_finite_tensors(), ElementsAre()) << "of these no statistic was taken, or it is finite";
    step.save("x_nan", std::vector<float>{1, kNan, 3});
    step.save("x_infinite", std::vector<double>{1, -kInfinity});
    step.save("x_complex", std::vector<std::complex<float>>{{1, kNan}});
    EXPECT_THAT(hook.non_finite_tensors(), ElementsAre("x_nan", "x_infinite", "x_complex"));
  }
  EXPECT_THAT(hook.non_finite_tensors(), ElementsAre()) << "the step is over";
  {
    auto step = hook.begin_step(Mode::kTrain);
    step.save("x_nan", std::vector<float>{kNan});
    EXPECT_THAT(hook.non_finite_tensors(), ElementsAre()) << "nothing is due at this step";
  }
  auto step = hook.begin_step(Mode::kTrain);
  EXPECT_THAT(hook.non_finite_tensors(), ElementsAre());
  for (int i = 0; i < 150; ++i) step.save("x" + std::to_string(i), std::vector<float>{kNan});
  EXPECT_EQ(hook.non_finite_tensors().size(), 100U);
  step.end();
  EXPECT_TRUE(hook.close().ok());
}

}  // namespace
}  // namespace tornasole::capture
