// What check makes of few numbers: statistics where values are missing, starts that look alike, predictions that became
// the same for all.

#include <gtest/gtest.h>

#include <cmath>

#include "rules/check/change_by_stats.h"
#include "rules/check/loss_facts.h"
#include "rules/made_run.h"
#include "rules/rule_world.h"
#include "tornasole/check.h"

namespace tornasole::rules {
namespace {

double flat(std::size_t /*step*/) { return 2.0; }
double falling(std::size_t step) { return 2.0 * std::pow(0.9, static_cast<double>(step)); }

TEST(PoorWeightInitialization, WhatBlursAWeightMayStartEqual) {
  struct Case {
    const char* what;
    const char* name;
    double late;  // share of the later variance that lies between units
    Shape shape;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"deviations of weights that are drawn anew, which part", "fc.rho", 0.01, {50, 100}, 0},
      {"those of a single unit", "fc.rho", 0, {1, 100}, 0},
      {"what multiplies inputs, under a name of the user's", "fc.w", 0, {50, 100}, 1},
      {"what multiplies inputs, and parts by drop-out", "fc.weight", 0.01, {50, 100}, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(50);
    run.losses(falling);
    run.add(c.name, {.role = Role::kWeight, .rank = 2, .shape = c.shape}, [&](std::size_t i) {
      return Columns{
          {Column::kMean, -4}, {Column::kStd, i == 0 ? 0 : 0.1}, {Column::kSampleVariance, i == 0 ? 0 : c.late}};
    });
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), c.verdicts) << c.what;
  }
}

TEST(PoorWeightInitialization, BeyondAllMeasureALittleIsLearnedAllTheSame) {
  for (const auto& [gain, last, verdicts] :
       {std::tuple(100.0, 1.7, 1U), std::tuple(100.0, 0.2, 0U), std::tuple(10.0, 1.7, 0U)}) {
    MadeRun run(50);
    run.losses([end = last](std::size_t i) { return i < 10 ? 2.0 : end; });
    run.add("weight_hh_l0", {.role = Role::kWeight, .rank = 2, .shape = {50, 100}},
            {{Column::kMean, 0}, {Column::kStd, gain / 10}});
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), verdicts) << gain << " " << last;
  }
}

TEST(MissingZeroGrad, AGradientThatBrokeIsNoneThatWasCleared) {
  MadeRun run(10);
  run.weight("w", [](std::size_t) { return 0.1; });
  run.add("scalar/gradient_before/w", {.role = Role::kGradientBefore, .parameter = "w"}, [](std::size_t i) {
    return Columns{{Column::kMean, i == 0 ? 0.0 : i < 7 ? 0.5 : NAN}};
  });
  EXPECT_EQ(ask(kCheckMissingZeroGrad, run).size(), 1U);
}

TEST(InputRange, SinglePointsBetweenBatchesAreNotTheData) {
  for (const auto& [deviation, verdicts] : {std::pair(1000.0, 1U), std::pair(1.0, 0U)}) {
    MadeRun run(20);
    run.add("x", {.role = Role::kModelInput}, [size = deviation](std::size_t i) {
      const double one = i % 2 == 0 ? 0 : size;
      return Columns{
          {Column::kMean, one}, {Column::kStd, one}, {Column::kMin, 0}, {Column::kMax, 3 * one}, {Column::kSamples, 8}};
    });
    EXPECT_EQ(ask(kCheckInputRange, run).size(), verdicts) << deviation;
  }
}

MadeRun with_output(const std::function<double(std::size_t)>& variance,
                    const std::function<double(std::size_t)>& step) {
  MadeRun run(40);
  run.losses([](std::size_t i) { return i == 0 ? 3.0 : 2.0; });
  run.weight("w", step);
  run.add("predictions", {.role = Role::kPredictions, .loss_class = "cross_entropy"},
          [&](std::size_t i) { return Columns{{Column::kSampleVariance, variance(i)}, {Column::kSamples, 32}}; });
  return run;
}

