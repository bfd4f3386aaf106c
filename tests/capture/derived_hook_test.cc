// Derived statistics as a user of the hook meets them: which are written, when, under what names, with what values.

#include <gmock/gmock.h>
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <thread>

#include "capture/hook_fixture.h"
#include "config/config.h"
#include "reduce/derived.h"

namespace tornasole::capture {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<float> kValues = {1, -2, 0, 4};
using Names = std::vector<std::string>;

class DerivedTest : public HookFixture {
 protected:
  static HookOptions options(std::vector<std::string> statistics, std::vector<std::string> collections = {"weights"}) {
    return {.save_config = {.save_interval = 1},
            .include_collections = std::move(collections),
            .derived = std::move(statistics)};
  }
  template <typename T>
  std::vector<T> read(std::int64_t step, const std::string& name) {
    const auto steps = read_steps(*store_);
    EXPECT_TRUE(steps.contains(step)) << name;
    if (!steps.contains(step)) return {};
    const auto& values = steps.at(step).values;
    EXPECT_TRUE(values.contains(name)) << name << " at " << step;
    return values.contains(name) ? values_of<T>(values.at(name)) : std::vector<T>{};
  }
};

TEST_F(DerivedTest, EveryStatisticOfOneTensorIsWrittenBesideIt) {
  {
    Hook hook = open(options({"counts", "unit_activity", "unit_range", "across_samples", "quantiles", "hash"}));
    hook.describe_model({.bounds = {{"fc.weight", {-1, 1}}}});
    auto step = hook.begin_step(Mode::kTrain);
    step.save("fc.weight", TensorView::of(kValues, {2, 2}));
  }
  EXPECT_THAT(names_at(0), ElementsAre("derived/across_samples/fc.weight", "derived/counts/fc.weight",
                                       "derived/hash/fc.weight", "derived/quantiles/fc.weight",
                                       "derived/unit_activity/fc.weight", "derived/unit_range/fc.weight", "fc.weight"));
  EXPECT_THAT(read<std::int64_t>(0, "derived/counts/fc.weight"), ElementsAre(4, 1, 0, 0, 0, -1));
  EXPECT_THAT(read<float>(0, "derived/unit_activity/fc.weight"), ElementsAre(0.5F, 0.5F));
  EXPECT_THAT(read<float>(0, "derived/unit_range/fc.weight"), ElementsAre(0.0F, 1.0F));
  EXPECT_THAT(read<float>(0, "derived/across_samples/fc.weight"), ElementsAre(0.5F, 1.0F, 0.5F, 10.0F, 0.5F, 3.0F));
  EXPECT_EQ(read_steps(*store_).at(0).values.at("derived/across_samples/fc.weight").shape(), (Shape{3, 2}));
  EXPECT_FLOAT_EQ(read<float>(0, "derived/quantiles/fc.weight")[2], 0.5F);
  EXPECT_EQ(read<std::int64_t>(0, "derived/hash/fc.weight")[0],
            std::bit_cast<std::int64_t>(XXH3_64bits(kValues.data(), 4 * sizeof(float))));
}

TEST_F(DerivedTest, EveryNameTheConfigurationAllowsIsAStatistic) {
  for (const reduce::Statistic statistic : reduce::kAllStatistics) {
    renew_store();
    Hook hook = open(options({std::string(reduce::statistic_name(statistic))}));
  }
  HookOptions unknown = options({"counts", "entropy"});
  unknown.out_dir = "/nowhere/run";
  const auto refused = open_hook(unknown, {.store = store_->share()});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("entropy"));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("cosine_previous"));
}

TEST_F(DerivedTest, OnlyTensorsOfDueCollectionsAndNotScalarsHaveStatistics) {
  {
    Hook hook = open(options({"counts"}));
    ASSERT_TRUE(hook.collection("weights").set_save_config({.save_interval = 2}).ok());
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("fc.weight", kValues);
      step.save("activation", kValues);  // in no saved collection
      step.save("loss", 0.5F);           // saved whole through the scalar set
    }
  }
  EXPECT_THAT(names_at(0, "derived/"), ElementsAre("derived/counts/fc.weight"));
  EXPECT_THAT(names_at(1), ElementsAre("loss"));
  EXPECT_THAT(names_at(2, "derived/"), ElementsAre("derived/counts/fc.weight"));
}

