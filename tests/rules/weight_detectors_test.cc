// SilentOptimizer, FrozenLayers, MissingZeroGrad, LearningRateSanity, WeightDivergence, SymmetricUnits, RankCollapse.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "rules/rule_world.h"
#include "rules/singular_values.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

TEST(SilentOptimizer, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<float> weights, others, gradients;  // step by step
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"equal at four steps with gradients", {1, 1, 1, 1}, {2, 2, 2, 2}, {0.5F, 0.5F, 0.5F, 0.5F}, {}, {3}},
      {"one weight changes", {1, 1, 1, 1}, {2, 2, 3, 3}, {0.5F, 0.5F, 0.5F, 0.5F}, {}, {}},
      {"no gradients", {1, 1, 1, 1}, {2, 2, 2, 2}, {0, 0, 0, 0}, {}, {}},
      {"no gradient at one of the steps", {1, 1, 1, 1}, {2, 2, 2, 2}, {0.5F, 0.5F, 0, 0.5F}, {}, {}},
      {"a gradient that is NaN", {1, 1, 1, 1}, {2, 2, 2, 2}, {0.5F, NAN, 0.5F, 0.5F}, {}, {}},
      {"three steps are too few", {1, 1, 1}, {2, 2, 2}, {0.5F, 0.5F, 0.5F}, {}, {}},
      {"fewer may be asked for", {1, 1}, {2, 2}, {0.5F, 0.5F}, {{"patience", "1"}}, {1}},
      {"zero and negative zero differ by a bit", {0, -0.0F, 0, -0.0F}, {2, 2, 2, 2}, {1, 1, 1, 1}, {}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    for (std::size_t i = 0; i < c.weights.size(); ++i) {
      world.save(static_cast<std::int64_t>(i), {{"a.weight", scalar(c.weights[i])},
                                                {"b.bias", scalar(c.others[i])},
                                                {"gradient/a.weight", scalar(c.gradients[i])}});
    }
    EXPECT_EQ(world.met("SilentOptimizer", c.parameters), c.met) << c.what;
  }
}

TEST(SilentOptimizer, StoredHashesAndNormsAreEnough) {
  RuleWorld world;
  for (const std::int64_t step : {0, 1, 2, 3}) {
    world.save(step, {{reduced("mean", "a.weight"), scalar(1)},
                      {"derived/hash/a.weight", tools::tensor_of<std::int64_t>({42})},
                      {reduced("l2", "gradient/a.weight"), scalar(0.5F)}});
  }
  EXPECT_EQ(world.met("SilentOptimizer"), Steps{3});
}

TEST(SilentOptimizer, EvaluationStepsDoNotCount) {
  RuleWorld world;
  for (const std::int64_t step : {0, 1, 2, 3}) {
    const Mode mode = step < 2 ? Mode::kTrain : Mode::kEval;
    world.save(step, {{"a.weight", scalar(1)}, {"gradient/a.weight", scalar(1)}}, ModeStep{mode, step % 2});
  }
  EXPECT_TRUE(world.met("SilentOptimizer").empty());
}

TEST(FrozenLayers, WorkedCases) {
  struct Case {
    const char* what;
    int steps;
    bool does_other_change;
    Values further;
    Parameters parameters;
    const char* message;  // how the last ends; empty: quiet
  };
  const Case cases[] = {
      {"unchanged for five steps without a gradient", 6, true, {}, {}, "its gradient is absent"},
      {"with a gradient of zeros", 6, true, {{"gradient/a.weight", floats({0, 0})}}, {}, "its gradient is zero"},
      {"with a gradient", 6, true, {{"gradient/a.weight", floats({0, 1})}}, {}, "its gradient is not zero"},
      {"four steps are too few", 5, true, {}, {}, ""},
      {"fewer may be asked for", 5, true, {}, {{"patience", "4"}}, "its gradient is absent"},
      {"nothing changes", 6, false, {}, {}, ""},
      {"frozen on purpose", 6, true, {}, {{"expected", "^a"}}, ""},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    for (int step = 0; step < c.steps; ++step) {
      Values values = c.further;
      values.emplace_back("a.weight", floats({1, 2}));
      values.emplace_back("b.weight", scalar(c.does_other_change ? static_cast<float>(step) : 0));
      world.save(step, std::move(values));
    }
    const RuleOutcome outcome = world.run("FrozenLayers", c.parameters);
    if (c.message == std::string()) {
      EXPECT_TRUE(outcome.steps_met.empty()) << c.what;
      continue;
    }
    EXPECT_EQ(outcome.steps_met, Steps{c.steps - 1}) << c.what;
    EXPECT_EQ(outcome.report.tensors.size(), 1U) << c.what;
    EXPECT_TRUE(outcome.report.violations()[0].message.ends_with(c.message)) << c.what;
  }
}

