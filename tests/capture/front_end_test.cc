// What a front end asks of a hook: collections as data, the options in effect, a rank that is known late.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "capture/hook_fixture.h"
#include "store/open_store.h"
#include "tornasole/front_end.h"
#include "tornasole/step_writer.h"

namespace tornasole::capture {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const std::vector<double> kValue = {1, 2};

class FrontEnd : public HookFixture {};

TEST_F(FrontEnd, ACollectionIsMadeWhatItsDescriptionSays) {
  Hook hook = open({.include_collections = {"mine"}, .framework = Framework::kPytorch});
  const CollectionConfig config{.name = "mine",
                                .include_regex = {"relu"},
                                .exclude_regex = {"2"},
                                .tensor_names = {"by_hand"},
                                .reduction_config = ReductionConfig{.norms = {"l2"}},
                                .save_config = SaveConfig{.modes = {{Mode::kTrain, {.save_interval = 2}}}},
                                .save_histogram = false};
  ASSERT_TRUE(hook.set_collection(config));
  const auto told = hook.collection_config("mine");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->include_regex, config.include_regex);
  EXPECT_EQ(told->tensor_names, config.tensor_names);
  EXPECT_EQ(told->reduction_config, config.reduction_config);
  EXPECT_EQ(told->save_config->modes.size(), 1U) << "modes that were not named stay unset until the first step";
  hook.begin_step(Mode::kTrain).save("relu1", kValue);
  hook.begin_step(Mode::kTrain).save("relu1", kValue);
  EXPECT_EQ(hook.collection_config("mine")->save_config->modes.size(), 4U);
  EXPECT_THAT(hook.tensor_names("mine"), ElementsAre("by_hand", "relu1"));
  EXPECT_THAT(hook.collection_config("mine")->tensor_names, ElementsAre("by_hand"))
      << "matched names are not given ones";
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(0), ElementsAre("smdebug/reductions/l2/relu1"));
  EXPECT_THAT(names_at(1), IsEmpty());
}

TEST_F(FrontEnd, StepsOfWhichNothingIsDueAreKnownInAdvance) {
  Hook hook = open({.save_config = {.save_interval = 10}, .include_collections = {"mine"}});
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"a"}}));
  EXPECT_EQ(idle_steps(hook), 0) << "before the first step";
  std::optional<StepScope> step(hook.begin_step(Mode::kTrain));
  EXPECT_EQ(idle_steps(hook), 0) << "it is due";
  for (std::int64_t number = 1; number < 25; ++number) {
    step.emplace(hook.begin_step(Mode::kTrain));
    const std::int64_t expected = number % 10 == 0 ? 0 : std::max<std::int64_t>(0, 8 - number % 10);
    EXPECT_EQ(idle_steps(hook), expected) << number;
  }
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"b"}}));
  EXPECT_EQ(idle_steps(hook), 0) << "there is another plan to be made";
  step.emplace(hook.begin_step(Mode::kTrain));
  EXPECT_EQ(idle_steps(hook), 3);
  hook.save_tensor("later", kValue);
  EXPECT_EQ(idle_steps(hook), 0) << "a collection was created for it";
  step.reset();
  EXPECT_EQ(idle_steps(hook), 0) << "no step is open";
}