TEST_F(DerivedTest, AScheduleOfItsOwnRestrictsTheCollection) {
  {
    Hook hook = open(options({"counts"}));
    ASSERT_TRUE(hook.collection("derived").set_save_config({.save_interval = 3}).ok());
    for (int i = 0; i < 4; ++i) hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
  }
  EXPECT_THAT(names_at(0, "derived/"), ElementsAre("derived/counts/fc.weight"));
  EXPECT_THAT(names_at(1, "derived/"), IsEmpty());
  EXPECT_THAT(names_at(3, "derived/"), ElementsAre("derived/counts/fc.weight"));
}

TEST_F(DerivedTest, WithTheHooksScheduleTheyFollowTheirTensors) {
  HookOptions rare = options({"counts"});
  rare.save_config = {.save_interval = 500};
  {
    Hook hook = open(rare);
    ASSERT_TRUE(hook.collection("weights").set_save_config({.save_interval = 2}).ok());
    for (int i = 0; i < 5; ++i) hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
  }
  for (const std::int64_t step : {0, 2, 4}) {
    EXPECT_THAT(names_at(step, "derived/"), ElementsAre("derived/counts/fc.weight")) << step;
  }
}

TEST_F(DerivedTest, WithoutTheOptionThereIsNoSuchCollectionNorTensor) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .save_all = true});
    hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
  }
  EXPECT_FALSE(read_collections(*store_).contains("derived"));
  EXPECT_THAT(names_at(0), ElementsAre("fc.weight"));
}

TEST_F(DerivedTest, TheyBelongToTheirCollectionAndToNoOther) {
  HookOptions all = options({"counts"}, {});
  all.save_all = true;
  {
    Hook hook = open(all);
    auto step = hook.begin_step(Mode::kTrain);
    step.save("fc.weight", kValues);
    step.save("gradient/fc.weight", kValues);
  }
  const auto collections = read_collections(*store_);
  ASSERT_TRUE(collections.contains("derived"));
  EXPECT_THAT(collections.at("derived").tensor_names,
              ElementsAre("derived/counts/fc.weight", "derived/counts/gradient/fc.weight"));
  for (const auto& [name, collection] : collections) {
    if (name == "derived") continue;
    for (const std::string& tensor : collection.tensor_names) EXPECT_FALSE(tensor.starts_with("derived/")) << name;
  }
}

TEST_F(DerivedTest, TheyAreWholeWhateverTheHookReduces) {
  HookOptions reduced = options({"counts"});
  reduced.reduction_config = ReductionConfig{.reductions = {"mean"}};
  {
    Hook hook = open(reduced);
    hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
  }
  EXPECT_THAT(names_at(0), ElementsAre("derived/counts/fc.weight", "smdebug/reductions/mean/fc.weight"));
}

TEST_F(DerivedTest, ACollectionThatSavesNothingElseStillHasThem) {
  {
    Hook hook = open(options({"counts"}));
    ASSERT_TRUE(hook.collection("weights").set_reduction_config({}).ok());
    auto step = hook.begin_step(Mode::kTrain);
    EXPECT_TRUE(step.wants("fc.weight"));
    EXPECT_FALSE(step.wants("activation"));
    step.save("fc.weight", kValues);
  }
  EXPECT_THAT(names_at(0), ElementsAre("derived/counts/fc.weight"));
}

TEST_F(DerivedTest, WhatIsNotDefinedIsLeftOutCountedAndSaidOnce) {
  const std::vector<std::complex<float>> complex(4);
  {
    Hook hook = open(options({"counts", "quantiles"}));
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("a.weight", complex);
      step.save("b.weight", complex);
    }
    EXPECT_TRUE(hook.close().ok());
    EXPECT_EQ(hook.report().dropped_values, (std::map<std::string, std::int64_t>{{"derived_quantiles", 6}}));
  }
  EXPECT_EQ(warnings_with("quantiles of a tensor of complex64"), 1);
  EXPECT_THAT(names_at(2, "derived/"), ElementsAre("derived/counts/a.weight", "derived/counts/b.weight"));
}

