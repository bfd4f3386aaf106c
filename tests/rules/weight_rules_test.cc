// WeightUpdateRatio, TensorVariance, UnchangedTensor, AllZero.

#include <cmath>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

constexpr float kInf = INFINITY;
using Parameters = std::map<std::string, std::string>;
using Saved = std::vector<std::pair<std::int64_t, Tensor>>;  // step, value

void save_all(RuleWorld& world, const std::string& name, const Saved& values) {
  for (const auto& [step, value] : values) world.save(step, {{name, value}});
}

// The error of a rule that cannot be made.
Error refused(const std::string& rule, const Parameters& parameters) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  const auto made = make_rule(rule, parameters, {.base = &trial});
  EXPECT_FALSE(made.ok()) << rule;
  return made.ok() ? Error{} : made.error();
}

TEST(WeightUpdateRatio, WorkedCases) {
  struct Case {
    const char* what;
    Saved weights;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"no change at all", {{0, floats({1, 1})}, {1, floats({1, 1})}}, {}, {1}},
      {"19 times its size", {{0, floats({1, 1})}, {1, floats({20, 20})}}, {}, {1}},
      {"a thousandth of its size", {{0, floats({1, 1})}, {1, floats({1.001F, 0.999F})}}, {}, {}},
      {"a ratio equal to the large threshold is allowed",
       {{0, floats({1})}, {1, floats({3})}},
       {{"large_threshold", "2"}, {"epsilon", "0"}},
       {}},
      {"a ratio equal to the small threshold is allowed",
       {{0, floats({4})}, {1, floats({5})}},
       {{"small_threshold", "0.25"}, {"epsilon", "0"}},
       {}},
      {"zeros were not initialised", {{0, floats({0, 0})}, {1, floats({1, 1})}}, {}, {1}},
      {"zeros may be left out", {{0, floats({0, 0})}, {1, floats({1, 1})}}, {{"exclude_regex", "fc"}}, {}},
      {"one step has nothing to be compared with", {{0, floats({1, 1})}}, {}, {}},
      {"the step before, however far", {{0, floats({1})}, {100, floats({1})}}, {}, {100}},
      {"no step within num_steps", {{0, floats({1})}, {100, floats({1})}}, {{"num_steps", "99"}}, {}},
      {"num_steps back counts", {{0, floats({1})}, {100, floats({1})}}, {{"num_steps", "100"}}, {100}},
      {"the oldest step within num_steps",
       {{0, floats({1})}, {5, floats({9})}, {10, floats({12})}},
       {{"num_steps", "10"}},
       {10}},
      {"without num_steps 9 to 12 is fine", {{0, floats({1})}, {5, floats({9})}, {10, floats({12})}}, {}, {}},
      {"another shape cannot be compared", {{0, floats({1, 1})}, {1, floats({1})}}, {}, {}},
      {"after another shape it goes on", {{0, floats({1, 1})}, {1, floats({1})}, {2, floats({1})}}, {}, {2}},
      {"NaN is no ratio", {{0, floats({1})}, {1, floats({NAN})}}, {}, {}},
      {"infinitely far", {{0, floats({1})}, {1, floats({kInf})}}, {}, {1}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    save_all(world, "fc.weight", c.weights);
    EXPECT_EQ(world.met("WeightUpdateRatio", c.parameters), c.met) << c.what;
  }
}

TEST(WeightUpdateRatio, LooksAtTrainingStepsByTheirOwnNumbersElseAtGlobalOnes) {
  RuleWorld world;
  world.save(0, {{"w.weight", floats({1})}}, ModeStep{Mode::kTrain, 0});
  world.save(10, {{"w.weight", floats({1})}}, ModeStep{Mode::kEval, 0});
  world.save(20, {{"w.weight", floats({1})}}, ModeStep{Mode::kTrain, 1});
  EXPECT_EQ(world.met("WeightUpdateRatio"), Steps{20});
  EXPECT_EQ(world.met("WeightUpdateRatio", {{"num_steps", "1"}}), Steps{20});

  RuleWorld without;
  without.save(0, {{"w.weight", floats({1})}}, ModeStep{Mode::kEval, 0});
  without.save(20, {{"w.weight", floats({1})}}, ModeStep{Mode::kPredict, 0});
  EXPECT_EQ(without.met("WeightUpdateRatio"), Steps{20});
  EXPECT_TRUE(without.met("WeightUpdateRatio", {{"num_steps", "1"}}).empty());
}

