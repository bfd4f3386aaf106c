// NonFiniteProvenance, FormatRange, LossScaleCollapse.

#include <cmath>

#include "base/json.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

constexpr float kInf = INFINITY;
using Parameters = std::map<std::string, std::string>;

TEST(NonFiniteProvenance, NamesThePartInWhichItBegan) {
  struct Case {
    const char* what;
    Values values;
    const char* verdict;  // empty: none
    const char* tensor;
  };
  const Case cases[] = {
      {"the first output that is not finite",
       {{"layer1_output_0", scalar(1)}, {"layer2_output_0", scalar(kInf)}, {"layer3_output_0", scalar(NAN)}},
       "forward",
       "layer2_output_0"},
      {"nothing is wrong", {{"layer1_output_0", scalar(1)}, {"loss", scalar(2)}}, "", ""},
      {"an input is to blame before all others",
       {{"fc.weight", scalar(NAN)}, {"in_0", scalar(NAN)}, {"layer1_output_0", scalar(NAN)}},
       "input",
       "in_0"},
      {"a weight before the outputs it spoils",
       {{"layer1_output_0", scalar(NAN)}, {"fc.weight", scalar(NAN)}},
       "weight",
       "fc.weight"},
      {"a loss of finite outputs", {{"layer1_output_0", scalar(1)}, {"loss", scalar(NAN)}}, "loss", "loss"},
      {"a loss whose outputs nobody saved", {{"loss", scalar(NAN)}}, "unknown", "loss"},
      {"a gradient after a finite loss",
       {{"loss", scalar(1)}, {"gradient/b", scalar(kInf)}, {"gradient/a", scalar(NAN)}},
       "backward",
       "gradient/b"},
      {"a gradient alone", {{"gradient/b", scalar(-kInf)}}, "unknown", "gradient/b"},
      {"the state of the optimizer after finite gradients",
       {{"gradient/b", scalar(1)}, {"optimizer_state/exp_avg/b", scalar(NAN)}},
       "optimizer",
       "optimizer_state/exp_avg/b"},
      {"a tensor of no known part", {{"mine", scalar(NAN)}}, "unknown", "mine"},
      {"a stored reduction tells, too",
       {{reduced("mean", "layer1_output_0"), scalar(NAN)}},
       "forward",
       "layer1_output_0"},
  };
  for (const Case& c : cases) {
    RuleWorld world(Collections{{"inputs", {"^in_"}}});
    world.save(4, c.values);
    const RuleOutcome outcome = world.run("NonFiniteProvenance");
    if (c.verdict == std::string()) {
      EXPECT_TRUE(outcome.steps_met.empty()) << c.what;
      continue;
    }
    EXPECT_EQ(outcome.steps_met, Steps{4}) << c.what;
    const auto json = parse_json(outcome.report.to_json());
    ASSERT_TRUE(json.ok()) << json.error().message;
    const Json& origin = json->find("Details")->find("origins")->as_array()->at(0);
    EXPECT_EQ(*origin.find("verdict")->as_string(), c.verdict) << c.what;
    EXPECT_EQ(*origin.find("tensor")->as_string(), c.tensor) << c.what;
  }
}

TEST(NonFiniteProvenance, ShowsTheStepsBeforeAndSpeaksOnce) {
  RuleWorld world;
  for (const std::int64_t step : {0, 1, 2, 3}) {
    world.save(step, {{"a_output_0", floats({static_cast<float>(step), -1})}});
  }
  world.save(4, {{"a_output_0", floats({NAN, kInf})}});
  world.save(5, {{"a_output_0", floats({NAN, kInf})}});
  const RuleOutcome outcome = world.run("NonFiniteProvenance");
  EXPECT_EQ(outcome.steps_met, Steps{4});
  EXPECT_EQ(outcome.report.violations()[0].message,
            "a_output_0: the first that is not finite (forward): 1 NaN, 1 +Inf, 0 -Inf; largest magnitudes before: 1, "
            "2, 3");
  const auto json = parse_json(outcome.report.to_json());
  const Json& origin = json->find("Details")->find("origins")->as_array()->at(0);
  EXPECT_EQ(*origin.find("nan")->as_int(), 1);
  EXPECT_EQ(*origin.find("positive_infinite")->as_int(), 1);
  const Json& before = origin.find("before")->as_array()->at(2);
  EXPECT_EQ(*before.find("step")->as_int(), 3);
  EXPECT_DOUBLE_EQ(*before.find("share_of_format")->as_double(), 3 / 3.4028234663852886e38);
}