TEST_F(DerivedTest, RangesNeedBoundsAndSayNothingWithout) {
  {
    Hook hook = open(options({"unit_range"}));
    hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
    EXPECT_TRUE(hook.close().ok());
    EXPECT_TRUE(hook.report().dropped_values.empty());
  }
  EXPECT_THAT(names_at(0), ElementsAre("fc.weight"));
}

TEST_F(DerivedTest, BoundsAreInTheModelDescription) {
  {
    Hook hook = open(options({"unit_range"}));
    hook.describe_model({.bounds = {{"x", {-1, std::numeric_limits<double>::infinity()}}}});
    hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
  }
  const auto text = store_->read_all("tornasole/worker_0_model.json", kReadLimit);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, ::testing::HasSubstr(R"("bounds": {"x": [-1.0, null]})"));
}

TEST_F(DerivedTest, WhatIsNowhereIsNoWarningIfTheUserSaysSo) {
  HookOptions some = options({"quantiles"}, {"weights", "asked"});
  some.warn_unmatched = false;
  {
    Hook hook = open(some);
    ASSERT_TRUE(hook.set_collection({.name = "asked", .include_regex = {"nowhere"}}));
    auto step = hook.begin_step(Mode::kTrain);
    step.save("fc.weight", std::vector<std::complex<float>>{1, 2});
    step.save("loss", 1.0F);
  }
  EXPECT_EQ(warnings_with("left out"), 0);
  EXPECT_EQ(warnings_with("no tensor"), 0);
}

// ---- the step before

TEST_F(DerivedTest, UpdateAndCosineCompareWithTheStepBefore) {
  {
    Hook hook = open(options({"update", "cosine_previous"}, {"weights", "gradients"}));
    for (int i = 0; i < 3; ++i) {
      const std::vector<float> weight = {3, static_cast<float>(4 + 2 * i)};
      const std::vector<float> gradient = {1, static_cast<float>(i % 2 == 0 ? 1 : -1)};
      auto step = hook.begin_step(Mode::kTrain);
      step.save("fc.weight", weight);
      step.save("gradient/fc.weight", gradient);
      step.save("loss", 1.0F);
    }
  }
  EXPECT_THAT(names_at(0, "derived/"), IsEmpty());
  EXPECT_THAT(read<double>(1, "derived/update/fc.weight"), ElementsAre(2, 5));
  EXPECT_THAT(read<double>(2, "derived/update/fc.weight"), ElementsAre(2, std::sqrt(45.0)));
  EXPECT_THAT(read<double>(1, "derived/cosine_previous/gradient/fc.weight"), ElementsAre(0, std::sqrt(2.0)));
  EXPECT_EQ(warnings_with("no tensor"), 0);
}

TEST_F(DerivedTest, TheStepBeforeADueOneIsLookedAtToo) {
  HookOptions rare = options({"update"});
  rare.save_config = {.save_interval = 10};
  {
    Hook hook = open(rare);
    for (int i = 0; i < 11; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      EXPECT_EQ(step.anything_due(), i == 0 || i >= 9) << i;
      EXPECT_EQ(step.wants("fc.weight"), i == 0 || i >= 9) << i;
      step.save("fc.weight", static_cast<float>(i * i));
    }
  }
  EXPECT_EQ(step_numbers(*store_), (std::vector<std::int64_t>{0, 10}));
  EXPECT_THAT(read<double>(10, "derived/update/fc.weight"), ElementsAre(100 - 81, 81));
}

