// Which steps are complete, and what is known about others: the table of the reference's own tests.

#include <gtest/gtest.h>

#include "trial_world.h"

namespace tornasole::trial {
namespace {

constexpr auto kUnavailable = StepState::kUnavailable;
constexpr auto kAvailable = StepState::kAvailable;
constexpr auto kNotYet = StepState::kNotYetAvailable;

struct Written {
  std::int64_t first, last;
  std::vector<std::string> workers;
};

struct Scenario {
  const char* what;
  std::vector<std::string> workers;
  std::vector<Written> written;
  bool has_ended;
  std::vector<std::int64_t> complete;
  std::int64_t last_complete;
  std::vector<std::pair<std::int64_t, StepState>> states;
};

const Scenario kScenarios[] = {
    {"1: everything is there and the run has ended",
     {"a"},
     {{0, 6, {"a"}}},
     true,
     range(0, 6),
     6,
     {{3, kAvailable}, {8, kUnavailable}}},
    {"2: the same while the run goes on",
     {"a"},
     {{0, 6, {"a"}}},
     false,
     range(0, 6),
     6,
     {{3, kAvailable}, {8, kNotYet}}},
    {"3: a step that was passed over",
     {"a"},
     {{0, 3, {"a"}}, {5, 6, {"a"}}},
     false,
     {0, 1, 2, 3, 5, 6},
     6,
     {{4, kUnavailable}, {8, kNotYet}}},
    {"5: a worker is behind",
     {"a", "b", "c"},
     {{0, 2, {"a", "b", "c"}}, {3, 6, {"a", "c"}}},
     false,
     {0, 1, 2},
     2,
     {{2, kAvailable}, {4, kNotYet}, {6, kNotYet}, {8, kNotYet}}},
    {"6: a later complete step completes those before it",
     {"a", "b", "c"},
     {{0, 2, {"a", "b", "c"}}, {3, 5, {"a", "c"}}, {6, 6, {"a", "b", "c"}}},
     false,
     range(0, 6),
     6,
     {{4, kAvailable}, {8, kNotYet}}},
    {"7: nobody wrote step 3 and a worker is behind",
     {"a", "b", "c"},
     {{0, 2, {"a", "b", "c"}}, {4, 6, {"a", "c"}}},
     false,
     {0, 1, 2},
     2,
     {{3, kNotYet}, {4, kNotYet}, {6, kNotYet}}},
    {"7': the same after the end",
     {"a", "b", "c"},
     {{0, 2, {"a", "b", "c"}}, {4, 6, {"a", "c"}}},
     true,
     {0, 1, 2, 4, 5, 6},
     6,
     {{3, kUnavailable}, {4, kAvailable}, {8, kUnavailable}}},
};

TEST(Scenarios, StepsAndTheirStates) {
  for (const Scenario& c : kScenarios) {
    SCOPED_TRACE(c.what);
    TrialWorld world;
    world.write_collections(c.workers);
    for (const Written& written : c.written) world.write_steps(written.first, written.last, written.workers);
    if (c.has_ended) world.end();
    const Trial trial = must_open(world);
    EXPECT_EQ(numbers(trial.steps()), c.complete);
    EXPECT_EQ(trial.last_complete_step(), c.last_complete);
    EXPECT_EQ(trial.loaded_all_steps(), c.has_ended);
    for (const auto& [step, state] : c.states) EXPECT_EQ(trial.has_passed_step(global(step)), state) << "step " << step;
  }
}

TEST(Scenarios, WaitingForAStepThatWasPassedOverOrLiesBehindTheEnd) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_steps(0, 3, {"a"});
  world.write_steps(5, 6, {"a"});
  world.end();
  Trial trial = must_open(world);
  const ModeStep passed[] = {global(3), global(4), global(5)};
  const Status unavailable = trial.wait_for_steps(passed);
  ASSERT_FALSE(unavailable.ok());
  EXPECT_EQ(unavailable.error().kind, ErrorKind::kStepUnavailable);
  EXPECT_EQ(unavailable.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(unavailable.error().details->step, 4);
  const ModeStep beyond[] = {global(5), global(7)};
  const Status ended = trial.wait_for_steps(beyond);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().kind, ErrorKind::kNoMoreData);
  EXPECT_EQ(ended.error().code, ErrorCode::kEnded);
  EXPECT_EQ(ended.error().details->last_step, 6);
  EXPECT_NE(ended.error().message.find("last step is 6"), std::string::npos) << ended.error().message;
}

TEST(Scenarios, AnIndexThatNamesNoFileListsItsNamesAlone) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .tensors = {{"a"}}});
  world.put(
      format::index_path(1, "worker_0"),
      R"({"meta": {"mode": "GLOBAL", "mode_step": 1, "event_file_name": ""}, "tensor_payload": )"
      R"([{"tensorname": "a", "start_idx": 0, "length": 80}, {"tensorname": "b", "start_idx": 80, "length": 90}]})");
  world.end();
  for (const OnDamage on_damage : {OnDamage::kSkip, OnDamage::kFail}) {
    const Trial trial = must_open(world, {.on_damage = on_damage, .timeout_s = 0});
    EXPECT_EQ(numbers(trial.steps()), range(0, 1));
    EXPECT_EQ(trial.tensor_names({.step = global(1)})->size(), 2U);
    EXPECT_TRUE(trial.tensor("a", global(0)).ok());
    const auto value = trial.tensor("b", global(1));
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().kind, ErrorKind::kTensorUnavailableForStep);
    EXPECT_NE(value.error().message.find("missing"), std::string::npos) << value.error().message;
  }
}