TEST(LearningRateSanity, IsToBlameForACollapseAfterALargeStep) {
  const auto large_at_first = [](std::size_t i) { return i < 3 ? 0.3 : 0.01; };
  const auto small = [](std::size_t) { return 0.01; };
  const auto collapses = [](std::size_t i) { return i < 5 ? 0.2 : 1e-9; };
  EXPECT_EQ(ask(kCheckLearningRate, with_output(collapses, large_at_first)).size(), 1U);
  EXPECT_TRUE(ask(kCheckLearningRate, with_output(collapses, small)).empty());
  EXPECT_TRUE(ask(kCheckLearningRate, with_output([](std::size_t) { return 1e-9; }, large_at_first)).empty())
      << "it was so before the first step";
  EXPECT_TRUE(ask(kCheckLearningRate, with_output([](std::size_t) { return 0.2; }, large_at_first)).empty());
}

TEST(VanishingGradient, WeightsThatMoveByNoiseAreNotTrained) {
  for (const auto& [variance, verdicts] : {std::pair(1e-9, 1U), std::pair(0.2, 0U)}) {
    MadeRun run = with_output([v = variance](std::size_t) { return v; }, [](std::size_t) { return 0.01; });
    run.weight("early", [](std::size_t) { return 0.01; });
    run.gradient("early", 1e-8);
    run.gradient("w", 1e-8);
    run.gradient("last", 1);
    EXPECT_EQ(ask(kCheckVanishingGradient, run).size(), verdicts) << variance;
  }
}

TEST(DeadRelu, TheLargestOutputTellsOfAWholeLayer) {
  for (const auto& [late, verdicts] : {std::pair(0.0, 1U), std::pair(0.5, 0U)}) {
    MadeRun run(20);
    run.add("1_output_0", {.role = Role::kLayerOutput, .layer = "1", .layer_class = "relu"},
            [end = late](std::size_t i) { return Columns{{Column::kMax, i < 5 ? 1 : end}}; });
    const std::vector<Verdict> found = ask(kCheckDeadRelu, run);
    ASSERT_EQ(found.size(), verdicts) << late;
    if (!found.empty()) {
      EXPECT_EQ(found[0].first_step, 5);
    }
  }
}

TEST(LossFacts, HalvesTellThatANoisyLossStandsStill) {
  const auto noisy = [](double fall) {
    MadeRun run(600);
    run.losses([&](std::size_t i) {
      const double noise = 0.1 * (static_cast<double>(i * 7919 % 101) / 50 - 1);
      return 1 - fall * static_cast<double>(i) / 600 + noise;
    });
    return run;
  };
  EXPECT_TRUE(is_loss_still(noisy(0).record));
  EXPECT_FALSE(is_loss_still(noisy(0.3).record));
}

TEST(LossSpike, NoSampleOfTheDataCostsAThousandTimesTheUsual) {
  for (const auto& [height, verdicts] : {std::pair(1e5, 1U), std::pair(30.0, 0U)}) {
    MadeRun run(100);
    run.losses([top = height](std::size_t i) { return i == 50 ? top : i == 0 ? 4.0 : 1.0; });
    std::size_t told = 0;
    for (const Verdict& verdict : ask(kCheckLossSpike, run)) told += verdict.severity != Severity::kInfo ? 1U : 0U;
    EXPECT_EQ(told, verdicts) << height;
  }
}

TEST(LearningRateSanity, WeightsThatAreThrownAwayAndGrowLearnLittle) {
  for (const auto& [last, verdicts] : {std::pair(1.4, 1U), std::pair(0.2, 0U)}) {
    MadeRun run(50);
    run.losses([end = last](std::size_t i) { return i == 0 ? 2.0 : end; });
    run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2}, [](std::size_t i) {
      return Columns{{Column::kUpdate, i == 0 ? 5 : 0.1}, {Column::kBefore, i == 0 ? 1 : 8}, {Column::kGap, 1}};
    });
    EXPECT_EQ(ask(kCheckLearningRate, run).size(), verdicts) << last;
  }
}

TEST(SilentOptimizer, WhatOthersLearnIsNotSilence) {
  for (const auto& [loss, rule] : {std::pair(&falling, "FrozenLayers"), std::pair(&flat, "SilentOptimizer")}) {
    MadeRun run(50);
    run.record.optimized = {"w"};
    run.losses(*loss);
    run.weight("w", [](std::size_t) { return 0.0; });
    const std::vector<Verdict> verdicts = ask(kCheckSilentOptimizer, run);
    ASSERT_EQ(verdicts.size(), 1U) << rule;
    EXPECT_EQ(verdicts[0].rule, rule);
  }
}