TEST(WeightUpdateRatio, EachWorkerIsComparedWithItself) {
  RuleWorld world({}, {"a", "b"});
  for (const std::int64_t step : {0, 1}) {
    world.save(step, {{"w.weight", floats({1 + 0.1F * static_cast<float>(step)})}}, {}, "a");
    world.save(step, {{"w.weight", floats({5})}}, {}, "b");
  }
  const RuleOutcome outcome = world.run("WeightUpdateRatio");
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "b");
  EXPECT_EQ(refused("WeightUpdateRatio", {{"num_steps", "0"}}).code, ErrorCode::kInvalid);
}

TEST(TensorVariance, WorkedCases) {
  struct Case {
    const char* what;
    Tensor value;
    Parameters limits;
    bool is_met;
  };
  const Case cases[] = {
      {"25 is above 10", floats({0, 10}), {{"max_threshold", "10"}}, true},
      {"0 is below 0.00001", floats({3, 3}), {{"min_threshold", "0.00001"}}, true},
      {"0.667 lies between", floats({1, 2, 3}), {{"max_threshold", "10"}, {"min_threshold", "0.00001"}}, false},
      {"25 is not above 25", floats({0, 10}), {{"max_threshold", "25"}}, false},
      {"25 is not below 25", floats({0, 10}), {{"min_threshold", "25"}}, false},
      {"one element has no variance to speak of", floats({3}), {{"min_threshold", "1"}}, false},
      {"NaN is neither high nor low", floats({NAN, 1}), {{"max_threshold", "0"}, {"min_threshold", "9"}}, false},
      {"integers", tools::tensor_of<std::int64_t>({0, 10}), {{"max_threshold", "10"}}, true},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"x", c.value}});
    Parameters parameters = c.limits;
    parameters["tensor_regex"] = "x";
    EXPECT_EQ(world.met("TensorVariance", parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(TensorVariance, TakesAStoredVariance) {
  RuleWorld world;
  world.save(0, {{reduced("variance", "x"), scalar(25)}});
  world.save(1, {{reduced("variance", "x"), scalar(0)}});
  world.save(2, {{reduced("max", "x"), scalar(0)}});
  world.save(3, {{reduced("variance", "x"), scalar(0)}, {"x", floats({7})}});
  const RuleOutcome outcome =
      world.run("TensorVariance", {{"tensor_regex", "x"}, {"max_threshold", "10"}, {"min_threshold", "1"}});
  EXPECT_EQ(outcome.steps_met, (Steps{0, 1}));
  EXPECT_EQ(outcome.report.skipped.at("one element"), 1);
}

TEST(TensorVariance, TensorsAndALimitMustBeGiven) {
  const Error tensors = refused("TensorVariance", {{"max_threshold", "1"}});
  EXPECT_EQ(tensors.kind, ErrorKind::kInsufficientInformation);
  EXPECT_EQ(tensors.message,
            "rule TensorVariance: neither collection_names nor tensor_regex is given; one of them must be");
  const Error limits = refused("TensorVariance", {{"tensor_regex", "x"}});
  EXPECT_EQ(limits.kind, ErrorKind::kInsufficientInformation);
  EXPECT_EQ(limits.message,
            "rule TensorVariance: neither max_threshold nor min_threshold is given; one of them must be");
}

TEST(UnchangedTensor, WorkedCases) {
  struct Case {
    const char* what;
    Saved values;
    Parameters parameters;
    Steps met;
  };
  const Tensor ones = floats({1, 1});
  const Case cases[] = {
      {"the same at three steps that are not consecutive", {{0, ones}, {4, ones}, {9, ones}}, {}, {9}},
      {"a change at the last", {{0, ones}, {1, ones}, {2, floats({1, 1.001F})}}, {}, {}},
      {"two steps are too few", {{0, ones}, {1, ones}}, {}, {}},
      {"two steps if two are asked for", {{0, ones}, {1, ones}}, {{"num_steps", "2"}}, {1}},
      {"saved only at step 5", {{5, ones}}, {}, {}},
      {"it goes on", {{0, ones}, {1, ones}, {2, ones}, {3, ones}}, {}, {2, 3}},
      {"a change is forgotten after three", {{0, floats({2, 2})}, {1, ones}, {2, ones}, {3, ones}}, {}, {3}},
      {"a change within the tolerance", {{0, ones}, {1, ones}, {2, floats({1, 1.000005F})}}, {}, {2}},
      {"a tolerance of one's own", {{0, ones}, {1, ones}, {2, floats({1, 1.001F})}}, {{"rtol", "0.01"}}, {2}},
      {"relative to the newest: 1 against 2 is within a half",
       {{0, floats({1})}, {1, floats({2})}},
       {{"num_steps", "2"}, {"rtol", "0.5"}, {"atol", "0"}},
       {1}},
      {"relative to the newest: 2 against 1 is not",
       {{0, floats({2})}, {1, floats({1})}},
       {{"num_steps", "2"}, {"rtol", "0.5"}, {"atol", "0"}},
       {}},
      {"NaN differs from NaN", {{0, floats({NAN})}, {1, floats({NAN})}, {2, floats({NAN})}}, {}, {}},
      {"unless it is told not to",
       {{0, floats({NAN})}, {1, floats({NAN})}, {2, floats({NAN})}},
       {{"equal_nan", "True"}},
       {2}},
      {"equal infinities", {{0, floats({kInf})}, {1, floats({kInf})}, {2, floats({kInf})}}, {}, {2}},
      {"opposite infinities", {{0, floats({kInf})}, {1, floats({-kInf})}, {2, floats({kInf})}}, {}, {}},
      {"a finite number is not close to infinity", {{0, floats({1})}, {1, floats({kInf})}}, {{"num_steps", "2"}}, {}},
      {"another shape", {{0, ones}, {1, filled(1, {2, 1})}, {2, ones}}, {}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    save_all(world, "x", c.values);
    Parameters parameters = c.parameters;
    parameters["tensor_regex"] = "x";
    EXPECT_EQ(world.met("UnchangedTensor", parameters), c.met) << c.what;
  }
}

TEST(UnchangedTensor, APassFromTheMiddleKnowsWhatTheTrialKnows) {
  RuleWorld world;
  save_all(world, "x", {{0, floats({1})}, {1, floats({1})}, {2, floats({1})}});
  EXPECT_EQ(world.met("UnchangedTensor", {{"tensor_regex", "x"}}, {.first_step = 2}), Steps{2});
}

TEST(UnchangedTensor, ModesAndWorkersAreComparedApart) {
  RuleWorld world({}, {"a", "b"});
  const auto save = [&](std::int64_t step, Mode mode, std::int64_t number, float of_a) {
    world.save(step, {{"x", floats({of_a})}}, ModeStep{mode, number}, "a");
    world.save(step, {{"x", floats({static_cast<float>(step)})}}, ModeStep{mode, number}, "b");
  };
  save(0, Mode::kTrain, 0, 1);
  save(1, Mode::kEval, 0, 7);
  save(2, Mode::kTrain, 1, 1);
  save(3, Mode::kEval, 1, 7);
  save(4, Mode::kTrain, 2, 1);
  const RuleOutcome outcome = world.run("UnchangedTensor", {{"tensor_regex", "x"}});
  EXPECT_EQ(outcome.steps_met, Steps{4});
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "a");
}

TEST(UnchangedTensor, TensorsMustBeGivenAndStepsToCompare) {
  EXPECT_EQ(refused("UnchangedTensor", {}).kind, ErrorKind::kInsufficientInformation);
  EXPECT_EQ(refused("UnchangedTensor", {{"tensor_regex", "x"}, {"num_steps", "1"}}).message,
            "rule UnchangedTensor: num_steps is \"1\"; it must be at least 2");
}

TEST(AllZero, WorkedCases) {
  struct Case {
    const char* what;
    Tensor value;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"all of three", floats({0, 0, 0}), {}, true},
      {"two of three are not all", floats({0, 0, 1}), {}, false},
      {"two of three are more than half", floats({0, 0, 1}), {{"threshold", "50"}}, true},
      {"half is enough if half is asked for", floats({0, 1}), {{"threshold", "50"}}, true},
      {"half is less than 50.1 %", floats({0, 1}), {{"threshold", "50.1"}}, false},
      {"a negative zero is zero", floats({-0.0F, 0}), {}, true},
      {"NaN is not", floats({NAN, 0}), {}, false},
      {"integers", tools::tensor_of<std::int32_t>({0, 0}), {}, true},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"x", c.value}});
    Parameters parameters = c.parameters;
    parameters["tensor_regex"] = "x";
    EXPECT_EQ(world.met("AllZero", parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(AllZero, WithoutTheValueTheLargestMagnitudeTells) {
  RuleWorld world;
  world.save(0, {{reduced("abs_max", "x"), scalar(0)}});
  world.save(1, {{reduced("abs_max", "x"), scalar(1)}});
  world.save(2, {{reduced("abs_max", "x"), scalar(0)}, {"x", floats({0, 1})}});
  const RuleOutcome outcome = world.run("AllZero", {{"tensor_regex", "x"}});
  EXPECT_EQ(outcome.steps_met, Steps{0});
  EXPECT_EQ(outcome.report.datapoints, 3);
  const RuleOutcome half = world.run("AllZero", {{"tensor_regex", "x"}, {"threshold", "50"}});
  EXPECT_EQ(half.steps_met, Steps{2});  // a largest magnitude says nothing about a share
  EXPECT_EQ(half.report.skipped.at("no value"), 2);
  EXPECT_EQ(refused("AllZero", {}).kind, ErrorKind::kInsufficientInformation);
}

}  // namespace
}  // namespace tornasole::rules
