#include "tornasole/hook.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "capture/open_hook.h"
#include "capture/written_trial.h"
#include "store/memory/memory_store.h"

namespace tornasole::capture {
namespace {

const std::vector<float> kValues = {1, -2, 3, 4};

// A hook on a store in memory, and the means to look at what it wrote.
class HookTest : public ::testing::Test {
 protected:
  Hook open(HookOptions options) {
    options.out_dir = "/nowhere/run";
    options.log = [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) log_.emplace_back(text);
    };
    auto hook = open_hook(std::move(options), {.store = store_.share()});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  static HookOptions every_step() { return {.save_config = {.save_interval = 1}, .save_all = true}; }

  store::MemoryStore store_;
  std::vector<std::string> log_;
};

TEST_F(HookTest, AValueIsReadBackAsItWasSaved) {
  {
    Hook hook = open(every_step());
    auto step = hook.begin_step(Mode::kTrain);
    step.save("x", TensorView::of(kValues, {2, 2}));
    step.save("number", 2.5);
  }
  const auto steps = read_steps(store_);
  ASSERT_EQ(steps.size(), 1U);
  const WrittenStep& step = steps.at(0);
  EXPECT_EQ(step.index.mode, Mode::kTrain);
  EXPECT_EQ(values_of<float>(step.values.at("x")), kValues);
  EXPECT_EQ(step.values.at("x").shape(), (Shape{2, 2}));
  EXPECT_EQ(values_of<double>(step.values.at("number")), std::vector<double>{2.5});
  EXPECT_TRUE(store_.status(format::kEndMarkerPath).ok());
  EXPECT_FALSE(store_.status(format::kClaimPath).ok());
  const format::Health health = read_health(store_);
  EXPECT_EQ(health.state, format::RunState::kEnded);
  EXPECT_EQ(health.due, 1);
  EXPECT_EQ(health.committed, 1);
}

TEST_F(HookTest, NothingIsWrittenBeforeAStepIsDue) {
  Hook hook = open({.save_config = {.save_interval = 10, .start_step = 5}, .save_all = true});
  for (int i = 0; i < 10; ++i) hook.begin_step(Mode::kTrain).save("x", kValues);
  EXPECT_EQ(file_names(store_), std::vector<std::string>{});
}

TEST_F(HookTest, CountersRunPerModeAndSchedulesFollowThem) {
  {
    Hook hook = open({.save_config = {.save_interval = 2}, .save_all = true});
    for (const Mode mode : {Mode::kTrain, Mode::kTrain, Mode::kTrain, Mode::kEval, Mode::kEval, Mode::kTrain}) {
      hook.begin_step(mode).save("x", kValues);
    }
    EXPECT_EQ(hook.step(), 5);
    EXPECT_EQ(hook.mode_step(Mode::kTrain), 3);
    EXPECT_EQ(hook.mode_step(Mode::kEval), 1);
    EXPECT_EQ(hook.mode_step(Mode::kGlobal), 5);
    EXPECT_EQ(hook.last_saved_step(), 3);
  }
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(read_steps(store_).at(3).index.mode, Mode::kEval);
  EXPECT_EQ(read_steps(store_).at(3).index.mode_step, 0);
}

TEST_F(HookTest, StepsThatWantTheSameTensorsHaveTheSameDueSet) {
  Hook hook = open({.save_config = {.save_interval = 2}, .include_regex = {"x"}});
  ASSERT_TRUE(hook.collection("other").include("y").ok());
  ASSERT_TRUE(hook.collection("default").set_save_config({.save_interval = 4}).ok());
  std::vector<std::uint64_t> sets;
  for (int i = 0; i < 9; ++i) sets.push_back(hook.begin_step(Mode::kTrain).due_set());
  EXPECT_EQ(sets[1], 0U) << "nothing is due";
  EXPECT_NE(sets[0], 0U);
  EXPECT_EQ(sets[0], sets[4]);
  EXPECT_EQ(sets[4], sets[8]);
  ASSERT_TRUE(hook.collection("default").include("z").ok());
  std::uint64_t after = 0;
  for (int i = 0; i < 4; ++i) after = hook.begin_step(Mode::kTrain).due_set();
  EXPECT_NE(after, 0U);
  EXPECT_NE(after, sets[8]) << "a collection changed in between";
  EXPECT_NE(hook.begin_step(Mode::kEval).due_set(), after) << "another mode";
}

TEST_F(HookTest, WithoutAModeStepsAreGlobal) {
  {
    Hook hook = open(every_step());
    hook.begin_step().save("x", kValues);
    hook.begin_step().save("x", kValues);
  }
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(read_steps(store_).at(1).index.mode, Mode::kGlobal);
  EXPECT_EQ(read_steps(store_).at(1).index.mode_step, 1);
}

TEST_F(HookTest, TheGlobalModeFollowsTheStepsOfTheOthers) {
  {
    Hook hook = open({.save_config = {.save_interval = 4}, .save_all = true});
    for (int i = 0; i < 3; ++i) hook.begin_step(Mode::kEval).save("x", kValues);
    hook.begin_step(Mode::kGlobal).save("x", kValues);  // global step 3
    hook.begin_step(Mode::kGlobal).save("x", kValues);  // 4
  }
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 4}));
}