TEST_F(DerivedTest, AChangeOfSeveralOptimizerStepsIsNoUpdate) {
  HookOptions first = options({"update"});
  first.save_config = {.save_interval = 1, .end_step = 2};
  {
    Hook hook = open(first);
    for (int i = 0; i < 9; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      hook.set_facts({.optimizer_step = i});
      const std::string_view weights[] = {"weights"};
      if (i == 6 || i == 7) step.make_due(weights);
      step.save("fc.weight", static_cast<float>(i * i));
    }
  }
  EXPECT_THAT(read<double>(1, "derived/update/fc.weight"), ElementsAre(1, 0));
  EXPECT_THAT(names_at(6, "derived/"), IsEmpty());
  EXPECT_THAT(read<double>(7, "derived/update/fc.weight"), ElementsAre(13, 36));
}

TEST_F(DerivedTest, StepsThatShareAnOptimizerStepAreOne) {
  {
    Hook hook = open(options({"update"}));
    for (int i = 0; i < 6; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      hook.set_facts({.optimizer_step = i / 2});
      step.save("fc.weight", static_cast<float>(10 * (i / 2)));
    }
  }
  for (const std::int64_t step : {0, 1, 3, 5}) EXPECT_THAT(names_at(step, "derived/"), IsEmpty()) << step;
  EXPECT_THAT(read<double>(2, "derived/update/fc.weight"), ElementsAre(10, 0));
  EXPECT_THAT(read<double>(4, "derived/update/fc.weight"), ElementsAre(10, 10));
}

TEST_F(DerivedTest, EvaluationMovesNothing) {
  {
    Hook hook = open(options({"update"}));
    float weight = 1;
    for (const Mode mode : {Mode::kTrain, Mode::kEval, Mode::kEval, Mode::kTrain}) {
      hook.begin_step(mode).save("fc.weight", weight);
      weight += mode == Mode::kTrain ? 2 : 0;
    }
  }
  EXPECT_THAT(names_at(1, "derived/"), IsEmpty());
  EXPECT_THAT(names_at(2, "derived/"), IsEmpty());
  EXPECT_THAT(read<double>(3, "derived/update/fc.weight"), ElementsAre(2, 1));
}

TEST_F(DerivedTest, OnlyParametersAndGradientsAreKept) {
  HookOptions all = options({"update"}, {});
  all.save_all = true;
  {
    Hook hook = open(all);
    hook.describe_model({.parameters = {{.name = "odd_name", .module = "m", .dtype = "float32"}}});
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("odd_name", static_cast<float>(i));
      step.save("activation", static_cast<float>(i));
      step.save("gradient/odd_name", static_cast<float>(i));
    }
  }
  EXPECT_THAT(names_at(1, "derived/"), ElementsAre("derived/update/gradient/odd_name", "derived/update/odd_name"));
}

TEST_F(DerivedTest, ATensorThatChangesItsShapeStartsAnew) {
  {
    Hook hook = open(options({"update"}));
    hook.begin_step(Mode::kTrain).save("fc.weight", TensorView::of(kValues, {4}));
    hook.begin_step(Mode::kTrain).save("fc.weight", TensorView::of(kValues, {2, 2}));
    hook.begin_step(Mode::kTrain).save("fc.weight", TensorView::of(kValues, {2, 2}));
    EXPECT_TRUE(hook.close().ok());
  }
  EXPECT_THAT(names_at(1, "derived/"), IsEmpty());
  EXPECT_THAT(read<double>(2, "derived/update/fc.weight"), ElementsAre(0, std::sqrt(21.0)));
}

TEST_F(DerivedTest, WhatIsKeptIsBounded) {
  HookOptions small = options({"update"});
  small.queue_bytes = 1 << 20;
  const std::vector<float> large(200'000, 1.0F);  // 800,000 bytes: one fits, two do not
  {
    Hook hook = open(small);
    ASSERT_TRUE(hook.collection("weights").set_reduction_config({.reductions = {"mean"}}).ok());
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("a.weight", large);
      step.save("b.weight", large);
    }
    EXPECT_EQ(hook.close().ok(), false);
    EXPECT_EQ(hook.report().dropped_values, (std::map<std::string, std::int64_t>{{"derived_memory", 2}}));
    EXPECT_EQ(hook.report().committed_steps, 2);
  }
  EXPECT_THAT(names_at(1, "derived/"), ElementsAre("derived/update/a.weight"));
}

