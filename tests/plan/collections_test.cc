#include "plan/collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plans.h"

namespace tornasole::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Names = std::vector<std::string>;

TEST(BuiltInCollections, HoldTheNamesOfTheirFramework) {
  struct Case {
    Framework framework;
    const char* name;
    Names collections;  // besides `all`
  };
  const Case cases[] = {
      {Framework::kPytorch, "Net_conv1.weight", {"weights"}},
      {Framework::kPytorch, "Net_conv1.bias", {"biases"}},
      {Framework::kPytorch, "gradient/Net_conv1.weight", {"gradients"}},
      {Framework::kPytorch, "gradient/Net_conv1.bias", {"gradients"}},
      {Framework::kPytorch, "Net_conv1.weight_bias", {"weights", "biases"}},
      {Framework::kPytorch, "CrossEntropyLoss_output_0", {"losses"}},
      {Framework::kPytorch, "CrossEntropyLoss_input_0", {}},
      {Framework::kPytorch, "my_loss_fn_output_0", {"losses"}},
      {Framework::kPytorch, "loss", {}},
      {Framework::kPytorch, "relu_output_0", {}},
      {Framework::kPytorch, "x\nconv.weight", {}},
      {Framework::kPytorch, "conv.weight\nx", {"weights"}},
      {Framework::kPytorch, "x\ngradient/conv.bias", {}},
      {Framework::kPytorch, "optimizer_gradient/Net_fc.weight", {}},
      {Framework::kPytorch, "optimizer_state/exp_avg/Net_fc.weight", {}},
      {Framework::kPytorch, "derived/counts/Net_fc.bias", {}},
      {Framework::kCpp, "loss", {"losses"}},
      {Framework::kCpp, "train/Loss", {"losses"}},
      {Framework::kCpp, "closs", {}},
      {Framework::kCpp, "loss/x", {}},
      {Framework::kCpp, "NLLLoss_output_0", {"losses"}},
      {Framework::kCpp, "fc1.weight", {"weights"}},
      {Framework::kMxnet, "softmaxcrossentropyloss0_output_0", {"losses"}},
      {Framework::kMxnet, "softmaxcrossentropyloss10_output_0", {"losses"}},
      {Framework::kMxnet, "softmaxcrossentropyloss0_input_0", {}},
      {Framework::kMxnet, "conv0_weight", {"weights"}},
      {Framework::kMxnet, "gradient/conv0_bias", {"gradients"}},
      {Framework::kTensorflow, "dense/bias:0", {"biases"}},
      {Framework::kTensorflow, "gradient/dense/bias:0", {}},
      {Framework::kTensorflow, "dense/kernel:0", {}},
      {Framework::kXgboost, "train-rmse", {"losses", "metrics"}},
      {Framework::kXgboost, "test1-rmse", {"losses", "metrics"}},
      {Framework::kXgboost, "train-auc", {"metrics"}},
      {Framework::kXgboost, "validation-aucpr", {"metrics"}},
      {Framework::kXgboost, "train-ndcg@5", {"metrics"}},
      {Framework::kXgboost, "train-map@5-", {"metrics"}},
      {Framework::kXgboost, "train-auctioned", {"losses", "metrics"}},
      {Framework::kXgboost, "train-error@0.5", {"losses", "metrics"}},
      {Framework::kXgboost, "trees/0", {"trees"}},
      {Framework::kXgboost, "predictions", {"predictions"}},
      {Framework::kXgboost, "predictions/x", {}},
      {Framework::kXgboost, "labels", {"labels"}},
      {Framework::kXgboost, "hyperparameters/eta", {"hyperparameters"}},
      {Framework::kXgboost, "feature_importance/gain/f0", {"feature_importance"}},
      {Framework::kXgboost, "average_shap/bias", {}},
      {Framework::kXgboost, "average_shap/radius", {"average_shap"}},
      {Framework::kXgboost, "average_shap/bias2", {"average_shap"}},
      {Framework::kXgboost, "full_shap/areas", {"full_shap"}},
  };
  for (const Case& c : cases) {
    config::Config config = every_step(c.framework);
    config.save_all = true;
    Prepared prepared = make_plan(config);
    Names found = members(prepared.plan.get(), c.name);
    const std::string_view name = c.name;
    const bool is_kept_out = name.starts_with("optimizer_") || name.starts_with("derived/");
    EXPECT_EQ(std::erase(found, "all"), is_kept_out ? 0U : 1U) << c.name;
    EXPECT_EQ(found, c.collections) << c.name;
  }
}