TEST_F(HookTest, StepsChosenByTheCallerMayJump) {
  {
    Hook hook = open({.save_config = {.save_interval = 10}, .save_all = true});
    for (const std::int64_t round : {0, 10, 25, 40, 30})
      hook.begin_step(Mode::kTrain, GlobalStep{round}).save("x", kValues);
    hook.begin_step(Mode::kTrain, GlobalStep{-1}).save("x", kValues);
    hook.begin_step(Mode::kTrain, GlobalStep{10}).save("x", kValues);  // published already
    EXPECT_TRUE(hook.close().ok() == false);
    const CaptureReport report = hook.report();
    EXPECT_EQ(report.dropped_steps, (std::map<std::string, std::int64_t>{{"already_published", 1}}));
    EXPECT_EQ(report.due_steps, 5);
    EXPECT_EQ(report.committed_steps, 4);
  }
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 10, 30, 40}));
}

TEST_F(HookTest, CollectionsDecideTheForm) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"weights", "stats", "shapes"}});
    ASSERT_TRUE(hook.collection("weights").set_save_config({.save_interval = 2}).ok());
    Collection stats = hook.collection("stats");
    ASSERT_TRUE(stats.include("fc").ok());
    ASSERT_TRUE(stats.exclude("bias").ok());
    ASSERT_TRUE(stats.set_reduction_config({.reductions = {"min", "median"}, .abs_norms = {"l1"}}).ok());
    Collection shapes = hook.collection("shapes");
    ASSERT_TRUE(shapes.include("^input").ok());
    ASSERT_TRUE(shapes.set_reduction_config({.save_shape = true}).ok());
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("fc.weight", kValues);
      step.save("fc.bias", kValues);
      step.save("input", TensorView::of(kValues, {4, 1}));
      step.save("loss", 0.5F);
      step.save("unclaimed", kValues);
    }
    EXPECT_TRUE(hook.close().ok());
    EXPECT_EQ(hook.report().unclaimed_names, (std::vector<std::string>{"fc.bias", "unclaimed"}));
  }
  const auto steps = read_steps(store_);
  EXPECT_EQ(steps.at(0).order,
            (std::vector<std::string>{"smdebug/reductions/min/fc.weight", "smdebug/reductions/median/fc.weight",
                                      "smdebug/reductions/abs_l1/fc.weight", "fc.weight", "loss"}));
  EXPECT_EQ(steps.at(1).order,
            (std::vector<std::string>{"smdebug/reductions/min/fc.weight", "smdebug/reductions/median/fc.weight",
                                      "smdebug/reductions/abs_l1/fc.weight", "loss"}));
  EXPECT_EQ(values_of<float>(steps.at(1).values.at("smdebug/reductions/median/fc.weight")), std::vector<float>{2});
  EXPECT_EQ(values_of<float>(steps.at(1).values.at("smdebug/reductions/abs_l1/fc.weight")), std::vector<float>{10});
  ASSERT_EQ(steps.at(0).index.shapes.size(), 1U);
  EXPECT_EQ(steps.at(0).index.shapes[0].name, "input");
  EXPECT_EQ(steps.at(0).index.shapes[0].shape, (std::vector<std::int64_t>{4, 1}));
  const auto collections = read_collections(store_);
  EXPECT_EQ(collections.at("stats").tensor_names, std::vector<std::string>{"fc.weight"});
  EXPECT_EQ(collections.at("stats").exclude_regex, std::vector<std::string>{"bias"});
}

