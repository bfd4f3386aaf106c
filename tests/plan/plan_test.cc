#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "plans.h"

namespace tornasole::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Names = std::vector<std::string>;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

ReductionSpec only(std::vector<Reduction> reductions) {
  return {.reductions = std::move(reductions), .save_raw_tensor = false};
}

TEST(Preparation, AnEmptyCustomCollectionIsRefusedByName) {
  // `layers` is built in for TensorFlow alone.
  for (const char* name : {"my_layers", "layers"}) {
    Prepared prepared = make_collections({.framework = Framework::kPytorch});
    prepared.collections->get(name);
    const auto plan = Plan::prepare(prepared.config, prepared.collections.get());
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().kind, ErrorKind::kBadCollection);
    EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(plan.error().message, HasSubstr(name));
    prepared.collections->get(name).tensor_names = {"x"};
    EXPECT_TRUE(Plan::prepare(prepared.config, prepared.collections.get())) << "a name is enough";
  }
}

TEST(Preparation, CompletesCollectionsFromTheHook) {
  config::Config config{.framework = Framework::kPytorch, .reductions = only({{ReductionKind::kMean}})};
  config.schedules[0].save_interval = 20;
  config.schedules[1].save_interval = 4;
  Prepared prepared = make_collections(config);
  Collections& collections = *prepared.collections;
  collections.get("weights").schedules[1] = config::Schedule{.save_interval = 1};
  collections.get("losses").reductions = only({{ReductionKind::kMax}});
  collections.get("biases").reductions = only({{ReductionKind::kMin}});
  prepare(&prepared);
  const Collection& weights = *collections.find("weights");
  EXPECT_EQ(weights.schedules[0]->save_interval, 20);
  EXPECT_EQ(weights.schedules[1]->save_interval, 1);
  EXPECT_EQ(weights.schedules[2]->save_interval, 500);
  EXPECT_EQ(weights.reductions, only({{ReductionKind::kMean}}));
  EXPECT_TRUE(weights.save_histogram);
  EXPECT_EQ(collections.find("biases")->reductions, only({{ReductionKind::kMin}}));
  const Collection& losses = *collections.find("losses");
  EXPECT_EQ(losses.reductions, ReductionSpec{}) << "the scalar set is raw whatever was asked";
  EXPECT_FALSE(losses.save_histogram);
}

TEST(Preparation, XgboostSavesWholeTensorsAndSaysSoOnce) {
  config::Config config{
      .framework = Framework::kXgboost, .reductions = only({{ReductionKind::kMean}}), .save_all = true};
  Prepared prepared = make_plan(config);
  EXPECT_THAT(prepared.plan->warnings(), ElementsAre(HasSubstr("XGBoost")));
  EXPECT_EQ(prepared.collections->find("trees")->reductions, ReductionSpec{});
}

TEST(Preparation, ACollectionThatSavesNothingIsWarnedOf) {
  Prepared prepared =
      make_plan({.framework = Framework::kPytorch, .reductions = only({}), .include_collections = {"weights"}});
  EXPECT_THAT(prepared.plan->warnings(), ElementsAre(HasSubstr("\"weights\" would save nothing")));
}

TEST(Preparation, MoreThanAThousandPatternsAreTooMany) {
  config::Config config{.framework = Framework::kPytorch};
  for (int i = 0; i < 998; ++i) config.include_regex.push_back("p" + std::to_string(i));
  Prepared most = make_plan(config);  // and one of losses, and what the built-in ones exclude
  EXPECT_NE(most.plan, nullptr);
  config.include_regex.push_back("one more");
  Prepared prepared = make_collections(config);
  const auto plan = Plan::prepare(prepared.config, prepared.collections.get());
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("at most 1000"));
}

TEST(Due, FollowsTheScheduleOfTheMode) {
  config::Config config{.framework = Framework::kPytorch, .include_collections = {"weights", "gradients"}};
  config.schedules = {config::Schedule{.save_interval = 10}, config::Schedule{.save_interval = 4},
                      config::Schedule{.save_interval = 8}, config::Schedule{.save_interval = 64}};
  Prepared prepared = make_collections(config);
  prepared.collections->get("losses").schedules[0] = config::Schedule{.save_interval = 3};
  prepare(&prepared);
  struct Case {
    Mode mode;
    std::int64_t step;
    Names due;
    std::int64_t next;  // at or after the step
  };
  const Case cases[] = {
      {Mode::kTrain, 0, {"weights", "gradients", "losses"}, 0},
      {Mode::kTrain, 1, {}, 3},
      {Mode::kTrain, 3, {"losses"}, 3},
      {Mode::kTrain, 10, {"weights", "gradients"}, 10},
      {Mode::kTrain, 28, {}, 30},
      {Mode::kEval, 0, {"weights", "losses"}, 0},
      {Mode::kEval, 5, {}, 8},
      {Mode::kPredict, 8, {"weights", "losses"}, 8},
      {Mode::kGlobal, 64, {"weights", "gradients", "losses"}, 64},
      {Mode::kGlobal, 65, {}, 128},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(due_names(*prepared.plan, prepared.plan->due(c.mode, c.step)), c.due) << mode_name(c.mode) << c.step;
    EXPECT_EQ(prepared.plan->next_due_step(c.mode, c.step), c.next) << mode_name(c.mode) << c.step;
  }
}

