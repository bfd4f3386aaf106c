// DormantUnits, DeadByActivity, SaturationHistogram, ActivationOutlier, GradientOutlier, DepthProfile, ConstantOutput.

#include <cmath>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

struct ValueCase {
  const char* what;
  const char* name;
  Tensor value;
  Parameters parameters;
  bool is_met;
};
void check(const char* rule, std::span<const ValueCase> cases) {
  for (const ValueCase& c : cases) {
    RuleWorld world;
    world.save(0, {{c.name, c.value}});
    EXPECT_EQ(world.met(rule, c.parameters), c.is_met ? Steps{0} : Steps{}) << rule << ": " << c.what;
  }
}

TEST(DormantUnits, WorkedCases) {
  const ValueCase cases[] = {
      {"two of four are dormant, two fifths are allowed",
       "a_output_0",
       floats({1, 1, 0, 0}, {1, 4}),
       {{"share", "0.4"}},
       true},
      {"half is not more than half", "a_output_0", floats({1, 1, 0, 0}, {1, 4}), {}, false},
      {"all nearly alike", "a_output_0", floats({1, 0.9F, 0.8F, 0.7F}, {1, 4}), {}, false},
      {"negative activity is activity", "a_output_0", floats({-1, 1, -1, 1}, {1, 4}), {}, false},
      {"activity in one sample counts", "a_output_0", floats({1, 1, 0, 1, 1, 0, 1, 0}, {2, 4}), {}, false},
      {"a layer of zeros sleeps", "a_output_0", filled(0, {2, 3}), {}, true},
      {"a score equal to tau is dormant",
       "a_output_0",
       floats({0.5F, 1.5F, 1.5F, 0.5F}, {1, 4}),
       {{"tau", "0.5"}, {"share", "0.4"}},
       true},
      {"NaN is not dormant", "a_output_0", floats({NAN, 0, 0, 0}, {1, 4}), {}, false},
      {"by channel", "a_output_0", floats({1, 0, 0, 0, 0, 0}, {1, 3, 2}), {{"unit", "channel"}}, true},
      {"the output of a loss is no layer", "MSELoss_output_0", filled(0, {2, 3}), {}, false},
      {"names of one's own", "x", filled(0, {2, 3}), {{"tensor_regex", "x"}}, true},
  };
  check("DormantUnits", cases);
}

TEST(DormantUnits, GrowthSinceTheFirstStep) {
  RuleWorld world;
  world.save(0, {{"a_output_0", floats({1, 1, 1, 1, 0}, {1, 5})}});
  world.save(1, {{"a_output_0", floats({1, 1, 1, 1, 0}, {1, 5})}});
  world.save(2, {{"a_output_0", floats({1, 1, 1, 0, 0}, {1, 5})}});
  EXPECT_EQ(world.met("DormantUnits"), Steps{2});
  EXPECT_TRUE(world.met("DormantUnits", {{"growth", "0.21"}}).empty());
}

TEST(DeadByActivity, WorkedCases) {
  // 20 samples of one unit: active in one, or in two of them.
  std::vector<float> once(20, 0), twice(20, 0);
  once[3] = 1;
  twice[3] = twice[7] = 1;
  const ValueCase cases[] = {
      {"nothing but zeros", "a_relu_output", filled(0, {4, 2}), {}, true},
      {"one of two units", "a_relu_output", floats({0, 1, 0, 1}, {2, 2}), {}, false},
      {"two of three units", "a_relu_output", floats({0, 0, 1, 0, 0, 1}, {2, 3}), {}, true},
      {"active in a tenth of the samples", "a_relu_output", floats(twice, {20, 1}), {}, false},
      {"active in a twentieth: the percentile is between",
       "a_relu_output",
       floats(once, {20, 1}),
       {{"eps", "0.06"}},
       true},
      {"a magnitude of eps is not below it", "a_relu_output", filled(0.5F, {2, 2}), {{"eps", "0.5"}}, false},
      {"NaN has no percentile", "a_relu_output", filled(NAN, {2, 2}), {}, false},
      {"by sign: 7 of 10 are not above zero",
       "a_relu_output",
       floats({0, 0, 0, 0, 0, -1, 0, 1, 1, 1}, {5, 2}),
       {{"method", "sign"}},
       true},
      {"by sign: 6 of 10",
       "a_relu_output",
       floats({0, 0, 0, 0, 0, -1, 1, 1, 1, 1}, {5, 2}),
       {{"method", "sign"}},
       false},
  };
  check("DeadByActivity", cases);
}

