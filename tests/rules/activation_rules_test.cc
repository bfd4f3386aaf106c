// PoorWeightInitialization, SaturatedActivation, DeadRelu.

#include <cmath>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

constexpr float kInf = INFINITY;
using Parameters = std::map<std::string, std::string>;

// 21 values from -10 * step to 10 * step.
Tensor ramp(float step) {
  std::vector<float> values;
  for (int i = -10; i <= 10; ++i) values.push_back(static_cast<float>(i) * step);
  return floats(values);
}

TEST(PoorWeightInitialization, WorkedCases) {
  struct Case {
    const char* what;
    Values values;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"variances 0.01 and 1: 100 times",
       {{"a_relu_input", floats({-0.1F, 0.1F})}, {"b_relu_input", floats({-1, 1})}},
       {},
       true},
      {"variances 1 and 4: 4 times", {{"a_relu_input", floats({-1, 1})}, {"b_relu_input", floats({-2, 2})}}, {}, false},
      {"a ratio equal to the threshold is allowed",
       {{"a_relu_input", floats({-1, 1})}, {"b_relu_input", floats({-2, 2})}},
       {{"threshold", "4"}},
       false},
      {"a ratio above a threshold of one's own",
       {{"a_relu_input", floats({-1, 1})}, {"b_relu_input", floats({-2, 2})}},
       {{"threshold", "3.9"}},
       true},
      {"one input without any variance",
       {{"a_relu_input", floats({1, 1})}, {"b_relu_input", floats({-2, 2})}},
       {},
       true},
      {"no input with any variance", {{"a_relu_input", floats({1, 1})}, {"b_relu_input", floats({2, 2})}}, {}, true},
      {"one input alone has no ratio", {{"a_relu_input", floats({1, 1})}}, {}, false},
      {"an input with NaN has no variance",
       {{"a_relu_input", floats({NAN, 1})}, {"b_relu_input", floats({-2, 2})}},
       {},
       false},
      {"other names are no inputs", {{"a", floats({-0.1F, 0.1F})}, {"b", floats({-1, 1})}}, {}, false},
      {"names of one's own",
       {{"a", floats({-0.1F, 0.1F})}, {"b", floats({-1, 1})}},
       {{"activation_inputs_regex", "^a$,^b$"}},
       true},
      {"a gradient with percentiles 0.018 apart", {{"gradient/w", ramp(0.001F)}}, {}, false},
      {"a gradient with percentiles 0.00018 apart", {{"gradient/w", ramp(0.00001F)}}, {}, true},
      {"the range is a parameter", {{"gradient/w", ramp(0.001F)}}, {{"distribution_range", "0.019"}}, true},
      {"a gradient of 19 elements has no percentiles", {{"gradient/w", filled(0, {19})}}, {}, false},
      {"a gradient of 20 elements has", {{"gradient/w", filled(0, {20})}}, {}, true},
      {"the narrowest gradient counts", {{"gradient/v", ramp(1)}, {"gradient/w", filled(0, {4, 5})}}, {}, true},
      {"a gradient with NaN has no percentiles", {{"gradient/w", filled(NAN, {20})}}, {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, c.values);
    EXPECT_EQ(world.met("PoorWeightInitialization", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(PoorWeightInitialization, TheLossMustReachANewBest) {
  struct Case {
    const char* what;
    std::vector<float> losses;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"a falling loss", {2.3F, 2.2F}, {}, {}},
      {"five steps without a new best", {2, 2, 2, 2, 2, 2, 2}, {}, {5, 6}},
      {"equal is not better", {2, 2, 2}, {{"patience", "2"}}, {2}},
      {"a new best starts again", {2, 3, 1, 3, 3}, {{"patience", "2"}}, {4}},
      {"a NaN is no loss", {2, NAN, NAN, 3, 3}, {{"patience", "2"}}, {4}},
      {"only the first steps are looked at", {1, 2, 2, 2, 2, 2, 2}, {{"patience", "2"}, {"steps", "4"}}, {2, 3}},
      {"steps may be written as a float", {1, 2, 2, 2, 2, 2, 2}, {{"patience", "2"}, {"steps", "3.0"}}, {2}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save_series("loss", c.losses);
    EXPECT_EQ(world.met("PoorWeightInitialization", c.parameters), c.met) << c.what;
  }
}

TEST(PoorWeightInitialization, AllSignsThereAreDataForOrAny) {
  RuleWorld world;
  world.save(0, {{"gradient/w", filled(0, {20})}, {"loss", scalar(1)}});
  world.save(1, {{"gradient/w", filled(0, {20})}, {"loss", scalar(1)}});
  world.save(2, {{"gradient/w", filled(0, {20})}});
  EXPECT_EQ(world.met("PoorWeightInitialization", {{"patience", "1"}}), (Steps{0, 1, 2}));
  EXPECT_EQ(world.met("PoorWeightInitialization", {{"patience", "1"}, {"combine", "all"}}), (Steps{1, 2}));
}

TEST(PoorWeightInitialization, OnlyTrainingStepsIfThereAreAny) {
  RuleWorld world;
  world.save(0, {{"gradient/w", filled(0, {20})}}, ModeStep{Mode::kEval, 0});
  EXPECT_EQ(world.met("PoorWeightInitialization"), Steps{0});
  world.save(1, {{"gradient/w", filled(0, {20})}}, ModeStep{Mode::kTrain, 0});
  EXPECT_EQ(world.met("PoorWeightInitialization"), Steps{1});
}

TEST(PoorWeightInitialization, WorkersAreJudgedApart) {
  RuleWorld world({}, {"a", "b"});
  world.save(0, {{"x_relu_input", floats({-1, 1})}, {"loss", scalar(1)}}, {}, "a");
  world.save(0, {{"x_relu_input", floats({-9, 9})}, {"loss", scalar(2)}}, {}, "b");
  world.save(1, {{"loss", scalar(0.9F)}}, {}, "a");
  world.save(1, {{"loss", scalar(2)}}, {}, "b");
  const RuleOutcome outcome = world.run("PoorWeightInitialization", {{"patience", "1"}});
  EXPECT_EQ(outcome.steps_met, Steps{1});
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "b");
}

TEST(SaturatedActivation, WorkedCases) {
  struct Case {
    const char* what;
    const char* name;
    Tensor value;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"all inputs of tanh at 12", "a_tanh_input", filled(12, {4, 2}), {}, true},
      {"half of the units is not more than half",
       "a_tanh_input",
       floats({12, 0, 12, 0, 12, 0, 12, 0}, {4, 2}),
       {},
       false},
      {"half of the units is more than 49 %",
       "a_tanh_input",
       floats({12, 0, 12, 0, 12, 0, 12, 0}, {4, 2}),
       {{"threshold_layer", "49"}},
       true},
      {"the sigmoid reaches further", "a_sigmoid_input", filled(12, {4, 2}), {}, false},
      {"the sigmoid below its bound", "a_sigmoid_input", filled(-24, {4, 2}), {}, true},
      {"the bound itself is outside", "a_tanh_input", filled(9, {4, 2}), {{"threshold_tanh_max", "9"}}, true},
      {"one active sample of four is 25 %", "a_tanh_input", floats({12, 12, 12, 0}, {4, 1}), {}, false},
      {"25 % are too few if 26 are asked",
       "a_tanh_input",
       floats({12, 12, 12, 0}, {4, 1}),
       {{"threshold_inactivity", "26"}},
       true},
      {"25 % are enough if 25 are asked",
       "a_tanh_input",
       floats({12, 12, 12, 0}, {4, 1}),
       {{"threshold_inactivity", "25"}},
       false},
      {"NaN is inactive", "a_tanh_input", filled(NAN, {4, 2}), {}, true},
      {"infinity is inactive", "a_sigmoid_input", filled(-kInf, {2, 2}), {}, true},
      {"a tensor of one dimension is one sample", "a_tanh_input", floats({12, 12, 0}), {}, true},
      {"tanh is found whatever the case", "Tanh_1", filled(12, {4, 2}), {{"tensor_regex", "Tanh"}}, true},
      {"what is neither tanh nor sigmoid is not judged", "gelu", filled(99, {4, 2}), {{"tensor_regex", "gelu"}}, false},
      {"a collection in place of the default pattern",
       "a_tanh_input",
       filled(12, {4, 2}),
       {{"collection_names", "losses"}},
       false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{c.name, c.value}});
    EXPECT_EQ(world.met("SaturatedActivation", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(SaturatedActivation, SkipsWhatItCannotJudge) {
  RuleWorld world;
  world.save(0, {{reduced("max", "a_tanh_input"), scalar(12)},
                 {"b_tanh_input", Tensor(std::vector<std::string>{"x"}, Shape{1})},
                 {"derived/unit_activity/c_tanh_input", filled(99, {4, 2})}});
  const RuleOutcome outcome = world.run("SaturatedActivation");
  EXPECT_TRUE(outcome.steps_met.empty());
  EXPECT_EQ(outcome.report.datapoints, 0);
  EXPECT_EQ(outcome.report.skipped, (std::map<std::string, std::int64_t>{{"text", 1}}));
}

TEST(DeadRelu, WorkedCases) {
  struct Case {
    const char* what;
    Tensor value;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"two of three never switch on", floats({0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0}, {4, 3}), {}, true},
      {"one of three never switches on", floats({0, 1, 0, 0, 1, 3, 0, 0, 0, 0, 0, 1}, {4, 3}), {}, false},
      {"half is not more than half", floats({0, 1, 0, 1}, {2, 2}), {}, false},
      {"the share is a parameter", floats({0, 1, 0, 1}, {2, 2}), {{"threshold_layer", "40"}}, true},
      {"negative outputs are no activity", filled(-1, {4, 2}), {}, true},
      {"NaN is no activity", filled(NAN, {4, 2}), {}, true},
      {"active in half of the samples, asked for more", floats({1, 0}, {2, 1}), {{"threshold_inactivity", "51"}}, true},
      {"active in half of the samples, asked for half",
       floats({1, 0}, {2, 1}),
       {{"threshold_inactivity", "50"}},
       false},
      {"too few samples", filled(0, {4, 3}), {{"min_samples", "5"}}, false},
      {"enough samples", filled(0, {4, 3}), {{"min_samples", "4"}}, true},
      {"by element three of four are dead", floats({1, 0, 0, 0}, {1, 1, 2, 2}), {}, true},
      {"by channel the one of them is alive", floats({1, 0, 0, 0}, {1, 1, 2, 2}), {{"unit", "channel"}}, false},
      {"two of three channels are dead", floats({0, 0, 1, 1, 0, 0}, {1, 3, 2}), {{"unit", "channel"}}, true},
      {"a tensor of one dimension is one sample", floats({0, 0, 1}), {}, true},
      {"integers", tools::tensor_of<std::int32_t>({0, 0, 0, 0}, {2, 2}), {}, true},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"layer_relu_output", c.value}});
    EXPECT_EQ(world.met("DeadRelu", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(DeadRelu, EveryWorkerCounts) {
  RuleWorld world({}, {"a", "b"});
  world.save(2, {{"x_relu_output", filled(1, {2, 2})}}, {}, "a");
  world.save(2, {{"x_relu_output", filled(0, {2, 2})}}, {}, "b");
  const RuleOutcome outcome = world.run("DeadRelu");
  EXPECT_EQ(outcome.steps_met, Steps{2});
  EXPECT_EQ(outcome.report.datapoints, 2);
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "b");
  EXPECT_EQ(outcome.report.violations()[0].value, 100);
  EXPECT_TRUE(world.met("DeadRelu", {}, {.first_worker_only = true}).empty());
}

TEST(ActivationRules, BadWordsAreNamed) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  const auto unit = make_rule("DeadRelu", {{"unit", "layer"}}, {.base = &trial});
  ASSERT_FALSE(unit.ok());
  EXPECT_EQ(unit.error().message, "rule DeadRelu: unit is \"layer\"; allowed: element, channel");
  const auto combine = make_rule("PoorWeightInitialization", {{"combine", "some"}}, {.base = &trial});
  ASSERT_FALSE(combine.ok());
  EXPECT_EQ(combine.error().message, "rule PoorWeightInitialization: combine is \"some\"; allowed: any, all");
}

}  // namespace
}  // namespace tornasole::rules