TEST(Due, NothingIsEverDueWhenAllIsSwitchedOff) {
  config::Config config{.framework = Framework::kPytorch};
  for (config::Schedule& schedule : config.schedules) schedule.end_step = 0;
  Prepared prepared = make_plan(config);
  EXPECT_EQ(prepared.plan->next_due_step(Mode::kTrain, 0), kNever);
  EXPECT_FALSE(any(prepared.plan->due(Mode::kTrain, 0)));
}

TEST(Due, AGradientOutsideTrainingIsSavedThroughAnotherCollectionOnly) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_collections = {"gradients"};
  config.include_regex = {"conv"};
  Prepared prepared = make_plan(config);
  Plan& plan = *prepared.plan;
  const NameId conv = plan.name_id("gradient/conv");
  const NameId fc = plan.name_id("gradient/fc");
  EXPECT_TRUE(plan.order(conv, plan.due(Mode::kEval, 0)).is_wanted);
  EXPECT_FALSE(plan.order(fc, plan.due(Mode::kEval, 0)).is_wanted);
  EXPECT_FALSE(plan.order(fc, plan.due(Mode::kPredict, 0)).is_wanted);
  EXPECT_TRUE(plan.order(fc, plan.due(Mode::kTrain, 0)).is_wanted);
  EXPECT_TRUE(plan.order(fc, plan.due(Mode::kGlobal, 0)).is_wanted);
}

// Collections a, b, z and the built-in ones, all holding "t"; `losses` holds "t" too.
Prepared several(std::optional<std::string> tensorboard) {
  config::Config config = every_step(Framework::kPytorch);
  config.tensorboard_dir = std::move(tensorboard);
  config.include_collections = {"z", "b", "a", "all"};
  Prepared prepared = make_collections(config);
  Collections& collections = *prepared.collections;
  for (const char* name : {"z", "b", "a"}) collections.get(name).tensor_names = {"t", "u"};
  collections.get("losses").tensor_names = {"t", "only_loss"};
  collections.get("z").reductions = only({{ReductionKind::kMax}, {ReductionKind::kMean}});
  collections.get("b").reductions = only({{ReductionKind::kMean}, {ReductionKind::kMean, true}});
  collections.get("a").reductions = only({});
  collections.get("a").reductions->save_shape = true;
  collections.get("all").reductions = only({});
  prepare(&prepared);
  return prepared;
}

CollectionBits bits_of(const Plan& plan, const Names& names) {
  CollectionBits bits(1);
  for (std::size_t i = 0; i < plan.saved().size(); ++i) {
    if (std::ranges::find(names, plan.saved()[i]->name) != names.end()) bits[0] |= std::uint64_t{1} << i;
  }
  return bits;
}

TEST(Order, CombinesTheDueCollectionsOfATensor) {
  Prepared prepared = several("tb");
  Plan& plan = *prepared.plan;
  const NameId t = plan.name_id("t");
  struct Case {
    const char* what;
    Names due;
    SaveOrder order;  // collections aside
  };
  const Reduction max{ReductionKind::kMax};
  const Reduction mean{ReductionKind::kMean};
  const Reduction abs_mean{ReductionKind::kMean, true};
  const Case cases[] = {
      {"nothing due", {}, {}},
      {"due elsewhere only", {"weights"}, {}},
      {"one collection's reductions",
       {"z"},
       {.is_wanted = true, .reductions = {max, mean}, .histogram_collection = "z"}},
      {"the union of two, each once",
       {"b", "z"},
       {.is_wanted = true, .reductions = {max, mean, abs_mean}, .histogram_collection = "b"}},
      {"a shape", {"a"}, {.is_wanted = true, .save_shape = true, .histogram_collection = "a"}},
      {"no shape beside the raw value",
       {"a", "losses"},
       {.is_wanted = true, .save_raw = true, .histogram_collection = "a", .is_scalar = true, .is_metric = true}},
      {"the scalar set alone has neither reductions nor histogram",
       {"losses"},
       {.is_wanted = true, .save_raw = true, .is_scalar = true, .is_metric = true}},
      {"all comes last for the histogram",
       {"all", "z"},
       {.is_wanted = true, .reductions = {max, mean}, .histogram_collection = "z"}},
      {"all alone gives the histogram its name", {"all"}, {.is_wanted = true, .histogram_collection = "all"}},
  };
  for (const Case& c : cases) {
    const SaveOrder& order = plan.order(t, bits_of(plan, c.due));
    EXPECT_EQ(order.is_wanted, c.order.is_wanted) << c.what;
    EXPECT_EQ(order.save_raw, c.order.save_raw) << c.what;
    EXPECT_EQ(order.save_shape, c.order.save_shape) << c.what;
    EXPECT_EQ(order.reductions, c.order.reductions) << c.what;
    EXPECT_EQ(order.histogram_collection, c.order.histogram_collection) << c.what;
    EXPECT_EQ(order.is_scalar, c.order.is_scalar) << c.what;
    EXPECT_EQ(order.is_metric, c.order.is_metric) << c.what;
  }
}