TEST_F(FrontEnd, AStepThatIsRepeatedIsLikeOneThatWasBegun) {
  Hook hook = open({.save_config = {.save_interval = 1, .end_step = 8}, .include_collections = {"mine"}});
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"a"}}));
  StepScope step = hook.begin_step(Mode::kTrain);
  EXPECT_FALSE(repeat_step(hook, step, {})) << "nothing was saved in it";
  step.save("a", kValue);
  hook.save_scalar("rate", 1);
  EXPECT_FALSE(repeat_step(hook, step, {})) << "the first step has more to tell";
  step.end();
  EXPECT_FALSE(repeat_step(hook, step, {})) << "it has ended";
  StepScope second = hook.begin_step(Mode::kTrain);
  const std::uint64_t due_set = second.due_set();
  hook.set_facts({.optimizer_step = 1});
  second.save("a", kValue);
  hook.save_scalar("rate", 0.5);
  for (std::int64_t number = 2; number < 7; ++number) {
    ASSERT_TRUE(repeat_step(hook, second, {.optimizer_step = number})) << number;
    EXPECT_EQ(second.number(), number);
    EXPECT_EQ(second.global_step(), number);
    EXPECT_EQ(second.due_set(), due_set);
    second.save("a", kValue);
  }
  EXPECT_FALSE(repeat_step(hook, second, {})) << "the step after the next wants something else";
  second.end();
  hook.begin_step(Mode::kTrain).save("a", kValue);
  EXPECT_FALSE(hook.begin_step(Mode::kTrain).anything_due()) << "the schedule has ended";
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(1), UnorderedElementsAre("a", "scalar/rate"));
  for (std::int64_t number = 2; number < 8; ++number) EXPECT_THAT(names_at(number), ElementsAre("a")) << number;
  EXPECT_THAT(names_at(8), IsEmpty());
  EXPECT_EQ(hook.report().committed_steps, 8);
  const auto steps = read_steps(*store_);
  for (std::int64_t number = 1; number < 7; ++number) {
    EXPECT_EQ(steps.at(number).index.optimizer_step, number) << "facts are of their own step";
  }
}

TEST_F(FrontEnd, WhatIsToBeDoneBetweenTwoStepsKeepsThemFromBeingRepeated) {
  Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"mine"}});
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"a"}}));
  std::optional<StepScope> step(hook.begin_step(Mode::kTrain));
  const auto next = [&] {
    step->save("a", kValue);
    step.reset();
    step.emplace(hook.begin_step(Mode::kTrain));
    step->save("a", kValue);
  };
  next();
  EXPECT_TRUE(repeat_step(hook, *step, {}));
  next();
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"a", "b"}}));
  EXPECT_FALSE(repeat_step(hook, *step, {})) << "another plan is to be made";
  next();
  hook.set_mode(Mode::kEval);
  EXPECT_FALSE(repeat_step(hook, *step, {})) << "the next step is of another mode";
  next();
  hook.save_tensor("later", kValue, std::vector<std::string_view>{"theirs"});
  EXPECT_FALSE(repeat_step(hook, *step, {})) << "a collection was created in it";
  next();
  const std::vector<std::string_view> more = {"mine"};
  step->make_due(more);
  EXPECT_FALSE(repeat_step(hook, *step, {})) << "more is due than its schedule says";
  next();
  renew_store();
  Hook other = open({});
  EXPECT_FALSE(repeat_step(other, *step, {})) << "it is a step of another hook";
}

TEST_F(FrontEnd, StepsThatSomebodyListensToAreAllTold) {
  Hook hook = open({.save_config = {.save_interval = 10}, .flight_recorder_steps = 4});
  hook.begin_step(Mode::kTrain).end();
  const StepScope step = hook.begin_step(Mode::kTrain);
  EXPECT_EQ(idle_steps(hook), 0) << "a recorder takes every step";
}