// Gradients of 200 elements, mean 0.2, deviation 1: as they are, or added up.
std::vector<Tensor> gradient_series(int steps, bool add_up) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.2F, 1);
  std::vector<Tensor> series;
  std::vector<float> sum(200, 0);
  for (int step = 0; step < steps; ++step) {
    for (float& x : sum) x = (add_up ? x : 0) + normal(random);
    series.push_back(floats(sum));
  }
  return series;
}

TEST(MissingZeroGrad, WorkedCases) {
  struct Case {
    const char* what;
    bool add_up;
    std::int64_t stride;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"gradients that add up", true, 1, {}, true},
      {"gradients that do not", false, 1, {}, false},
      {"steps in between were not saved", true, 2, {}, false},
      {"every second step is one of the optimizer", true, 2, {{"period", "2"}}, true},
      {"too few steps", true, 1, {{"window", "17"}}, false},
      {"alike beyond any doubt", true, 1, {{"cosine", "0.9999"}}, false},
      {"grown beyond all bounds", true, 1, {{"growth", "100"}}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world(Collections{{"optimizer_gradients", {"^og/"}}});
    const auto series = gradient_series(16, c.add_up);
    for (std::size_t i = 0; i < series.size(); ++i) {
      world.save(static_cast<std::int64_t>(i) * c.stride, {{"og/a", series[i]}, {"og/b", floats({0})}});
    }
    const Steps met = world.met("MissingZeroGrad", c.parameters);
    EXPECT_EQ(!met.empty(), c.is_met) << c.what;
  }
}

TEST(MissingZeroGrad, StoredNormsAndCosinesAreEnough) {
  RuleWorld world(Collections{{"optimizer_gradients", {"^og/"}}});
  for (std::int64_t step = 0; step < 12; ++step) {
    const auto norm = static_cast<float>(step + 1);
    world.save(step, {{reduced("l2", "og/a"), scalar(norm)},
                      {"derived/cosine_previous/og/a", tools::tensor_of<double>({0.95, static_cast<double>(step)})}});
  }
  EXPECT_EQ(world.met("MissingZeroGrad"), (Steps{8, 9, 10, 11}));
}