// ---- classes

TEST_F(DerivedTest, ClassesOfLabelsAndTheirPredictions) {
  const ModelDescription model = {
      .losses = {{.name = "ce", .type = "CrossEntropyLoss", .predictions = {"ce_input_0"}, .labels = {"ce_input_1"}}}};
  const std::vector<float> scores = {2, 1, 0, 0, 1, 2, 0, 3, 1, 1, 0, 0};
  const std::vector<std::int64_t> labels = {0, 2, 0, 0};
  for (const bool labels_first : {false, true}) {
    SCOPED_TRACE(labels_first);
    renew_store();
    HookOptions all = options({"classes"}, {});
    all.save_all = true;
    {
      Hook hook = open(all);
      hook.describe_model(model);
      auto step = hook.begin_step(Mode::kTrain);
      if (labels_first) step.save("ce_input_1", labels);
      step.save("ce_input_0", TensorView::of(scores, {4, 3}));
      if (!labels_first) step.save("ce_input_1", labels);
      step.save("other", labels);
    }
    EXPECT_THAT(names_at(0, "derived/"), ElementsAre("derived/classes/ce_input_0", "derived/classes/ce_input_1"));
    EXPECT_THAT(read<std::int64_t>(0, "derived/classes/ce_input_1"), ElementsAre(3, 0, 1));
    EXPECT_THAT(read<std::int64_t>(0, "derived/classes/ce_input_0"), ElementsAre(2, 1, 0, 0, 0, 0, 0, 0, 1));
  }
}

TEST_F(DerivedTest, LabelsThatAreNoClassesAreLeftOut) {
  HookOptions all = options({"classes"}, {});
  all.save_all = true;
  {
    Hook hook = open(all);
    for (int i = 0; i < 2; ++i) hook.begin_step(Mode::kTrain).save("labels", std::vector<std::int64_t>{0, -1});
    EXPECT_TRUE(hook.close().ok());
    EXPECT_EQ(hook.report().dropped_values, (std::map<std::string, std::int64_t>{{"derived_classes", 2}}));
  }
  EXPECT_EQ(warnings_with("'labels': classes: -1 is not allowed"), 1);
}

// ---- together with the rest

TEST_F(DerivedTest, ATriggeredStepHasThemToo) {
  HookOptions watched = options({"counts"});
  watched.save_config = {.save_interval = 100, .start_step = 50, .when_nan = {{"loss"}}};
  {
    Hook hook = open(watched);
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("fc.weight", kValues);
      step.save("loss", i == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
    }
  }
  EXPECT_EQ(step_numbers(*store_), std::vector<std::int64_t>{1});
  EXPECT_THAT(names_at(1), ElementsAre("derived/counts/fc.weight", "fc.weight", "loss"));
}

TEST_F(DerivedTest, ManyThreadsDeriveInOneStep) {
  {
    Hook hook = open(options({"counts", "update", "quantiles"}));
    const std::vector<float> values(50'000, 2.0F);
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&step, &values, t] {
          for (int n = 0; n < 8; ++n) step.save("t" + std::to_string(t) + "." + std::to_string(n) + ".weight", values);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_TRUE(hook.close().ok());
  }
  EXPECT_EQ(names_at(0, "derived/").size(), 2U * 32U);
  EXPECT_EQ(names_at(2, "derived/").size(), 3U * 32U);
}

TEST_F(DerivedTest, ADryRunSaysWhatItWouldSaveAndWritesNothing) {
  HookOptions dry = options({"counts"});
  dry.dry_run = true;
  {
    Hook hook = open(dry);
    hook.begin_step(Mode::kTrain).save("fc.weight", kValues);
    EXPECT_EQ(hook.report().names_observed, 2);
  }
  EXPECT_THAT(file_names(*store_), IsEmpty());
}

}  // namespace
}  // namespace tornasole::capture