TEST_F(HookTest, GradientsAreNotSavedInEvaluation) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"gradients", "losses"}});
    for (const Mode mode : {Mode::kTrain, Mode::kEval}) {
      auto step = hook.begin_step(mode);
      step.save("gradient/w", kValues);
      step.save("loss", 1.0F);
    }
  }
  const auto steps = read_steps(store_);
  EXPECT_TRUE(steps.at(0).values.contains("gradient/w"));
  EXPECT_FALSE(steps.at(1).values.contains("gradient/w"));
  EXPECT_TRUE(steps.at(1).values.contains("loss"));
}

TEST_F(HookTest, LateConfigurationTakesEffectAtTheNextStep) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .include_collections = {"mine"}});
    ASSERT_TRUE(hook.collection("mine").include("^a$").ok());
    hook.begin_step(Mode::kTrain).save("b", kValues);
    ASSERT_TRUE(hook.collection("mine").include("^b$").ok());
    hook.begin_step(Mode::kTrain).save("b", kValues);
  }
  EXPECT_EQ(step_numbers(store_), std::vector<std::int64_t>{1});
  EXPECT_EQ(read_collections(store_).at("mine").tensor_names, std::vector<std::string>{"b"});
}

TEST_F(HookTest, ABadPatternIsRefusedWhenItIsSet) {
  Hook hook = open(every_step());
  const Status bad = hook.collection("mine").include("(");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
  EXPECT_NE(bad.error().message.find("("), std::string::npos);
}

TEST_F(HookTest, AnEmptyCustomCollectionIsAnErrorOfPreparation) {
  Hook hook = open({.include_collections = {"mine"}});
  hook.collection("mine");
  const Status prepared = hook.prepare();
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().kind, ErrorKind::kBadCollection);
  hook.begin_step(Mode::kTrain).save("x", kValues);  // reported, survived
  EXPECT_FALSE(hook.close().ok());
}

TEST_F(HookTest, ScalarsWaitForASavedStep) {
  {
    Hook hook = open({.save_config = {.save_interval = 2, .start_step = 2}, .save_all = true});
    for (int i = 0; i < 3; ++i) {
      hook.save_scalar("acc", i, {.timestamp = 100.0 + i});
      auto step = hook.begin_step(Mode::kTrain);
      step.save("x", kValues);
    }
    hook.save_scalar("late", 7);
  }
  const auto steps = read_steps(store_);
  EXPECT_EQ(steps.at(2).order, (std::vector<std::string>{"x", "scalar/acc", "scalar/acc", "scalar/acc"}));
  EXPECT_EQ(values_of<double>(steps.at(2).values.at("scalar/acc")), std::vector<double>{2});
  // The last step is published and is not opened again.
  ASSERT_EQ(step_numbers(store_), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(steps.at(3).index.mode, Mode::kGlobal);
  EXPECT_EQ(values_of<double>(steps.at(3).values.at("scalar/late")), std::vector<double>{7});
  EXPECT_EQ(read_collections(store_).at("scalars").tensor_names,
            (std::vector<std::string>{"scalar/acc", "scalar/late"}));
}

TEST_F(HookTest, AScalarBeforeTheFirstStepIsWrittenAtStepZero) {
  {
    open(every_step()).save_scalar("early", 1);
  }
  EXPECT_EQ(step_numbers(store_), std::vector<std::int64_t>{0});
}

TEST_F(HookTest, SaveTensorMakesAndIncludesItsCollections) {
  {
    Hook hook = open({.save_config = {.save_interval = 2}});
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      hook.save_tensor("custom", kValues, {"mine", "other"});
    }
    hook.save_tensor("between", kValues);
    hook.begin_step(Mode::kTrain).end();
    hook.save_tensor("between", kValues);
    hook.begin_step(Mode::kTrain).end();
  }
  const auto steps = read_steps(store_);
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_TRUE(steps.at(0).values.contains("custom"));
  EXPECT_TRUE(steps.at(4).values.contains("between"));
  EXPECT_EQ(read_collections(store_).at("other").tensor_names, std::vector<std::string>{"custom"});
}