TEST(Order, WithoutTensorboardAHistogramIsNoReasonToWantATensor) {
  Prepared prepared = several(std::nullopt);
  Plan& plan = *prepared.plan;
  EXPECT_FALSE(plan.order(plan.name_id("t"), bits_of(plan, {"all"})).is_wanted);
  EXPECT_TRUE(plan.order(plan.name_id("t"), bits_of(plan, {"z"})).is_wanted);
}

TEST(Order, ACollectionWithoutHistogramsLeavesThemToTheNext) {
  Prepared prepared = several("tb");
  prepared.collections->get("a").save_histogram = false;
  prepared.collections->get("b").save_histogram = false;
  prepare(&prepared);
  Plan& plan = *prepared.plan;
  EXPECT_EQ(plan.order(plan.name_id("u"), bits_of(plan, {"a", "b", "z", "all"})).histogram_collection, "z");
}

TEST(Order, ListsTheCollectionsInCreationOrder) {
  Prepared prepared = several("tb");
  EXPECT_THAT(members(prepared.plan.get(), "t"), ElementsAre("all", "losses", "z", "b", "a"));
}

TEST(Order, AgreesWithASlowComputationForManyCollections) {
  std::mt19937 random(11);
  config::Config config = every_step(Framework::kPytorch);
  for (int i = 0; i < 150; ++i) config.include_collections.push_back("c" + std::to_string(i));
  Prepared prepared = make_collections(config);
  for (int i = 0; i < 150; ++i) {
    prepared.collections->get("c" + std::to_string(i)).include_regex = {"/" + std::to_string(i) + "/"};
  }
  prepare(&prepared);
  Plan& plan = *prepared.plan;
  for (int round = 0; round < 300; ++round) {
    std::string name = "/";
    std::set<int> in;
    for (int k = 0; k < 5; ++k) {
      const int collection = static_cast<int>(random() % 150);
      in.insert(collection);
      name += std::to_string(collection) + "/";
    }
    CollectionBits due(3);
    for (std::uint64_t& word : due) word = (std::uint64_t{random()} << 32) | random();
    std::vector<int> expected;
    for (std::size_t i = 0; i < plan.saved().size(); ++i) {
      const bool is_due = ((due[i / 64] >> (i % 64)) & 1) != 0;
      const std::string& collection = plan.saved()[i]->name;
      if (is_due && collection != "losses" && in.contains(std::stoi(collection.substr(1)))) {
        expected.push_back(static_cast<int>(i));
      }
    }
    EXPECT_EQ(plan.order(plan.name_id(name), due).collections, expected) << name;
  }
}

TEST(Membership, ExplicitNamesCountDespiteExclusion) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_collections = {"c"};
  Prepared prepared = make_collections(config);
  Collection& c = prepared.collections->get("c");
  c.include_regex = {"^a", "^b"};
  c.exclude_regex = {"z$"};
  c.tensor_names = {"bz", "other"};
  prepare(&prepared);
  Plan* plan = prepared.plan.get();
  EXPECT_THAT(members(plan, "a1"), ElementsAre("c"));
  EXPECT_THAT(members(plan, "b1"), ElementsAre("c"));
  EXPECT_THAT(members(plan, "az"), IsEmpty());
  EXPECT_THAT(members(plan, "bz"), ElementsAre("c"));
  EXPECT_THAT(members(plan, "other"), ElementsAre("c"));
  EXPECT_THAT(members(plan, "otherwise"), IsEmpty());
  plan->publish_names();
  EXPECT_THAT(c.all_names(), ElementsAre("a1", "b1", "bz", "other"));
}

