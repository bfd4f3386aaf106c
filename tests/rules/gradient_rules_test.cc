// VanishingGradient, ExplodingTensor.

#include <cmath>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

constexpr float kInf = INFINITY;

TEST(VanishingGradient, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<float> gradient;
    std::map<std::string, std::string> parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"a mean magnitude of 5e-9", {1e-8F, -1e-8F, 0, 0}, {}, true},
      {"a mean magnitude of 2e-6", {1e-6F, -3e-6F}, {}, false},
      {"the threshold is a parameter", {1e-6F, -3e-6F}, {{"threshold", "1e-5"}}, true},
      {"a mean equal to the threshold has not vanished", {0.5F, -0.5F}, {{"threshold", "0.5"}}, false},
      {"NaN has not vanished", {NAN, 0}, {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"gradient/fc.weight", floats(c.gradient)}});
    EXPECT_EQ(world.met("VanishingGradient", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(VanishingGradient, TakesAStoredReductionAndEveryWorker) {
  RuleWorld world({}, {"a", "b"});
  world.save(3, {{reduced("abs_mean", "gradient/w"), scalar(1)}}, {}, "a");
  world.save(3, {{reduced("abs_mean", "gradient/w"), scalar(1e-9F)}}, {}, "b");
  const RuleOutcome outcome = world.run("vanishing_gradient");
  EXPECT_EQ(outcome.steps_met, Steps{3});
  EXPECT_EQ(outcome.report.datapoints, 2);
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "b");
  EXPECT_EQ(outcome.report.violations()[0].tensor, "gradient/w");
  EXPECT_TRUE(world.met("VanishingGradient", {}, {.first_worker_only = true}).empty());
  EXPECT_TRUE(world.met("VanishingGradient", {}, {.workers = {"a"}}).empty());
}

TEST(VanishingGradient, ATensorWithoutItsReductionIsSkippedAndCounted) {
  RuleWorld world;
  world.save(0, {{reduced("max", "gradient/w"), scalar(1)}, {"gradient/v", floats({1})}});
  const RuleOutcome outcome = world.run("VanishingGradient");
  EXPECT_TRUE(outcome.steps_met.empty());
  EXPECT_EQ(outcome.report.datapoints, 1);
}

TEST(ExplodingTensor, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<float> values;
    std::map<std::string, std::string> parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"an infinity", {1, kInf}, {}, true},
      {"a negative infinity", {1, -kInf}, {}, true},
      {"an infinity when only NaN counts", {1, kInf}, {{"only_nan", "True"}}, false},
      {"NaN when only NaN counts", {1, NAN}, {{"only_nan", "true"}}, true},
      {"a large number", {1e38F}, {}, false},
      {"a collection without it", {NAN}, {{"collection_names", "losses"}}, false},
      {"the union of collection and pattern", {NAN}, {{"collection_names", "losses"}, {"tensor_regex", "a$"}}, true},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"a", floats(c.values)}});
    EXPECT_EQ(world.met("ExplodingTensor", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(ExplodingTensor, FiresAtTheStepsThatHoldNan) {
  RuleWorld world;
  world.save_series("loss", {NAN, 1, NAN});
  const RuleOutcome outcome = world.run("ExplodingTensor", {{"collection_names", "losses"}});
  EXPECT_EQ(outcome.steps_met, (Steps{0, 2}));
  EXPECT_EQ(outcome.report.triggered, 2);
  EXPECT_EQ(outcome.report.first_step, 0);
  EXPECT_EQ(outcome.report.last_step, 2);
}

TEST(ExplodingTensor, WithoutTheValueAStoredReductionTells) {
  RuleWorld world;
  world.save(0, {{reduced("mean", "a"), scalar(NAN)}});
  world.save(1, {{reduced("max", "a"), scalar(kInf)}});
  world.save(2, {{reduced("max", "a"), scalar(3)}});
  EXPECT_EQ(world.met("ExplodingTensor"), (Steps{0, 1}));
  EXPECT_EQ(world.met("ExplodingTensor", {{"only_nan", "True"}}), Steps{0});
}

TEST(ExplodingTensor, IntegersAndTextsNeverExplode) {
  RuleWorld world;
  world.save(0, {{"i", tools::tensor_of<std::int64_t>({1, 2})}});
  EXPECT_TRUE(world.met("ExplodingTensor").empty());
}

}  // namespace
}  // namespace tornasole::rules