TEST_F(FrontEnd, WhatNobodyWantsIsKnownOnceItWasOffered) {
  Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"mine"}});
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"loss_input_1|loss_output_0"}}));
  ModuleName loss("loss");
  EXPECT_FALSE(skip_input(hook, loss)) << "before the first step";
  const auto offer = [&](const StepScope& step) {  // four inputs; which of them were skipped
    std::vector<int> skipped;
    for (int i = 0; i < 4; ++i) {
      if (skip_input(hook, loss)) {
        skipped.push_back(i);
      } else {
        step.save_input(loss, kValue);
      }
    }
    EXPECT_FALSE(skip_output(hook, loss)) << "it is wanted";
    step.save_output(loss, kValue);
    return skipped;
  };
  EXPECT_THAT(offer(hook.begin_step(Mode::kTrain)), IsEmpty()) << "nothing is known of them yet";
  EXPECT_THAT(offer(hook.begin_step(Mode::kTrain)), ElementsAre(0, 2, 3));
  EXPECT_THAT(offer(hook.begin_step(Mode::kEval)), ElementsAre(0, 2, 3));
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"loss_input_3|loss_output_0"}}));
  EXPECT_THAT(offer(hook.begin_step(Mode::kTrain)), ElementsAre(0, 1, 2));
  {
    const StepScope step = hook.begin_step(Mode::kTrain);
    EXPECT_TRUE(skip_input(hook, loss));
    const std::vector<std::string_view> collections = {"mine"};
    hook.save_tensor("loss_input_2", kValue, collections);
    EXPECT_TRUE(skip_input(hook, loss));
    EXPECT_FALSE(skip_input(hook, loss)) << "it belongs to a collection by now";
  }
  EXPECT_FALSE(skip_input(hook, loss)) << "no step is open";
  ASSERT_TRUE(hook.close());
  for (std::int64_t step = 0; step < 3; ++step)
    EXPECT_THAT(names_at(step), ElementsAre("loss_input_1", "loss_output_0"));
  EXPECT_THAT(names_at(3), ElementsAre("loss_input_3", "loss_output_0"));
}

TEST_F(FrontEnd, ADescriptionThatIsNotAllowedChangesNothing) {
  Hook hook = open({});
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"a"}}));
  const Status bad = hook.set_collection({.name = "mine", .include_regex = {"("}});
  EXPECT_EQ(bad.error().kind, ErrorKind::kValue);
  EXPECT_FALSE(hook.set_collection({.name = ""}));
  EXPECT_THAT(hook.collection_config("mine")->include_regex, ElementsAre("a"));
  EXPECT_EQ(hook.collection_config("nowhere").error().code, ErrorCode::kNotFound);
}

TEST_F(FrontEnd, APatternTakenBackTakesItsNamesAlongAndGivenOnesStay) {
  Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"mine"}});
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"relu"}}));
  hook.begin_step().save("relu1", kValue);
  ASSERT_TRUE(hook.set_collection({.name = "mine", .include_regex = {"conv"}, .tensor_names = {"relu1"}}));
  hook.begin_step().save("relu2", kValue);
  EXPECT_THAT(hook.tensor_names("mine"), ElementsAre("relu1"));
}

TEST_F(FrontEnd, ResettingIsForTheTimeBeforeTheFirstStep) {
  Hook hook = open({.include_collections = {"mine"}, .framework = Framework::kPytorch});
  hook.collection("mine");
  ASSERT_TRUE(hook.collection("weights").include("x"));
  ASSERT_TRUE(hook.reset_collections());
  EXPECT_THAT(hook.collection_names(), ElementsAre("all", "default", "weights", "biases", "gradients", "losses"));
  EXPECT_EQ(hook.collection_config("weights")->include_regex.size(), 1U);
  hook.begin_step().end();
  EXPECT_EQ(hook.reset_collections().error().kind, ErrorKind::kRuntime);
}

TEST_F(FrontEnd, WhatIsSavedAndWhatIsDueCanBeAsked) {
  Hook hook = open(
      {.save_config = {.save_interval = 2}, .include_collections = {"gradients"}, .framework = Framework::kPytorch});
  EXPECT_FALSE(hook.should_save("gradient/w", "losses")) << "nothing before the first step";
  hook.begin_step(Mode::kTrain).end();
  EXPECT_THAT(hook.saved_collections(), UnorderedElementsAre("gradients", "losses"));
  EXPECT_THAT(hook.due_collections(), UnorderedElementsAre("gradients", "losses"));
  EXPECT_TRUE(hook.should_save("dense/kernel:0", "gradients"));
  EXPECT_TRUE(hook.should_save("Loss_output_0", "weights")) << "another collection that is due takes it";
  EXPECT_FALSE(hook.should_save("relu", "losses"));
  hook.begin_step(Mode::kEval).end();
  EXPECT_THAT(hook.due_collections(), ElementsAre("losses")) << "no gradients in evaluation";
  hook.begin_step(Mode::kTrain).end();
  EXPECT_THAT(hook.due_collections(), IsEmpty());
}