TEST(Membership, CollectionsThatAreNotSavedCollectNothing) {
  Prepared prepared = make_plan(every_step(Framework::kPytorch));
  EXPECT_THAT(members(prepared.plan.get(), "fc.weight"), IsEmpty());
  prepared.plan->publish_names();
  EXPECT_THAT(prepared.collections->find("weights")->all_names(), IsEmpty());
}

TEST(Names, KeepTheirIdsAndTexts) {
  Prepared prepared = make_plan(every_step(Framework::kPytorch));
  Plan& plan = *prepared.plan;
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(plan.name_id("n" + std::to_string(i)).value, static_cast<std::uint32_t>(i));
  EXPECT_EQ(plan.name_id("").value, 3000U);
  EXPECT_EQ(plan.name_id(std::string(100000, 'x')).value, 3001U);
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "n" + std::to_string(i);
    EXPECT_EQ(plan.name_id(name).value, static_cast<std::uint32_t>(i));
    EXPECT_EQ(plan.name({static_cast<std::uint32_t>(i)}), name);
  }
  EXPECT_EQ(plan.name_count(), 3002U);
}

TEST(NewPlan, TakesEffectOnKnownNamesAndKeepsTheirIds) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_collections = {"weights", "c"};
  Prepared prepared = make_collections(config);
  prepared.collections->get("c").include_regex = {"conv"};
  prepare(&prepared);
  const NameId fc = prepared.plan->name_id("fc.weight");
  const NameId conv = prepared.plan->name_id("conv.weight");
  EXPECT_THAT(members(prepared.plan.get(), "conv.weight"), ElementsAre("weights", "c"));
  prepared.plan->publish_names();
  prepared.collections->get("c").include_regex = {"fc"};
  prepared.collections->get("c").tensor_names.emplace("by hand");
  prepared.collections->get("weights").exclude_regex.emplace_back("conv");
  prepare(&prepared);
  EXPECT_EQ(prepared.plan->name_id("fc.weight"), fc);
  EXPECT_EQ(prepared.plan->name_id("conv.weight"), conv);
  EXPECT_THAT(members(prepared.plan.get(), "fc.weight"), ElementsAre("weights", "c"));
  EXPECT_THAT(members(prepared.plan.get(), "conv.weight"), IsEmpty());
  prepared.plan->publish_names();
  EXPECT_THAT(prepared.collections->find("c")->all_names(), ElementsAre("by hand", "fc.weight"));
  EXPECT_THAT(prepared.collections->find("weights")->all_names(), ElementsAre("fc.weight"));
}

TEST(NewPlan, AnErrorLeavesTheOldOneWorking) {
  Prepared prepared = make_plan(every_step(Framework::kPytorch));
  prepared.plan->name_id("aLoss_output_0");
  prepared.plan->publish_names();
  prepared.collections->get("empty");
  EXPECT_FALSE(Plan::prepare(prepared.config, prepared.collections.get(), prepared.plan.get()));
  EXPECT_THAT(members(prepared.plan.get(), "aLoss_output_0"), ElementsAre("losses"));
  EXPECT_THAT(members(prepared.plan.get(), "bLoss_output_0"), ElementsAre("losses"));
  EXPECT_THAT(prepared.collections->find("losses")->all_names(), ElementsAre("aLoss_output_0"));
}

TEST(SaveTensor, AddsTheNameAndTheCollectionsItNeeds) {
  Prepared prepared = make_plan(every_step(Framework::kPytorch));
  Plan& plan = *prepared.plan;
  const NameId id = plan.name_id("x");
  EXPECT_FALSE(plan.order(id, plan.due(Mode::kTrain, 0)).is_wanted);
  const std::string_view names[] = {"default", "brand_new"};
  plan.add_to_collections(id, names);
  EXPECT_THAT(saved_names(plan), ElementsAre("losses", "default", "brand_new"));
  EXPECT_TRUE(plan.order(id, plan.due(Mode::kTrain, 0)).save_raw);
  EXPECT_THAT(members(&plan, "x"), ElementsAre("default", "brand_new"));
  EXPECT_THAT(members(&plan, "y"), IsEmpty());
  prepare(&prepared);
  EXPECT_THAT(members(prepared.plan.get(), "x"), ElementsAre("default", "brand_new"));
}