TEST(NonFiniteProvenance, EveryWorkerThatShowsItIsNamed) {
  RuleWorld world({}, {"a", "b", "c"});
  world.save(0, {{"x_output_0", scalar(NAN)}}, {}, "a");
  world.save(0, {{"x_output_0", scalar(1)}}, {}, "b");
  world.save(0, {{"x_output_0", scalar(1)}, {"fc.weight", scalar(NAN)}}, {}, "c");
  const auto violations = world.run("NonFiniteProvenance").report.violations();
  ASSERT_EQ(violations.size(), 2U);
  EXPECT_EQ(violations[0].worker, "a");
  EXPECT_EQ(violations[1].worker, "c");
  EXPECT_EQ(violations[1].tensor, "fc.weight");
}

TEST(FormatRange, WorkedCases) {
  struct Case {
    const char* what;
    Tensor value;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"70000 is beyond fp16", floats({70000, 1}), {}, true},
      {"60000 is not", floats({60000, 1}), {}, false},
      {"70000 is within bf16", floats({70000, 1}), {{"format", "bf16"}}, false},
      {"half may overflow if half is allowed", floats({70000, 1}), {{"max_overflow", "50"}}, false},
      {"450 is beyond fp8 e4m3", floats({450, 1}), {{"format", "fp8_e4m3"}}, true},
      {"450 is within fp8 e5m2", floats({450, 1}), {{"format", "fp8_e5m2"}}, false},
      {"58000 is beyond fp8 e5m2", floats({58000, 1}), {{"format", "fp8_e5m2"}}, true},
      {"a scale is applied first", floats({700, 1}), {{"scale", "100"}}, true},
      {"half of the smallest number of fp16 becomes zero", floats({0x1p-25F}), {}, true},
      {"a little more does not", floats({0x1.1p-25F}), {}, false},
      {"half of the numbers may vanish", floats({1e-9F, 1}), {}, false},
      {"two of three may not", floats({1e-9F, -1e-9F, 1}), {}, true},
      {"zeros are not counted", floats({1e-9F, 0, 0, 0}), {}, true},
      {"zeros alone lose nothing", floats({0, 0}), {}, false},
      {"NaN neither", floats({NAN, 1}), {}, false},
      {"an infinity is beyond every format", floats({kInf, 1}), {{"format", "bf16"}}, true},
      {"integers are not judged", tools::tensor_of<std::int64_t>({1'000'000}), {}, false},
      {"other tensors may be chosen", floats({70000}), {{"tensor_regex", "y"}}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"x", c.value}});
    EXPECT_EQ(world.met("FormatRange", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
  RuleWorld world;
  world.save(0, {{"x", floats({70000, 1})}});
  const auto violation = world.run("FormatRange").report.violations()[0];
  EXPECT_EQ(violation.value, 50);
  Trial trial = world.open();
  const auto made = make_rule("FormatRange", {{"format", "fp4"}}, {.base = &trial});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "rule FormatRange: format is \"fp4\"; allowed: fp16, bf16, fp8_e4m3, fp8_e5m2");
}

TEST(LossScaleCollapse, WorkedCases) {
  std::vector<float> halving;
  for (int i = 0; i < 12; ++i) halving.push_back(65536.0F / static_cast<float>(1 << i));
  std::vector<float> slow(41);
  for (std::size_t i = 0; i < slow.size(); ++i) slow[i] = std::ldexp(65536.0F, -static_cast<int>(i / 4));
  struct Case {
    const char* what;
    std::vector<float> scales;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"ten halvings in a row", halving, {}, {10, 11}},
      {"one halving in four steps is too rare", slow, {}, {}},
      {"fewer may be asked for", {4, 2, 2, 1}, {{"k", "2"}}, {3}},
      {"those before the window do not count", {4, 2, 2, 1}, {{"k", "2"}, {"window", "2"}}, {}},
      {"below one", {2, 1, 0.5F}, {}, {2}},
      {"a scale that grows", {1, 2, 4, 8}, {}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save_series("scalar/loss_scale", c.scales);
    EXPECT_EQ(world.met("LossScaleCollapse", c.parameters), c.met) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::rules