TEST_F(FrontEnd, ChangedDefaultsAreThoseOfCollectionsPreparedLater) {
  Hook hook = open({.include_collections = {"weights"}, .framework = Framework::kPytorch});
  ASSERT_TRUE(hook.set_save_config({.save_interval = 1}));
  ASSERT_TRUE(hook.set_reduction_config({.reductions = {"min"}}));
  hook.include_collection("biases");
  EXPECT_FALSE(hook.set_save_config({.save_interval = 0}));
  hook.begin_step().save("fc.weight", kValue);
  hook.begin_step().save("fc.bias", kValue);
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(0), ElementsAre("smdebug/reductions/min/fc.weight"));
  EXPECT_THAT(names_at(1), ElementsAre("smdebug/reductions/min/fc.bias"));
}

TEST_F(FrontEnd, TheOptionsInEffectAreComplete) {
  Hook hook =
      open({.include_regex = {"relu"}, .framework = Framework::kPytorch, .fsync = "3s", .queue_bytes = 1 << 20});
  const HookOptions options = hook.options();
  EXPECT_EQ(options.save_config.modes.at(Mode::kEval).save_interval, 500);
  EXPECT_TRUE(options.reduction_config->save_raw_tensor);
  EXPECT_THAT(options.include_collections, UnorderedElementsAre("default", "losses"));
  EXPECT_EQ(options.fsync, "3s");
  EXPECT_EQ(options.queue_bytes, 1 << 20);
  EXPECT_EQ(options.worker, "worker_0");
  EXPECT_EQ(hook.training_run(), 0);
}

TEST_F(FrontEnd, ARankThatIsKnownLateNamesTheWorker) {
  Hook hook = open({.save_all = true});
  ASSERT_TRUE(hook.set_worker(0, 1));
  EXPECT_EQ(hook.set_worker(2, 2).error().kind, ErrorKind::kValue);
  ASSERT_TRUE(hook.set_worker(1, 2));
  EXPECT_EQ(hook.worker(), "worker_1");
  hook.begin_step().save("x", kValue);
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(0), IsEmpty()) << "only the chief writes";
}

TEST_F(FrontEnd, WhatWasQueuedBeforeTheRankWasKnownIsWritten) {
  Hook hook = open({.save_all = true});
  hook.save_scalar("early", 1);
  ASSERT_TRUE(hook.set_worker(0, 2));
  hook.begin_step().save("x", kValue);
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(0), UnorderedElementsAre("scalar/early", "x"));
}

TEST_F(FrontEnd, ARankMayTurnOutToBeTheChiefsButNotAfterAWrite) {
  Hook hook = open({.save_all = true, .rank = 1, .world_size = 2});
  ASSERT_TRUE(hook.set_worker(0, 2));
  hook.begin_step().save("x", kValue);
  const Status late = hook.set_worker(1, 2);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::kRuntime);
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(0), ElementsAre("x"));
}

TEST_F(FrontEnd, AnInterruptedStepIsMarkedPartial) {
  Hook hook = open({.save_all = true});
  StepScope step = hook.begin_step();
  step.save("x", kValue);
  step.end_partial();
  ASSERT_TRUE(hook.close());
  EXPECT_TRUE(read_steps(*store_).at(0).index.is_partial);
}