TEST(SaturationHistogram, WorkedCases) {
  const ValueCase cases[] = {
      {"tanh at its bounds", "tanh1_output_0", floats({-1, 1, 1, -1}, {4, 1}), {}, true},
      {"tanh in the middle", "tanh1_output_0", floats({-0.1F, 0.1F, 0, 0.2F}, {4, 1}), {}, false},
      {"sigmoid at its bounds", "Sigmoid_output_0", floats({0, 1, 1, 0}, {4, 1}), {}, true},
      {"sigmoid at a half", "Sigmoid_output_0", filled(0.5F, {4, 1}), {}, false},
      {"half of the units is not more than half", "tanh1_output_0", floats({1, 0, 1, 0}, {2, 2}), {}, false},
      {"two of three are", "tanh1_output_0", floats({1, 0, -1, 1, 0, 1}, {2, 3}), {}, true},
      {"bounds of one's own", "hard", filled(6, {4, 1}), {{"tensor_regex", "hard"}, {"low", "0"}, {"high", "6"}}, true},
      {"inputs beyond 5", "tanh1_input_0", floats({6, -6, 0}, {3, 1}), {{"method", "inputs"}}, true},
      {"half of the inputs beyond 5", "tanh1_input_0", floats({6, 5}, {2, 1}), {{"method", "inputs"}}, false},
  };
  check("SaturationHistogram", cases);
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  EXPECT_FALSE(make_rule("SaturationHistogram", {{"low", "0"}}, {.base = &trial}).ok());
  EXPECT_FALSE(make_rule("SaturationHistogram", {{"low", "1"}, {"high", "0"}}, {.base = &trial}).ok());
}

Tensor one_large(std::size_t count, float common, float large) {
  std::vector<float> values(count, common);
  values.back() = large;
  return floats(values, {1, static_cast<std::int64_t>(count)});
}
// Deviates of a normal distribution, by its quantiles: about 3.3 at most.
Tensor normal_values() {
  std::vector<float> values;
  for (int i = 1; i < 1000; ++i) {
    const double p = i / 1000.0;
    const double t = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
    const double z = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t);
    values.push_back(static_cast<float>(p < 0.5 ? -z : z));
  }
  return floats(values, {1, 999});
}

TEST(ActivationOutlier, WorkedCases) {
  const ValueCase cases[] = {
      {"999 of 0.1 and one of 500", "a_output_0", one_large(1000, 0.1F, 500), {}, true},
      {"normal values", "a_output_0", normal_values(), {}, false},
      {"large beside a median that is large", "a_output_0", one_large(1000, 1, 500), {}, false},
      {"many times the median, and small", "a_output_0", one_large(1000, 0.001F, 90), {}, false},
      {"exactly at the limit", "a_output_0", one_large(1000, 0.0F, 100), {}, false},
      {"kurtosis of one among many", "a_output_0", one_large(1000, 0.1F, 90), {{"kurtosis", "100"}}, true},
      {"kurtosis of normal values is about 3", "a_output_0", normal_values(), {{"kurtosis", "3.5"}}, false},
      {"kurtosis is not looked at unless asked for", "a_output_0", one_large(1000, 0.1F, 90), {}, false},
  };
  check("ActivationOutlier", cases);
}

TEST(ActivationOutlier, KnowsItsPlaces) {
  RuleWorld world;
  world.save(0, {{"a_output_0", one_large(1000, 0.1F, 500)}});
  world.save(1, {{"a_output_0", one_large(1000, 0.1F, 600)}});
  std::vector<float> elsewhere(1000, 0.1F);
  elsewhere[7] = 700;
  world.save(2, {{"a_output_0", floats(elsewhere, {1, 1000})}});
  const auto violations = world.run("ActivationOutlier").report.violations();
  ASSERT_EQ(violations.size(), 3U);
  EXPECT_TRUE(violations[0].message.ends_with("; at 999"));
  EXPECT_TRUE(violations[1].message.ends_with("; again at 999"));
  EXPECT_TRUE(violations[2].message.ends_with("; at new places along the last axis: 7")) << violations[2].message;
}