TEST_F(HookTest, WhenNanSavesTheWholeStepOnATrigger) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  {
    Hook hook =
        open({.save_config = {.save_interval = 10, .when_nan = {{"^loss$"}}}, .include_collections = {"weights"}});
    for (int i = 0; i < 4; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("fc.weight", kValues);
      step.save("loss", i == 2 ? nan : 1.0F);
    }
  }
  const auto steps = read_steps(store_);
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(values_of<float>(steps.at(2).values.at("fc.weight")), kValues);
  EXPECT_TRUE(std::isnan(values_of<float>(steps.at(2).values.at("loss")).at(0)));
}

TEST_F(HookTest, TheFlightRecorderWritesTheStepsBeforeTheEvent) {
  {
    Hook hook = open({.save_config = {.save_interval = 100}, .save_all = true, .flight_recorder_steps = 3});
    for (int i = 0; i < 6; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("x", kValues);
      step.save("loss", static_cast<float>(i));
    }
    hook.dump_flight_recorder();
  }
  const auto steps = read_steps(store_);
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{0, 3, 4, 5}));
  EXPECT_EQ(values_of<float>(steps.at(4).values.at("smdebug/reductions/max/x")), std::vector<float>{4});
  EXPECT_EQ(values_of<float>(steps.at(4).values.at("loss")), std::vector<float>{4});
  EXPECT_FALSE(steps.at(4).values.contains("x"));
}

TEST_F(HookTest, BadNamesAreCountedAndOthersRoundTrip) {
  const std::vector<std::string> good = {"../../x",
                                         "/",
                                         "a\nb",
                                         "\x1b[31m",
                                         std::string("nul\0x", 5),
                                         "<script>",
                                         std::string(5000, 'n'),
                                         "\xE2\x80\xAE"
                                         "bidi"};
  {
    Hook hook = open(every_step());
    auto step = hook.begin_step(Mode::kTrain);
    for (const std::string& name : good) step.save(name, kValues);
    step.save("", kValues);
    step.save(std::string(70'000, 'n'), kValues);
    step.save("smdebug/reductions/x", kValues);
    step.save("bad\xFFname", kValues);
    step.end();
    EXPECT_FALSE(hook.close().ok());
    EXPECT_EQ(hook.report().dropped_values, (std::map<std::string, std::int64_t>{{"bad_name", 3}}));
  }
  const auto steps = read_steps(store_);
  for (const std::string& name : good) EXPECT_TRUE(steps.at(0).values.contains(name)) << name;
  EXPECT_TRUE(steps.at(0).values.contains("bad\xEF\xBF\xBDname"));
  EXPECT_EQ(steps.at(0).values.size(), good.size() + 1);
}

TEST_F(HookTest, AnExceptionMarksTheStepPartialAndTheRunFailed) {
  try {
    Hook hook = open(every_step());
    hook.begin_step(Mode::kTrain).save("x", kValues);
    auto step = hook.begin_step(Mode::kTrain);
    step.save("x", kValues);
    throw std::runtime_error("training broke");
  } catch (const std::runtime_error&) {
    SUCCEED();
  }
  const auto steps = read_steps(store_);
  EXPECT_FALSE(steps.at(0).index.is_partial);
  EXPECT_TRUE(steps.at(1).index.is_partial);
  EXPECT_EQ(read_health(store_).state, format::RunState::kFailed);
}

TEST_F(HookTest, BudgetsDropWholeStepsAndCountThem) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .save_all = true, .max_bytes_per_step = 400});
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("a", kValues);
      if (i == 1) step.save("b", std::vector<float>(1000));
    }
    EXPECT_FALSE(hook.close().ok());
    EXPECT_EQ(hook.report().dropped_steps, (std::map<std::string, std::int64_t>{{"budget_step", 1}}));
  }
  EXPECT_EQ(step_numbers(store_), std::vector<std::int64_t>{0});
}