TEST_F(FrontEnd, StrictFailuresCanBeKeptForTheFrontEnd) {
  ASSERT_EQ(setenv("TORNASOLE_STRICT", "1", 1), 0);
  EXPECT_TRUE(is_strict());
  Hook hook = open({.abort_if_strict = false});
  EXPECT_FALSE(hook.first_error());
  hook.begin_step(Mode::kGlobal, GlobalStep{-4}).end();
  ASSERT_EQ(unsetenv("TORNASOLE_STRICT"), 0);
  ASSERT_TRUE(hook.first_error());
  EXPECT_THAT(hook.first_error()->message, HasSubstr("-4"));
}

TEST(WithoutAHook, CollectionsSchedulesAndPatterns) {
  EXPECT_EQ(collections_of(Framework::kPytorch).size(), 6U);
  EXPECT_THAT(saved_collections_of(Framework::kXgboost), ElementsAre("metrics"));
  EXPECT_THAT(new_collection(Framework::kPytorch, "mine").include_regex, IsEmpty());
  EXPECT_THAT(new_collection(Framework::kPytorch, "optimizer_variables").include_regex, Contains("^optimizer_state/"));
  EXPECT_TRUE(should_save_step({.save_interval = 4, .end_step = 10, .save_steps = {{600, 3}}}, 3));
  EXPECT_FALSE(should_save_step({.save_interval = 4, .end_step = 10}, 12));
  EXPECT_FALSE(should_save_step({.end_step = 0, .save_steps = {{5}}}, 5));
  EXPECT_TRUE(*finds_match("rel*", "my_relu"));
  EXPECT_FALSE(*finds_match("^relu", "my_relu"));
  EXPECT_FALSE(finds_match("(", "x"));
}

TEST(WithoutAHook, WhatAConfigurationFileSays) {
  const auto file = parse_config_file(
      R"({"LocalPath": "/runs/a", "HookParameters": {"save_interval": "7", "reductions": "min"},
          "CollectionConfigurations": [{"CollectionName": "acts", "CollectionParameters":
              {"include_regex": "relu,tanh", "eval.save_interval": 2, "save_histogram": "false"}}]})",
      "a.json", Framework::kPytorch);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->options.out_dir, "/runs/a");
  EXPECT_EQ(file->options.save_config.modes.at(Mode::kTrain).save_interval, 7);
  EXPECT_THAT(file->options.include_collections, UnorderedElementsAre("acts", "losses"));
  ASSERT_EQ(file->collections.size(), 1U);
  EXPECT_THAT(file->collections[0].include_regex, ElementsAre("relu", "tanh"));
  EXPECT_EQ(file->collections[0].save_config->modes.at(Mode::kEval).save_interval, 2);
  EXPECT_FALSE(file->collections[0].save_histogram);
  EXPECT_THAT(parse_config_file("{]", "b.json").error().message, HasSubstr("b.json"));
}

TEST_F(FrontEnd, CollectionsCanBeMadeDueWhateverTheirSchedules) {
  Hook hook = open({.save_config = {.save_interval = 10}, .framework = Framework::kTensorflow});
  ASSERT_TRUE(hook.set_collection(
      {.name = "sm_metrics", .save_config = SaveConfig{.modes = {{Mode::kTrain, {.end_step = 0}}}}}));
  const std::vector<std::string_view> losses = {"losses"};
  const std::vector<std::string_view> others = {"sm_metrics", "weights", "nowhere"};
  hook.begin_step(Mode::kTrain).end();
  {
    StepScope step = hook.begin_step(Mode::kTrain);
    EXPECT_FALSE(step.anything_due());
    step.make_due(others);
    EXPECT_FALSE(step.anything_due()) << "switched off, not saved, not there";
    step.make_due(losses);
    EXPECT_TRUE(step.anything_due());
    hook.save_tensor("loss", kValue, {"losses"});
    hook.save_tensor("accuracy", kValue, {"metrics"});
  }
  {
    StepScope step = hook.begin_step(Mode::kTrain);
    EXPECT_FALSE(step.anything_due()) << "of one step alone";
    step.end();
    step.make_due(losses);
    EXPECT_FALSE(step.anything_due()) << "the step has ended";
  }
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(1), ElementsAre("loss"));
}