TEST(Scenarios, TheWindowOfIncompleteStepsMovesOncePerRefresh) {
  TrialWorld world;
  world.write_collections({"a", "b", "c"});
  world.write_steps(0, 19, {"a"});
  Trial trial = must_open(world, {.timeout_s = 0, .incomplete_step_window = 10});
  EXPECT_EQ(trial.last_complete_step(), 4);
  EXPECT_EQ(trial.last_index_token(), "index/000000000/000000000004_c.json");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(trial.refresh().ok());
    EXPECT_EQ(trial.last_complete_step(), 9);
    EXPECT_EQ(trial.last_index_token(), "index/000000000/000000000009_c.json");
  }
  EXPECT_EQ(numbers(trial.steps()), range(0, 9));
}

TEST(Scenarios, TheWindowCountsSparseStepsAndNotTheirNumbers) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  for (std::int64_t step = 5000; step < 5000 + 12 * 100; step += 100) world.write({.step = step, .worker = "a"});
  const Trial trial = must_open(world, {.timeout_s = 0, .incomplete_step_window = 10});
  EXPECT_EQ(trial.last_complete_step(), 5400);
}

TrialWorld& write_two_modes(TrialWorld& world) {
  world.write_collections({"a"});
  for (std::int64_t i = 0; i < 4; ++i) {
    world.write({.step = i * 10, .worker = "a", .mode_step = train(i * 10)});
    world.write({.step = 40 + i * 10, .worker = "a", .mode_step = eval(i * 10)});
  }
  return world;
}

TEST(Scenarios, NineModesAfterTheEnd) {
  TrialWorld world;
  write_two_modes(world).end();
  const Trial trial = must_open(world);
  EXPECT_EQ(trial.last_complete_step(), 70);
  EXPECT_EQ(trial.has_passed_step(train(23)), kUnavailable);
  EXPECT_EQ(trial.has_passed_step(train(40)), kUnavailable);
  EXPECT_EQ(trial.has_passed_step(eval(30)), kAvailable);
  EXPECT_EQ(numbers(trial.steps(Mode::kEval)), (std::vector<std::int64_t>{0, 10, 20, 30}));
  EXPECT_EQ(numbers(trial.steps()).size(), 8U);
  EXPECT_EQ(trial.modes(), (std::vector{Mode::kTrain, Mode::kEval}));
  EXPECT_EQ(trial.global_step(eval(20)), GlobalStep{60});
  EXPECT_EQ(trial.global_step(eval(21)), std::nullopt);
  EXPECT_EQ(trial.global_step(global(12345)), GlobalStep{12345});
  EXPECT_EQ(trial.mode_step({60}), eval(20));
  EXPECT_EQ(trial.mode_step({61}), std::nullopt);
  EXPECT_TRUE(trial.steps(Mode::kPredict).empty());
}