TEST(BuiltInCollections, Tensorflow1SearchesBiasesInTheVariableName) {
  config::Config config = every_step(Framework::kTensorflow);
  config.framework_version = "1.15.0";
  config.include_collections = {"biases"};
  Prepared prepared = make_plan(config);
  EXPECT_THAT(members(prepared.plan.get(), "gradient/bias:0"), ElementsAre("biases"));
}

TEST(BuiltInCollections, ATapeAddsPatternsForItsNames) {
  config::Config config = every_step(Framework::kTensorflow);
  config.include_collections = {"weights", "gradients", "biases"};
  Prepared prepared = make_collections(config);
  prepared.collections->enter_tape();
  prepare(&prepared);
  Plan* plan = prepared.plan.get();
  EXPECT_THAT(members(plan, "weights/dense/kernel:0"), ElementsAre("weights"));
  EXPECT_THAT(members(plan, "weights/dense/bias:0"), ElementsAre("biases"));
  EXPECT_THAT(members(plan, "gradients/dense"), ElementsAre("gradients"));
  EXPECT_THAT(members(plan, "a_loss_b"), ElementsAre("losses"));
}

TEST(SavedSet, IsTheDefaultsAndWhatWasAskedFor) {
  struct Case {
    const char* what;
    config::Config config;
    Names saved;
  };
  const Case cases[] = {
      {"PyTorch saves losses", {.framework = Framework::kPytorch}, {"losses"}},
      {"MXNet saves losses", {.framework = Framework::kMxnet}, {"losses"}},
      {"a plain program saves losses", {.framework = Framework::kCpp}, {"losses"}},
      {"TensorFlow saves losses and metrics",
       {.framework = Framework::kTensorflow},
       {"losses", "metrics", "sm_metrics"}},
      {"XGBoost saves metrics", {.framework = Framework::kXgboost}, {"metrics"}},
      {"an included collection",
       {.framework = Framework::kPytorch, .include_collections = {"weights"}},
       {"weights", "losses"}},
      {"an alias", {.framework = Framework::kPytorch, .include_collections = {"bias"}}, {"biases", "losses"}},
      {"include_regex saves default",
       {.framework = Framework::kPytorch, .include_regex = {"relu"}},
       {"default", "losses"}},
      {"save_all saves every collection, but not those of the optimizer",
       {.framework = Framework::kPytorch, .save_all = true},
       {"all", "default", "weights", "biases", "gradients", "losses"}},
      {"all by name is the same",
       {.framework = Framework::kPytorch, .include_collections = {"all"}},
       {"all", "default", "weights", "biases", "gradients", "losses"}},
      {"the optimizer's collections are saved by name",
       {.framework = Framework::kPytorch, .include_collections = {"optimizer_gradients", "optimizer_variables"}},
       {"losses", "optimizer_gradients", "optimizer_variables"}},
      {"derived statistics bring their collection",
       {.framework = Framework::kPytorch, .derived = {"counts"}},
       {"losses", "derived"}},
      {"TensorFlow's optimizer_variables is one of its own",
       {.framework = Framework::kTensorflow, .save_all = true},
       {"all", "default", "weights", "biases", "gradients", "losses", "metrics", "inputs", "outputs", "layers",
        "sm_metrics", "optimizer_variables"}},
      {"listings are never saved",
       {.framework = Framework::kPytorch, .include_collections = {"scalars", "when_nan"}},
       {"losses"}},
  };
  for (const Case& c : cases) {
    Prepared prepared = make_plan(c.config);
    EXPECT_EQ(saved_names(*prepared.plan), c.saved) << c.what;
    EXPECT_THAT(prepared.plan->warnings(), IsEmpty()) << c.what;
  }
}

TEST(SavedSet, AllByNameGetsItsPattern) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_collections = {"all"};
  Prepared prepared = make_plan(config);
  EXPECT_THAT(members(prepared.plan.get(), "something_else"), ElementsAre("all"));
}

TEST(SavedSet, AllSavesCustomCollectionsToo) {
  config::Config config = every_step(Framework::kPytorch);
  config.save_all = true;
  Prepared prepared = make_collections(config);
  prepared.collections->get("custom").include_regex = {"x"};
  prepared.collections->get("optimizer_gradients");
  prepare(&prepared);
  EXPECT_THAT(members(prepared.plan.get(), "x"), UnorderedElementsAre("all", "custom"));
  EXPECT_THAT(members(prepared.plan.get(), "optimizer_gradient/x"), ElementsAre("custom"));
}

TEST(SavedSet, AnIncludedNameThatDoesNotExistIsWarnedOf) {
  Prepared prepared = make_plan({.framework = Framework::kPytorch, .include_collections = {"wieghts"}});
  ASSERT_EQ(prepared.plan->warnings().size(), 1U);
  EXPECT_THAT(prepared.plan->warnings()[0], HasSubstr("\"wieghts\""));
  EXPECT_THAT(prepared.plan->warnings()[0], HasSubstr("weights"));
}