TEST_F(HookTest, KeepStepsRemovesTheOldest) {
  {
    Hook hook = open({.save_config = {.save_interval = 1}, .save_all = true, .keep_steps = 2});
    for (int i = 0; i < 5; ++i) hook.begin_step(Mode::kTrain).save("x", kValues);
  }
  EXPECT_EQ(step_numbers(store_), (std::vector<std::int64_t>{3, 4}));
  EXPECT_FALSE(store_.status(format::event_path(0, "worker_0")).ok());
}

TEST_F(HookTest, ADryRunWritesNothingAndEstimates) {
  HookOptions options = every_step();
  options.dry_run = true;
  Hook hook = open(options);
  hook.begin_step(Mode::kTrain).save("x", std::vector<float>(1000));
  EXPECT_TRUE(hook.close().ok());
  EXPECT_EQ(file_names(store_), std::vector<std::string>{});
  EXPECT_EQ(hook.report().due_steps, 1);
  EXPECT_GT(hook.report().bytes_written, 4000);
  EXPECT_LT(hook.report().bytes_written, 4200);
}

TEST_F(HookTest, CallsAfterCloseAreIgnoredWithOneWarning) {
  Hook hook = open(every_step());
  EXPECT_TRUE(hook.close().ok());
  EXPECT_TRUE(hook.close().ok());
  hook.begin_step(Mode::kTrain).save("x", kValues);
  hook.save_scalar("x", 1);
  EXPECT_EQ(log_.size(), 1U);
  EXPECT_EQ(step_numbers(store_), std::vector<std::int64_t>{});
}

TEST_F(HookTest, AStaleStepTakesNothingMore) {
  Hook hook = open(every_step());
  auto first = hook.begin_step(Mode::kTrain);
  auto second = hook.begin_step(Mode::kTrain);
  first.save("x", kValues);
  second.save("y", kValues);
  first.end();
  second.save("z", kValues);
  second.end();
  EXPECT_FALSE(hook.close().ok());
  EXPECT_EQ(hook.report().dropped_values, (std::map<std::string, std::int64_t>{{"late", 1}}));
  EXPECT_EQ(read_steps(store_).at(1).order, (std::vector<std::string>{"y", "z"}));
}

TEST_F(HookTest, InputsAndOutputsOfAModuleAreNumberedOn) {
  {
    Hook hook = open(every_step());
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save_output("relu", kValues);
      step.save_output("relu", kValues);
      step.save_input("relu", kValues);
    }
  }
  EXPECT_EQ(read_steps(store_).at(1).order,
            (std::vector<std::string>{"relu_output_0", "relu_output_1", "relu_input_0"}));
}