TEST(LearningRateSanity, WorkedCases) {
  struct Case {
    const char* what;
    float factor;  // of the weight, from step to step
    std::int64_t stride;
    Parameters parameters;
    Steps met;
  };
  const Parameters soon = {{"warmup", "1"}, {"patience", "2"}};
  const Case cases[] = {
      {"a fifth of its size at each step", 1.2F, 1, soon, {3, 4, 5}},
      {"a hundredth", 1.01F, 1, soon, {}},
      {"nothing", 1, 1, soon, {3, 4, 5}},
      {"not yet after the usual warm-up", 1.2F, 1, {}, {}},
      {"limits of one's own", 1.2F, 1, {{"warmup", "0"}, {"patience", "5"}, {"high", "0.19"}}, {5}},
      {"steps in between were not saved", 1.2F, 2, soon, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    float weight = 1;
    for (std::int64_t i = 0; i < 6; ++i) {
      world.save(i * c.stride, {{"a.weight", floats({weight, 0})}, {"zero.weight", floats({0})}});
      weight *= c.factor;
    }
    EXPECT_EQ(world.met("LearningRateSanity", c.parameters), c.met) << c.what;
  }
}

TEST(LearningRateSanity, TakesStoredUpdates) {
  RuleWorld world;
  for (const std::int64_t step : {0, 10, 20}) {
    world.save(step, {{reduced("mean", "a.weight"), scalar(1)},
                      {"derived/update/a.weight", tools::tensor_of<double>({0.5, 1})}});
  }
  const RuleOutcome outcome = world.run("LearningRateSanity", {{"warmup", "0"}, {"patience", "3"}});
  EXPECT_EQ(outcome.steps_met, Steps{20});
  EXPECT_EQ(outcome.report.violations()[0].value, 0.5);
}

TEST(WeightDivergence, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<float> weights;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"beyond 1e8", {1, 2e8F}, {}, {1}},
      {"1e8 itself", {1e8F}, {}, {}},
      {"negative weights count by magnitude", {-2e8F}, {}, {0}},
      {"doubled five times in a row", {1, 2, 4, 8, 16, 32, 64}, {}, {5, 6}},
      {"doubled four times", {1, 2, 4, 8, 16, 31}, {}, {}},
      {"other limits", {1, 3, 9}, {{"factor", "3"}, {"checks", "2"}}, {2}},
      {"NaN does not grow", {1, NAN, 4, 8, 16, 32}, {}, {}},
      {"from zero there is no factor", {0, 1, 2, 4, 8, 16}, {}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save_series("a.weight", c.weights);
    EXPECT_EQ(world.met("WeightDivergence", c.parameters), c.met) << c.what;
  }
}

TEST(SymmetricUnits, WorkedCases) {
  struct Case {
    const char* what;
    Tensor weight;
    Parameters parameters;
    const char* message;  // empty: quiet
  };
  const Case cases[] = {
      {"rows that differ", floats({1, 2, 3, 4}, {2, 2}), {}, ""},
      {"two equal rows",
       floats({1, 2, 3, 4, 1, 2}, {3, 2}),
       {},
       "a.weight: 1 of 3 rows are equal to another at the start, first 0 and 2"},
      {"all elements equal", filled(0.5F, {3, 2}), {}, "a.weight: all elements are equal at the start"},
      {"equal columns are no equal units", floats({1, 1, 2, 2}, {2, 2}), {}, ""},
      {"kernels of a convolution",
       floats({1, 2, 1, 2}, {2, 1, 2}),
       {},
       "a.weight: 1 of 2 rows are equal to another at the start, first 0 and 1"},
      {"a vector has no units", filled(1, {4}), {}, ""},
      {"left out", filled(1, {4, 4}), {{"exclude_regex", "^a"}}, ""},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"a.weight", c.weight}});
    world.save(1, {{"a.weight", filled(1, {2, 2})}});  // only the start counts
    const auto violations = world.run("SymmetricUnits", c.parameters).report.violations();
    EXPECT_EQ(violations.empty() ? "" : violations[0].message, c.message) << c.what;
    EXPECT_LE(violations.size(), 1U) << c.what;
  }
}

// Square, with these numbers on its diagonal.
Tensor diagonal(const std::vector<float>& numbers) {
  std::vector<float> values(numbers.size() * numbers.size(), 0);
  for (std::size_t i = 0; i < numbers.size(); ++i) values[i * numbers.size() + i] = numbers[i];
  const auto size = static_cast<std::int64_t>(numbers.size());
  return floats(values, {size, size});
}