TEST(OptimizerCollections, HoldTheirNamesAndStatisticsOnly) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_collections = {"optimizer_gradients", "optimizer_variables", "weights"};
  Prepared prepared = make_plan(config);
  Plan* plan = prepared.plan.get();
  EXPECT_THAT(members(plan, "optimizer_gradient/fc.weight"), ElementsAre("optimizer_gradients"));
  EXPECT_THAT(members(plan, "optimizer_state/exp_avg/fc.weight"), ElementsAre("optimizer_variables"));
  const SaveOrder& order = plan->order(plan->name_id("optimizer_gradient/fc.weight"), plan->due(Mode::kTrain, 0));
  EXPECT_FALSE(order.save_raw);
  EXPECT_FALSE(order.reductions.empty());
}

TEST(Collections, ExistOnceAskedForAndCountTheirChanges) {
  Prepared prepared = make_collections({.framework = Framework::kPytorch});
  Collections& collections = *prepared.collections;
  EXPECT_EQ(collections.find("optimizer_gradients"), nullptr);
  EXPECT_EQ(collections.find("when_nan"), nullptr);
  EXPECT_EQ(collections.find("bias"), collections.find("biases"));
  EXPECT_EQ(&collections.get("bias"), collections.find("biases"));
  const std::uint64_t before = collections.version();
  collections.get("biases");
  collections.include("losses");
  EXPECT_EQ(collections.version(), before) << "nothing changed";
  collections.include("biases");
  EXPECT_GT(collections.version(), before);
  const std::uint64_t included = collections.version();
  Collection& custom = collections.get("custom");
  EXPECT_GT(collections.version(), included);
  EXPECT_FALSE(custom.is_builtin);
  EXPECT_TRUE(custom.save_histogram);
  EXPECT_TRUE(collections.get("scalars").is_builtin);
}

TEST(Collections, TheFileSetsPatternsFormAndSchedule) {
  config::Config config{.framework = Framework::kPytorch};
  config.collections.push_back({.name = "gradients",
                                .include_regex = {"^grad2"},
                                .reductions = ReductionSpec{.reductions = {{ReductionKind::kMax}}},
                                .save_histogram = false});
  config.collections[0].schedules[mode_index(Mode::kEval)] = config::Schedule{.save_interval = 3};
  Prepared prepared = make_collections(config);
  const Collection& gradients = *prepared.collections->find("gradients");
  EXPECT_THAT(gradients.include_regex, ElementsAre("^gradient", "^grad2"));
  EXPECT_FALSE(gradients.save_histogram);
  EXPECT_EQ(gradients.schedules[mode_index(Mode::kEval)]->save_interval, 3);
  EXPECT_FALSE(gradients.schedules[mode_index(Mode::kTrain)].has_value());
  EXPECT_TRUE(prepared.collections->included().contains("gradients"));
}

TEST(Collections, ABadPatternIsAnErrorThatNamesItAndItsPlace) {
  struct Case {
    const char* what;
    config::Config config;
    const char* message;
  };
  Case cases[] = {
      {"of the hook", {.include_regex = {"a", "(b"}}, "include_regex: pattern \"(b\""},
      {"of a collection",
       {.collections = {{.name = "mine", .include_regex = {"*"}}}},
       "collection \"mine\", include_regex"},
      {"of a watch", {}, "when_nan: pattern \"[\""},
      {"of a mode in a file",
       {.source = "run.json", .origins = {{"train.when_nan", "line 7"}}},
       "run.json:7: train.when_nan: pattern \"[\""},
      {"of a collection's mode in a file",
       {.collections = {{.name = "mine"}}, .source = "run.json", .origins = {{"mine.eval.when_nan", "line 9"}}},
       "run.json:9: mine.eval.when_nan: pattern \"[\""},
      {"of a collection in a file",
       {.collections = {{.name = "mine", .include_regex = {"*"}}},
        .source = "run.json",
        .origins = {{"mine.include_regex", "line 3"}}},
       "run.json:3: mine.include_regex: pattern \"*\""},
  };
  cases[2].config.schedules[2].when_nan = {"["};
  cases[3].config.schedules[mode_index(Mode::kTrain)].when_nan = {"["};
  cases[4].config.collections.front().schedules[mode_index(Mode::kEval)] = config::Schedule{.when_nan = {"["}};
  for (const Case& c : cases) {
    const auto collections = Collections::make(c.config);
    ASSERT_FALSE(collections) << c.what;
    EXPECT_THAT(collections.error().message, HasSubstr(c.message)) << c.what;
    EXPECT_EQ(collections.error().kind, ErrorKind::kValue) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::plan