TEST_F(HookTest, AModuleThatIsCalledForEverInOneStepIsNotNumberedForEver) {
  {
    Hook hook = open(every_step());
    auto endless = hook.begin_step(Mode::kTrain);
    for (int i = 0; i < 10'003; ++i) endless.save_output("relu", kValues);
    EXPECT_EQ(hook.report().dropped_values, (std::map<std::string, std::int64_t>{{"too_many", 3}}));
    auto next = hook.begin_step(Mode::kTrain);
    next.save_output("relu", kValues);
  }
  const auto steps = read_steps(store_);
  EXPECT_EQ(steps.at(0).order.size(), 10'000);
  EXPECT_EQ(steps.at(1).order, (std::vector<std::string>{"relu_output_0"}));
}

TEST_F(HookTest, NamesThatAreKeptMeanWhatTextsMean) {
  TensorName weight("weight"), bad("smdebug/reductions/min/x");
  ModuleName relu("relu"), same("relu");
  {
    Hook hook = open(every_step());
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save(weight, kValues);
      step.save(bad, kValues);
      step.save_output(relu, kValues);
      step.save_output(same, kValues);
      step.save_output("relu", kValues);
      step.save_input(relu, kValues);
      if (i == 1) {
        ASSERT_TRUE(hook.collection("late").include("^weight$").ok());
      }
    }
    EXPECT_EQ(hook.report().dropped_values.at("bad_name"), 3);
    auto stale = hook.begin_step(Mode::kTrain);
    auto step = hook.begin_step(Mode::kTrain);
    stale.save(weight, kValues);
    stale.save_output(relu, kValues);
    EXPECT_EQ(hook.report().dropped_values.at("late"), 2);
  }
  const std::vector<std::string> order = {"weight", "relu_output_0", "relu_output_1", "relu_output_2", "relu_input_0"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_steps(store_).at(i).order, order) << "step " << i;
}

TEST_F(HookTest, LargeValuesAreOneRecordEachWhateverTheirLength) {
  Hook hook = open({.save_config = {.save_interval = 1}, .save_all = true});
  std::map<std::string, std::vector<std::uint8_t>> saved;
  {
    auto step = hook.begin_step(Mode::kTrain);
    constexpr std::size_t kPiece = std::size_t{252} << 10;
    for (const std::size_t bytes : {kPiece / 4, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 3 * kPiece + 100}) {
      std::vector<std::uint8_t> value(bytes);
      for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<std::uint8_t>(i * 31 + i / kPiece);
      step.save("of " + std::to_string(bytes), value);
      saved["of " + std::to_string(bytes)] = std::move(value);
    }
  }
  ASSERT_TRUE(hook.close().ok());
  const WrittenStep written = read_steps(store_).at(0);  // which compares the checksums
  for (const auto& [name, value] : saved) EXPECT_EQ(values_of<std::uint8_t>(written.values.at(name)), value) << name;
}

TEST_F(HookTest, AValueLargerThanTheQueueIsStreamed) {
  std::vector<std::int32_t> large(2 << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::int32_t>(i);
  {
    HookOptions options = every_step();
    options.queue_bytes = 4 << 20;
    Hook hook = open(options);
    auto step = hook.begin_step(Mode::kTrain);
    step.save("before", kValues);
    step.save("large", large);
    step.save("after", kValues);
    step.end();
    EXPECT_TRUE(hook.close().ok());
    EXPECT_LE(hook.report().queue_peak_bytes, 4 << 20);
  }
  const auto steps = read_steps(store_);
  ASSERT_TRUE(steps.at(0).values.contains("large"));
  EXPECT_EQ(values_of<std::int32_t>(steps.at(0).values.at("large")), large);
  EXPECT_TRUE(steps.at(0).values.contains("after"));
}

TEST_F(HookTest, ManyThreadsSaveIntoOneStep) {
  constexpr int kThreads = 16;
  {
    Hook hook = open(every_step());
    for (int i = 0; i < 20; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      std::vector<std::thread> threads;
      threads.reserve(kThreads);
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (int k = 0; k < 5; ++k) {
            step.save(std::to_string(t) + "/" + std::to_string(k),
                      std::vector<int>(static_cast<std::size_t>(k * 3000 + 1), t));
          }
          hook.save_scalar("s" + std::to_string(t), t);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_TRUE(hook.close().ok());
  }
  const auto steps = read_steps(store_);
  ASSERT_EQ(steps.size(), 20U);
  for (const auto& [number, step] : steps) EXPECT_EQ(step.values.size(), kThreads * 6U);
  EXPECT_EQ(values_of<int>(steps.at(7).values.at("3/4")), std::vector<int>(12001, 3));
}

}  // namespace
}  // namespace tornasole::capture