TEST_F(FrontEnd, AnEnteredTapeTellsItsTensorsByName) {
  Hook hook = open({.include_collections = {"weights", "gradients"}, .framework = Framework::kTensorflow});
  ASSERT_TRUE(hook.prepare());
  hook.enter_tape();
  {
    StepScope step = hook.begin_step(Mode::kTrain);
    for (const char* name :
         {"weights/dense/kernel:0", "weights/dense/bias:0", "gradients/dense/kernelGrad", "my_loss"}) {
      step.save(name, kValue);
    }
  }
  ASSERT_TRUE(hook.close());
  EXPECT_THAT(names_at(0), UnorderedElementsAre("weights/dense/kernel:0", "gradients/dense/kernelGrad", "my_loss"));
}

Status write_by_hand(const std::string& directory, double value, bool replace) {
  auto step =
      StepWriter::open({.trial_dir = directory, .step = {7}, .mode = Mode::kTrain, .mode_step = 3, .replace = replace});
  EXPECT_TRUE(step) << step.error().message;
  EXPECT_THAT(step->path(), HasSubstr("000000000007_worker_0.tfevents"));
  EXPECT_TRUE(step->write("x", TensorView::of(std::vector<double>{value})));
  EXPECT_TRUE(step->write_shape("seen", Shape{2, 3}));
  return step->close();
}

std::vector<double> read_by_hand(const std::string& directory) {
  const auto store = store::open_store(directory, {});
  EXPECT_TRUE(store) << store.error().message;
  const auto steps = read_steps(**store);
  if (!steps.contains(7) || !steps.at(7).values.contains("x")) return {};
  return values_of<double>(steps.at(7).values.at("x"));
}

TEST(StepWriterTest, AStepWrittenByHandCanBeReadAndIsReplacedOnRequest) {
  const std::string directory = ::testing::TempDir() + "step_writer_test";
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(write_by_hand(directory, 1, /*replace=*/false));
  EXPECT_FALSE(write_by_hand(directory, 2, /*replace=*/false));
  EXPECT_EQ(read_by_hand(directory), std::vector<double>{1}) << "what is not replaced is still there";
  EXPECT_TRUE(write_by_hand(directory, 3, /*replace=*/true));
  EXPECT_EQ(read_by_hand(directory), std::vector<double>{3});
}

TEST(StepWriterTest, AStepOfARunIsNeverReplaced) {
  for (const std::string file : {"training_job_end.ts", "tornasole/worker_0_health.json"}) {
    const std::string directory = ::testing::TempDir() + "step_writer_run_test";
    std::filesystem::remove_all(directory);
    EXPECT_TRUE(write_by_hand(directory, 1, /*replace=*/false));
    std::filesystem::create_directories(directory + "/tornasole");
    std::ofstream(directory + "/" + file) << "{}";
    const Status again = write_by_hand(directory, 2, /*replace=*/true);
    ASSERT_FALSE(again) << file;
    EXPECT_EQ(again.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(read_by_hand(directory), std::vector<double>{1}) << file;
  }
}

TEST(StepWriterTest, WhatIsRefused) {
  const std::string directory = ::testing::TempDir() + "step_writer_test";
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(write_by_hand(directory, 1, /*replace=*/false));
  EXPECT_FALSE(*has_ended(directory));
  EXPECT_TRUE(mark_ended(directory));
  EXPECT_TRUE(mark_ended(directory)) << "twice is no error";
  EXPECT_TRUE(*has_ended(directory));
  EXPECT_FALSE(StepWriter::open({.trial_dir = directory, .worker = "a b"}));
  EXPECT_FALSE(StepWriter::open({.trial_dir = directory, .step = {-1}}));
}

}  // namespace
}  // namespace tornasole::capture