TEST(SaveTensor, ManyNewCollectionsKeepTheMembershipsOfOthers) {
  Prepared prepared = make_plan(every_step(Framework::kPytorch));
  Plan& plan = *prepared.plan;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "c" + std::to_string(i);
    const std::string_view names[] = {name};
    plan.add_to_collections(plan.name_id("t" + std::to_string(i)), names);
    EXPECT_THAT(members(&plan, "t" + std::to_string(i)), ElementsAre(name));
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(members(&plan, "t" + std::to_string(i)), ElementsAre("c" + std::to_string(i)));
  }
}

TEST(WhenNan, WatchesWhileACollectionIsNotDue) {
  config::Config config{.framework = Framework::kPytorch, .include_collections = {"weights", "gradients"}};
  for (config::Schedule& schedule : config.schedules) schedule = {.save_interval = 10, .when_nan = {"loss", "^nan"}};
  Prepared prepared = make_collections(config);
  prepared.collections->get("losses").schedules[0] = config::Schedule{.save_interval = 10};
  prepared.collections->get("weights").schedules[0] = config::Schedule{.end_step = 0, .when_nan = {"other"}};
  prepare(&prepared);
  Plan& plan = *prepared.plan;
  EXPECT_TRUE(plan.has_watch(Mode::kTrain));
  EXPECT_EQ(due_names(plan, plan.watching(Mode::kTrain, 1)), (Names{"weights", "gradients"}));
  EXPECT_EQ(due_names(plan, plan.watching(Mode::kTrain, 10)), (Names{"weights"})) << "gradients are due";
  EXPECT_EQ(due_names(plan, plan.watching(Mode::kEval, 1)), (Names{"weights", "losses"})) << "no gradients in EVAL";
  const CollectionBits train = plan.watching(Mode::kTrain, 1);
  const auto watched_by = [&](const char* name) {
    return due_names(plan, plan.watched_by(plan.name_id(name), Mode::kTrain, train));
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(watched_by("my_loss"), (Names{"gradients"}));
    EXPECT_EQ(watched_by("nan"), (Names{"gradients"}));
    EXPECT_EQ(watched_by("other_loss"), (Names{"weights", "gradients"}));
    EXPECT_EQ(watched_by("fc.weight"), Names{});
  }
  ASSERT_NE(prepared.collections->find("when_nan"), nullptr);
  plan.publish_names();
  EXPECT_THAT(prepared.collections->find("when_nan")->all_names(), ElementsAre("my_loss", "nan", "other_loss"));
}

TEST(WhenNan, NobodyWatchesUnlessAsked) {
  Prepared prepared = make_plan(every_step(Framework::kPytorch));
  EXPECT_FALSE(prepared.plan->has_watch(Mode::kTrain));
  EXPECT_FALSE(any(prepared.plan->watching(Mode::kTrain, 1)));
  EXPECT_EQ(prepared.collections->find("when_nan"), nullptr);
}

TEST(Limits, APatternGivenUpIsReportedOnceWithTheFirstName) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_regex = {"(a+)+$"};
  Prepared prepared = make_plan(config);
  EXPECT_THAT(members(prepared.plan.get(), std::string(40, 'a') + "!"), IsEmpty());
  EXPECT_THAT(members(prepared.plan.get(), std::string(41, 'a') + "!"), IsEmpty());
  EXPECT_THAT(prepared.plan->take_limit_reports(), ElementsAre(HasSubstr("(a+)+$")));
  EXPECT_THAT(prepared.plan->take_limit_reports(), IsEmpty());
}

TEST(CoverageReport, NamesPatternsThatMatchedNothingAndWhatTheyMayHaveMeant) {
  config::Config config = every_step(Framework::kPytorch);
  config.include_regex = {"conv", "RELU_out", "dence", "zzzzzz", "fc.*bias$"};
  Prepared prepared = make_plan(config);
  for (const char* name : {"conv1", "conv2", "relu_output_0", "dense_1", "dense_2", "dense_3", "dense_4", "fc1"}) {
    prepared.plan->name_id(name);
  }
  const auto coverage = prepared.plan->coverage();
  ASSERT_THAT(coverage, SizeIs(2));
  EXPECT_EQ(coverage[0].collection, "default");
  EXPECT_EQ(coverage[0].matched_names, 2);
  EXPECT_THAT(coverage[0].unmatched_patterns, ElementsAre("RELU_out", "dence", "zzzzzz", "fc.*bias$"));
  EXPECT_THAT(coverage[0].near_misses, ElementsAre("relu_output_0", "dense_1", "dense_2", "dense_3"));
  EXPECT_EQ(coverage[1].collection, "losses");
  EXPECT_EQ(coverage[1].matched_names, 0);
  EXPECT_THAT(coverage[1].unmatched_patterns, SizeIs(1));
}

}  // namespace
}  // namespace tornasole::plan