TEST(ClassImbalance, OneScoreMayLackItsSecondAxis) {
  struct Case {
    const char* what;
    double layer_units, score_units;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"scores as the layer computes them", 1, 1, 1},
      {"a row of them", 1, 64, 1},
      {"tokens, one to a row", 12, 1, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.add("fc_output_0", {.role = Role::kLayerOutput, .layer = "fc", .layer_class = "linear"},
            {{Column::kL2, 3}, {Column::kUnits, c.layer_units}});
    run.of_loss(Role::kPredictions, "bcewithlogitsloss", {{Column::kL2, 3}, {Column::kUnits, c.score_units}});
    run.of_loss(Role::kLabels, "bcewithlogitsloss",
                {{Column::kCount, 64},
                 {Column::kMean, 1.0 / 64},
                 {Column::kZeros, 63},
                 {Column::kMin, 0},
                 {Column::kMax, 1},
                 {Column::kUnits, 64}});
    EXPECT_EQ(ask(kCheckClassImbalance, run).size(), c.verdicts) << c.what;
  }
}

std::array<float, kColumnCount> row_of(double mean, double deviation, double low, double high) {
  std::array<float, kColumnCount> row;
  row.fill(NAN);
  const auto set = [&](Column column, double value) {
    row[static_cast<std::size_t>(column)] = static_cast<float>(value);
  };
  set(Column::kMean, mean);
  set(Column::kStd, deviation);
  set(Column::kMin, low);
  set(Column::kMax, high);
  return row;
}

TEST(ChangeByStats, IsTheMostThatAnyOfThemWent) {
  const auto start = row_of(0, 1, -3, 3);
  EXPECT_EQ(change_by_stats(start, start)->change, 0);
  EXPECT_EQ(change_by_stats(start, start)->size, 1);
  EXPECT_EQ(change_by_stats(start, row_of(0.5, 1, -3, 3))->change, 0.5);
  EXPECT_EQ(change_by_stats(start, row_of(0, 3, -3, 3))->change, 2);
  EXPECT_EQ(change_by_stats(start, row_of(0, 1, -3.5, 3.5))->change, 0.5) << "weights that turn";
  EXPECT_FALSE(change_by_stats(start, row_of(NAN, 1, -3, 3)));
}

// A trial that holds reductions of a weight, its gradient and the loss, at every fifth step.
Trial reduced_trial(RuleWorld& world, const std::function<float(int)>& scale, const std::function<float(int)>& loss) {
  for (int i = 0; i < 40; ++i) {
    Values values = {{"loss", scalar(loss(i))}};
    const float size = scale(i);
    for (const auto& [name, number] : {std::pair("mean", 0.0F), {"std", size}, {"min", -3 * size}, {"max", 3 * size}}) {
      values.emplace_back(reduced(name, "fc.weight"), scalar(number));
    }
    values.emplace_back(reduced("l2", "gradient/fc.weight"), scalar(1));
    world.save(5 * i, std::move(values));
  }
  return world.open();
}

TEST(LearningRateSanity, ReductionsTellHowFarWeightsGo) {
  struct Case {
    const char* what;
    std::function<float(int)> scale, loss;
    std::size_t verdicts;
  };
  const auto still = [](int) { return 2.0F; };
  const auto learns = [](int i) { return 2.0F * std::pow(0.9F, static_cast<float>(i)); };
  const Case cases[] = {
      {"they grow without end", [](int i) { return std::pow(2.0F, static_cast<float>(i % 30)); }, still, 1},
      {"they stand still, and so does the loss", [](int i) { return 1 + 1e-6F * static_cast<float>(i); }, still, 1},
      {"they go on, and the loss falls", [](int i) { return 1 + 1e-2F * static_cast<float>(i); }, learns, 0},
      {"they go on, and the loss does not fall", [](int i) { return 1 + 1e-2F * static_cast<float>(i); }, still, 0},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    Trial trial = reduced_trial(world, c.scale, c.loss);
    const auto report = check(trial, {.rules = {"LearningRateSanity"}});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->verdicts.size(), c.verdicts) << c.what;
    EXPECT_TRUE(report->not_checked.empty()) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::rules