TEST(RankCollapse, WorkedCases) {
  struct Case {
    const char* what;
    Tensor first, later;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"from four directions to one", diagonal({1, 1, 1, 1}), diagonal({1, 0, 0, 0}), {}, true},
      {"unchanged", diagonal({1, 1, 1, 1}), diagonal({1, 1, 1, 1}), {}, false},
      {"from four to three is not below the half", diagonal({1, 1, 1, 1}), diagonal({1, 1, 1, 0}), {}, false},
      {"more may be asked for", diagonal({1, 1, 1, 1}), diagonal({1, 1, 1, 0}), {{"drop", "0.8"}}, true},
      {"size does not matter", diagonal({1, 1, 1, 1}), diagonal({1e-9F, 1e-9F, 1e-9F, 1e-9F}), {}, false},
      {"stable rank", diagonal({1, 1, 1, 1}), diagonal({1, 0.5F, 0.5F, 0.5F}), {{"measure", "stable"}}, true},
      {"effective rank of the same", diagonal({1, 1, 1, 1}), diagonal({1, 0.5F, 0.5F, 0.5F}), {}, false},
      {"srank leaves out what is small",
       diagonal({1, 1, 1, 1}),
       diagonal({1, 1e-3F, 1e-3F, 1e-3F}),
       {{"measure", "srank"}},
       true},
      {"a rank far below what is possible", diagonal({1, 1, 1, 1}), diagonal({1, 1, 1, 1}), {{"floor", "1.5"}}, true},
      {"zeros have no rank", diagonal({1, 1}), diagonal({0, 0}), {}, true},
      {"NaN is not judged", diagonal({1, 1}), diagonal({NAN, 0}), {}, false},
      {"kernels of a convolution are no matrix", filled(1, {2, 2, 2}), filled(0, {2, 2, 2}), {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"a.weight", c.first}});
    world.save(1, {{"a.weight", c.later}});
    const Steps met = world.met("RankCollapse", c.parameters);
    EXPECT_EQ(!met.empty() && met.back() == 1, c.is_met) << c.what;
  }
}

TEST(SingularValues, AgreeWithWhatIsKnown) {
  struct Case {
    const char* what;
    std::vector<double> matrix;
    std::size_t rows, columns;
    std::vector<double> values;
  };
  const Case cases[] = {
      {"one number", {-3}, 1, 1, {3}},
      {"a row", {3, 4}, 1, 2, {5}},
      {"a column", {3, 4}, 2, 1, {5}},
      {"two by two", {3, 0, 4, 5}, 2, 2, {std::sqrt(45.0), std::sqrt(5.0)}},
      {"of rank one", {1, 2, 2, 4, 3, 6}, 3, 2, {std::sqrt(70.0), 0}},
      {"tiny numbers", {3e-200, 4e-200}, 1, 2, {5e-200}},
      {"huge numbers", {3e200, 4e200}, 1, 2, {5e200}},
      {"zeros", {0, 0, 0, 0}, 2, 2, {0, 0}},
      {"not finite", {1, NAN}, 1, 2, {}},
  };
  for (const Case& c : cases) {
    const auto values = singular_values(c.matrix, c.rows, c.columns);
    ASSERT_EQ(values.size(), c.values.size()) << c.what;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], c.values[i], 1e-7 * c.values[0]) << c.what;
    }
  }
}

TEST(SingularValues, OfARandomMatrixKeepItsNormAndFollowFromItsProducts) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  constexpr std::size_t kRows = 40, kColumns = 23;
  std::vector<double> matrix(kRows * kColumns);
  for (double& x : matrix) x = normal(random);
  const auto values = singular_values(matrix, kRows, kColumns);
  ASSERT_EQ(values.size(), kColumns);
  double squares = 0, fourth = 0, norm = 0, products = 0;
  for (const double value : values) {
    squares += value * value;
    fourth += std::pow(value, 4);
  }
  for (const double x : matrix) norm += x * x;
  // The fourth powers add up to the squares of all products of columns.
  for (std::size_t a = 0; a < kColumns; ++a) {
    for (std::size_t b = 0; b < kColumns; ++b) {
      double product = 0;
      for (std::size_t row = 0; row < kRows; ++row) product += matrix[row * kColumns + a] * matrix[row * kColumns + b];
      products += product * product;
    }
  }
  EXPECT_NEAR(squares, norm, 1e-9 * norm);
  EXPECT_NEAR(fourth, products, 1e-9 * products);
  EXPECT_TRUE(std::ranges::is_sorted(values, std::greater<>()));
}

}  // namespace
}  // namespace tornasole::rules