TEST(GradientOutlier, WorkedCases) {
  const ValueCase cases[] = {
      {"one element of two million", "gradient/w", one_large(2'000'000, 0, 1), {}, true},
      {"one element of ten thousand", "gradient/w", one_large(10'000, 0, 1), {}, false},
      {"one of ten thousand beside a smaller ratio", "gradient/w", one_large(10'000, 0, 1), {{"ratio", "99"}}, true},
      {"zeros", "gradient/w", filled(0, {8}), {}, false},
      {"NaN", "gradient/w", filled(NAN, {8}), {}, false},
  };
  check("GradientOutlier", cases);
}

TEST(GradientOutlier, GrowsBeyondItsHistory) {
  struct Case {
    const char* what;
    float last;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"eleven times the mean", 11, {}, true},
      {"ten times the mean", 10, {}, false},
      {"too few earlier steps", 11, {{"min_points", "11"}}, false},
      {"a factor of one's own", 10, {{"k", "9"}}, true},
  };
  for (const Case& c : cases) {
    RuleWorld values, norms;
    for (std::int64_t step = 0; step < 10; ++step) {
      values.save(step, {{"gradient/w", filled(1, {4})}});
      norms.save(step, {{reduced("l2", "gradient/w"), scalar(2)}});
    }
    values.save(10, {{"gradient/w", filled(c.last, {4})}});
    norms.save(10, {{reduced("l2", "gradient/w"), scalar(2 * c.last)}});
    EXPECT_EQ(values.met("GradientOutlier", c.parameters), c.is_met ? Steps{10} : Steps{}) << c.what;
    EXPECT_EQ(norms.met("GradientOutlier", c.parameters), c.is_met ? Steps{10} : Steps{}) << c.what << ", norms";
  }
}

TEST(DepthProfile, WorkedCases) {
  struct Case {
    const char* what;
    Values gradients;
    const char* message;  // how it begins; empty: quiet
  };
  const Case cases[] = {
      {"a first layer a thousandth of the last, and small",
       {{"gradient/a", filled(1e-5F, {1, 1})}, {"gradient/b", filled(1, {1, 1})}},
       "gradients vanish"},
      {"a small part of the last, yet not small",
       {{"gradient/a", filled(1e-3F, {1, 1})}, {"gradient/b", filled(10, {1, 1})}},
       ""},
      {"small, and not a small part of the last",
       {{"gradient/a", filled(1e-5F, {1, 1})}, {"gradient/b", filled(1e-3F, {1, 1})}},
       ""},
      {"71 times the last",
       {{"gradient/a", filled(71, {1, 1})}, {"gradient/b", filled(1, {1, 1})}},
       "gradients explode"},
      {"70 times the last", {{"gradient/a", filled(70, {1, 1})}, {"gradient/b", filled(1, {1, 1})}}, ""},
      {"biases are no layers",
       {{"gradient/a", filled(71, {1})}, {"gradient/b", filled(1, {1, 1})}, {"gradient/c", filled(1, {1, 1})}},
       ""},
      {"seven of ten elements are zero",
       {{"gradient/a", floats({0, 0, 0, 0, 1}, {1, 5})}, {"gradient/b", floats({0, 0, 0, 1, 1})}},
       "gradients die: 0.7"},
      {"six of ten", {{"gradient/a", floats({0, 0, 0, 1, 1}, {1, 5})}, {"gradient/b", floats({0, 0, 0, 1, 1})}}, ""},
      {"one layer has no profile", {{"gradient/a", filled(1e-9F, {1, 1})}}, ""},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, c.gradients);
    const auto violations = world.run("DepthProfile").report.violations();
    EXPECT_EQ(violations.empty(), std::string(c.message).empty()) << c.what;
    if (!violations.empty()) {
      EXPECT_TRUE(violations[0].message.starts_with(c.message)) << violations[0].message;
    }
  }
}

TEST(ConstantOutput, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<Tensor> outputs;  // step by step
    Parameters parameters;
    Steps met;
  };
  const Tensor equal = floats({1, 2, 1, 2}, {2, 2});
  const Tensor different = floats({1, 2, 3, 4}, {2, 2});
  const Case cases[] = {
      {"equal for all samples of three batches", {equal, equal, equal}, {}, {2}},
      {"they differ", {different, different, different}, {}, {}},
      {"one batch in between differs", {equal, different, equal, equal}, {}, {}},
      {"two batches are too few", {equal, equal}, {}, {}},
      {"fewer may be asked for", {equal}, {{"patience", "1"}}, {0}},
      {"a difference of rounding", {floats({1, 1.0000001F}, {2, 1})}, {{"patience", "1"}, {"eps", "1e-10"}}, {0}},
      {"a small difference", {floats({1, 1.0001F}, {2, 1})}, {{"patience", "1"}}, {}},
      {"zeros are constant, too", {filled(0, {2, 2})}, {{"patience", "1"}}, {0}},
      {"one sample is equal to itself", {floats({1, 2}, {1, 2})}, {{"patience", "1"}}, {}},
      {"a column of one output", {floats({3, 3, 3})}, {{"patience", "1"}}, {0}},
      {"NaN is not constant", {filled(NAN, {2, 2})}, {{"patience", "1"}}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    for (std::size_t i = 0; i < c.outputs.size(); ++i) {
      world.save(static_cast<std::int64_t>(i), {{"predictions", c.outputs[i]}});
    }
    EXPECT_EQ(world.met("ConstantOutput", c.parameters), c.met) << c.what;
  }
}

TEST(ConstantOutput, EqualInputsExcuseEqualOutputs) {
  RuleWorld world(Collections{{"inputs", {"^in_"}}});
  world.save(0, {{"in_0", filled(7, {2, 3})}, {"predictions", filled(1, {2, 2})}});
  world.save(1, {{"in_0", floats({1, 2}, {2, 1})}, {"predictions", filled(1, {2, 2})}});
  EXPECT_EQ(world.met("ConstantOutput", {{"patience", "1"}}), Steps{1});
  EXPECT_EQ(world.met("ConstantOutput", {{"patience", "1"}, {"tensor_regex", "in_"}}), Steps{});
}

}  // namespace
}  // namespace tornasole::rules