TEST(Scenarios, NineModesWhileTheRunGoesOn) {
  TrialWorld world;
  const Trial trial = must_open(write_two_modes(world));
  EXPECT_EQ(trial.last_complete_step(), 70);
  EXPECT_EQ(trial.has_passed_step(train(40)), kNotYet);
  EXPECT_EQ(trial.has_passed_step(eval(23)), kUnavailable);
  EXPECT_EQ(trial.has_passed_step(global(80)), kNotYet);
}

TEST(Scenarios, TenTensorsOfTwoWorkers) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  for (std::int64_t step = 0; step < 10; ++step) {
    std::vector<WrittenTensor> tensors = {{"weight"}, {step < 5 ? "loss" : "gradient"}};
    world.write({.step = step, .worker = "a", .tensors = tensors});
    if (step % 5 < 3) world.write({.step = step, .worker = "b", .tensors = tensors});
  }
  const Trial trial = must_open(world);
  EXPECT_EQ(numbers(trial.steps()), range(0, 7));
  EXPECT_EQ(trial.last_complete_step(), 7);
  EXPECT_EQ(numbers(trial.tensor("loss")->steps()), range(0, 4));
  EXPECT_EQ(numbers(trial.tensor("gradient")->steps()), range(5, 7));
  EXPECT_EQ(numbers(trial.tensor("gradient")->steps(Mode::kGlobal, StepFilter::kIncludingIncomplete)), range(5, 9));
  EXPECT_EQ(numbers(trial.tensor("weight")->prev_steps(global(6), 3)), range(4, 6));
  EXPECT_EQ(numbers(trial.tensor("weight")->prev_steps(global(6))), range(0, 6));
  EXPECT_EQ(trial.workers_at({8}), std::vector<std::string>{"a"});
}

TEST(Scenarios, OnlyStepsInTheRangeAreLoaded) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_steps(0, 19, {"a"});
  Trial trial = must_open(world, {.first_step = 0, .end_step = 5, .timeout_s = 0});
  EXPECT_EQ(numbers(trial.steps()), range(0, 4));
  world.write_steps(20, 30, {"a"});
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(numbers(trial.steps()), range(0, 4));
  EXPECT_EQ(numbers(must_open(world, {.first_step = 28, .timeout_s = 0}).steps()), range(28, 30));
}

TEST(Scenarios, NothingIsSeenUntilARefresh) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_steps(0, 2, {"a"});
  Trial trial = must_open(world);
  world.write_steps(3, 4, {"a"});
  EXPECT_EQ(numbers(trial.steps()), range(0, 2));
  EXPECT_EQ(trial.has_passed_step(global(4)), kNotYet);
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(numbers(trial.steps()), range(0, 4));
  EXPECT_EQ(trial.last_index_token(), "index/000000000/000000000004_a.json");
}

TEST(Scenarios, AfterTheEndTheTrialIsDoneForEver) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_steps(0, 2, {"a"});
  Trial trial = must_open(world);
  // The marker is young: files that come right after it are waited for.
  world.end();
  world.on_sleep = [&] { world.write({.step = 3, .worker = "a"}); };
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(world.slept_s(), 1);
  EXPECT_EQ(numbers(trial.steps()), range(0, 3));
  world.write_steps(4, 5, {"a"});
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(numbers(trial.steps()), range(0, 3));
  // A reader that comes later sees them, and does not wait.
  world.clock().advance(10);
  EXPECT_EQ(numbers(must_open(world).steps()), range(0, 5));
  EXPECT_EQ(world.slept_s(), 1);
}

TEST(Scenarios, PartialStepsAreListedApart) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write_steps(0, 1, {"a"});
  world.write({.step = 2, .worker = "a", .is_partial = true});
  world.write_steps(3, 3, {"a"});
  world.end();
  Trial trial = must_open(world);
  EXPECT_EQ(numbers(trial.steps()), (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(numbers(trial.steps(Mode::kGlobal, StepFilter::kPartial)), std::vector<std::int64_t>{2});
  EXPECT_EQ(numbers(trial.steps(Mode::kGlobal, StepFilter::kIncludingIncomplete)), range(0, 3));
  EXPECT_EQ(trial.has_passed_step(global(2)), kUnavailable);
  EXPECT_TRUE(trial.tensor("a", global(2)).ok());
  const ModeStep partial[] = {global(2)};
  EXPECT_EQ(trial.wait_for_steps(partial).error().kind, ErrorKind::kStepUnavailable);
}

}  // namespace
}  // namespace tornasole::trial
