// The questions of check, asked of records made by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rules/check/number_windows.h"
#include "rules/made_run.h"

namespace tornasole::rules {
namespace {

TEST(NumberWindows, AreRobust) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({1, NAN, 3}), 2);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_NEAR(robust_deviation({1, 2, 3, 4, 100}), 1.4826, 1e-9);
  const WindowMeans windows = window_means({5, 5, 4, 4, 3, 3, 2, 2}, 4, 2);
  EXPECT_EQ(windows.means, (std::vector<double>{5, 4, 3, 2}));
  EXPECT_TRUE(window_means({1, 2, 3}, 10, 2).means.empty());
}

TEST(LearningRateSanity, JudgesStepsByWhatTheLossDoes) {
  struct Case {
    const char* what;
    double update;
    std::function<double(std::size_t)> loss;
    std::size_t verdicts;
  };
  const auto falling = [](std::size_t i) { return 2.0 / (1.0 + 0.1 * static_cast<double>(i)); };
  const auto flat = [](std::size_t) { return 2.0; };
  const auto slow = [](std::size_t i) { return 2.0 - 0.004 * static_cast<double>(i); };
  const auto thrown_until = [](double end) {
    return [end](std::size_t i) { return i == 0 ? 2.0 : i < 60 ? 500.0 : end; };
  };
  const Case cases[] = {
      {"large steps and a loss that falls", 0.3, falling, 0},
      {"large steps and a loss that does not", 0.3, flat, 1},
      {"steps that throw the weights away, and a loss that falls a little", 2, slow, 1},
      {"steps that throw the weights away, and a loss that falls", 2, falling, 0},
      {"large steps and a loss that falls a little", 0.3, slow, 0},
      {"large steps and a loss that breaks", 0.3, [](std::size_t i) { return i < 10 ? 2.0 : NAN; }, 1},
      {"large steps, and one batch in four costs a lot", 0.3, [](std::size_t i) { return i % 4 == 3 ? 90.0 : 1e-3; },
       1},
      {"large steps, a loss that falls, and one bad batch at the end", 0.3,
       [=](std::size_t i) { return i == 97 ? 90.0 : falling(i); }, 0},
      {"large steps, and a loss that is thrown far up and comes back to where it began", 0.3, thrown_until(1.5), 1},
      {"large steps, and a loss that is thrown far up and is learned after all", 0.3, thrown_until(0.1), 1},
      {"ordinary steps, and a loss that is thrown far up", 1e-3, thrown_until(1.5), 0},
      {"ordinary steps and a loss that does not fall", 1e-3, flat, 0},
      {"steps that get nowhere", 1e-8, flat, 1},
      {"a hundred steps that move next to nothing", 5e-6, flat, 1},
      {"a hundred steps that move little, and a loss that stands still", 5e-5, flat, 1},
      {"a hundred steps that move little, and a loss that is too noisy to tell", 5e-5,
       [](std::size_t i) { return i % 2 == 0 ? 2.0 : 1.0 + 0.01 * static_cast<double>(i * 7 % 13); }, 0},
      {"a hundred steps that move next to nothing, and the loss falls", 5e-6, falling, 0},
      {"small steps that add up", 1e-3, falling, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses(c.loss);
    run.weight("w", [&](std::size_t) { return c.update; });
    EXPECT_EQ(ask(kCheckLearningRate, run).size(), c.verdicts) << c.what;
  }
  MadeRun nothing(10);
  std::string cannot;
  EXPECT_TRUE(ask(kCheckLearningRate, nothing, &cannot).empty());
  EXPECT_FALSE(cannot.empty());
}

TEST(LearningRateSanity, NamesDecayThatTakesTheWeightsAway) {
  struct Case {
    const char* what;
    double decay, end;  // of the weights' size, which begins at 1
    double last_loss;
    bool is_decay;
  };
  const Case cases[] = {
      {"a quarter at every step, and nothing is learned", 5, 0.01, 2, true},
      {"some at every step, and little is learned", 1, 0.1, 1.3, true},
      {"some at every step, and much is learned", 1, 0.1, 0.2, false},
      {"next to nothing", 1e-2, 0.9, 2, false},
      {"weights that grow all the same", 5, 20, 2, false},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses([&](std::size_t i) { return 2 + (c.last_loss - 2) * static_cast<double>(i) / 99; });
    run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2}, [&](std::size_t i) {
      const double size = 1 + (c.end - 1) * static_cast<double>(i) / 99;
      return Columns{{Column::kUpdate, 0.05 * c.decay * size}, {Column::kBefore, size}, {Column::kGap, 1}};
    });
    run.record.weight_decay = run.record.decay_by_rate = c.decay;
    run.record.base_rate = 0.05;
    const std::vector<Verdict> verdicts = ask(kCheckLearningRate, run);
    const bool is_decay = !verdicts.empty() && verdicts[0].message.starts_with("Weight decay");
    EXPECT_EQ(is_decay, c.is_decay) << c.what;
  }
}

TEST(SilentOptimizer, NeedsGradientsAndNoChangeAtAll) {
  struct Case {
    const char* what;
    double first, second, gradient;
    std::size_t silent, frozen;
  };
  const Case cases[] = {
      {"nothing changes although there are gradients", 0, 0, 1, 1, 0},
      {"nothing changes because nothing flows back", 0, 0, 0, 0, 0},
      {"one weight changes, the other never does", 0.1, 0, 1, 0, 1},
      {"both change", 0.1, 0.1, 1, 0, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.weight("a", [&](std::size_t) { return c.first; });
    run.weight("b", [&](std::size_t) { return c.second; });
    run.gradient("a", c.gradient);
    run.gradient("b", c.gradient);
    EXPECT_EQ(ask(kCheckSilentOptimizer, run).size(), c.silent) << c.what;
    EXPECT_EQ(ask(kCheckFrozenLayers, run).size(), c.frozen) << c.what;
  }
}

TEST(FrozenLayers, WhatIsFrozenOnPurposeIsLeftAlone) {
  MadeRun run(10);
  run.weight("a", [](std::size_t) { return 0.1; });
  run.weight("b", [](std::size_t) { return 0.0; });
  run.record.histories.back().role.requires_grad = false;
  EXPECT_TRUE(ask(kCheckFrozenLayers, run).empty());
}

TEST(MissingZeroGrad, ComparesTheOptimizersViewWithOnePass) {
  struct Case {
    const char* what;
    double cosine, ratio;
    int passes;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"added up over steps", 0.98, 12, 1, 1},
      {"the gradient of one pass", 0.1, 1, 1, 0},
      {"full batches turn as little, but are no larger", 0.99, 1, 1, 0},
      {"accumulated on purpose", 0.95, 4, 4, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    for (std::size_t i = 0; i < run.record.steps.size(); ++i) {
      run.record.steps[i].optimizer_step = static_cast<std::int64_t>(i) / c.passes;
    }
    run.gradient("w", 1);
    run.add("optimizer_gradient/w", {.role = Role::kOptimizerGradient, .parameter = "w", .rank = 2},
            {{Column::kCosine, c.cosine}, {Column::kL2, c.ratio}});
    EXPECT_EQ(ask(kCheckMissingZeroGrad, run).size(), c.verdicts) << c.what;
  }
}

TEST(MissingZeroGrad, LooksAtWhatWasThereBeforeAPass) {
  struct Case {
    const char* what;
    std::size_t changes_every;                 // so many steps
    std::function<bool(std::size_t)> cleared;  // before the pass of a step
    std::size_t verdicts;
  };
  const auto always = [](std::size_t) { return true; };
  const auto never = [](std::size_t) { return false; };
  const Case cases[] = {
      {"cleared before every pass", 1, always, 0},
      {"never cleared", 1, never, 1},
      {"accumulated over four passes", 4, [](std::size_t i) { return i % 4 == 0; }, 0},
      {"accumulated, never cleared", 4, never, 1},
      {"cleared late, after a pass of another loss", 2, [](std::size_t i) { return i % 2 == 1; }, 0},
      {"weights that never change", 100, never, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.weight("w", [&](std::size_t i) { return i % c.changes_every == 0 ? 0.1 : 0.0; });
    run.add("scalar/gradient_before/w", {.role = Role::kGradientBefore, .parameter = "w"},
            [&](std::size_t i) { return Columns{{Column::kMean, c.cleared(i) ? 0.0 : 0.5}}; });
    EXPECT_EQ(ask(kCheckMissingZeroGrad, run).size(), c.verdicts) << c.what;
  }
}

TEST(VanishingGradient, NeedsLayersThatDoNotMove) {
  struct Case {
    const char* what;
    double l2, zeros, update;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"nothing arrives and nothing moves", 1e-9, 0, 1e-9, 1},
      {"small, but an adaptive optimizer moves it", 1e-9, 0, 1e-3, 0},
      {"a few rows of an embedding", 0.01, 98, 1e-7, 0},
      {"as large as the others", 1, 0, 1e-3, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(30);
    run.losses([](std::size_t) { return 1.0; });
    run.weight("a", [&](std::size_t) { return c.update; });
    run.gradient("a", c.l2, 100, c.zeros);
    EXPECT_EQ(ask(kCheckVanishingGradient, run).size(), c.verdicts) << c.what;
  }
}

TEST(DeadRelu, CountsUnitsThatNoStepSawOn) {
  struct Case {
    const char* what;
    const char* layer;
    std::vector<std::vector<float>> activity;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"three of four are off at every step", "relu", {{0, 0, 0, 0.5F}, {0, 0, 0, 0.2F}, {0, 0, 0, 0.1F}}, 1},
      {"each is on at some step", "relu", {{0.5F, 0, 0, 0}, {0, 0.5F, 0, 0}, {0, 0, 0.5F, 0.5F}}, 0},
      {"half of them", "relu", {{0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}}, 0},
      {"another kind of layer", "linear", {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(3);
    History& output = run.add("relu_output_0", {.role = Role::kLayerOutput, .layer_class = c.layer},
                              Columns{{Column::kActiveUnits, 0.25}, {Column::kSamples, 32}});
    output.unit_activity = c.activity;
    EXPECT_EQ(ask(kCheckDeadRelu, run).size(), c.verdicts) << c.what;
  }
}

TEST(SaturatedActivation, LooksAtHiddenLayers) {
  for (const auto& [saturated, order, verdicts] :
       {std::tuple(0.95, 1, 1U), std::tuple(0.6, 1, 0U), std::tuple(0.95, 5, 0U)}) {
    MadeRun run(4);
    run.add("tanh_output_0", {.role = Role::kLayerOutput, .layer_class = "tanh", .order = order},
            {{Column::kSaturated, saturated}});
    run.add("last_output_0", {.role = Role::kLayerOutput, .layer_class = "linear", .order = 5}, Columns{});
    EXPECT_EQ(ask(kCheckSaturation, run).size(), verdicts) << saturated << " " << order;
  }
}

TEST(SaturatedActivation, IsNoHarmWhereMostIsLearnedAfterIt) {
  struct Case {
    const char* what;
    std::size_t onset;
    double last_loss;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"units become sure of themselves while the loss falls", 40, 0.01, 0},
      {"they become flat, and little is learned from there on", 40, 0.6, 1},
      {"flat from the start: a loss that falls from a wild height says nothing", 0, 0.01, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses([&](std::size_t i) { return i < 60 ? 1.0 : c.last_loss; });
    run.add("tanh_output_0", {.role = Role::kLayerOutput, .layer_class = "tanh", .order = 1},
            [&](std::size_t i) { return Columns{{Column::kSaturated, i < c.onset ? 0.3 : 0.96}}; });
    run.add("last_output_0", {.role = Role::kLayerOutput, .layer_class = "linear", .order = 5}, Columns{});
    EXPECT_EQ(ask(kCheckSaturation, run).size(), c.verdicts) << c.what;
  }
}

TEST(ConstantOutput, NeedsMoreThanOneSample) {
  for (const auto& [variance, samples, verdicts] :
       {std::tuple(1e-9, 32.0, 1U), std::tuple(0.3, 32.0, 0U), std::tuple(0.0, 1.0, 0U)}) {
    MadeRun run(6);
    run.add("out", {.role = Role::kPredictions}, {{Column::kSampleVariance, variance}, {Column::kSamples, samples}});
    EXPECT_EQ(ask(kCheckConstantOutput, run).size(), verdicts) << variance << " " << samples;
  }
}

TEST(ConstantOutput, OfSeveralOutputsOfAModelNoneMayVary) {
  for (const auto& [role, other, verdicts] :
       {std::tuple(Role::kLayerOutput, 0.3, 0U), std::tuple(Role::kLayerOutput, 1e-9, 1U),
        std::tuple(Role::kPredictions, 0.3, 1U)}) {
    MadeRun run(6);
    const TensorRole output = {.role = role, .order = 0};
    run.add("Net_output_0", output, {{Column::kSampleVariance, 1e-9}, {Column::kSamples, 32.0}});
    run.add("Net_output_1", output, {{Column::kSampleVariance, other}, {Column::kSamples, 32.0}});
    EXPECT_EQ(ask(kCheckConstantOutput, run).size(), verdicts) << other;
  }
}

TEST(LossTrend, TellsAFallFromNoise) {
  struct Case {
    const char* what;
    std::function<double(double)> loss;
    std::string rule;
  };
  const auto noise = [](double i) { return std::sin(i * 12.9898) * 0.5; };  // no pattern in the order of steps
  const Case cases[] = {
      {"falls", [&](double i) { return 2 * std::exp(-i / 60) + 0.02 * noise(i); }, ""},
      {"falls within noise of its own size", [&](double i) { return 2 * std::exp(-i / 60) + noise(i); }, ""},
      {"falls at once and stays", [&](double i) { return i < 3 ? 2 : 0.1 + 0.01 * noise(i); }, ""},
      {"stays", [&](double i) { return 2 + 0.02 * noise(i); }, "LossNotDecreasing"},
      {"cannot be told from noise", [&](double i) { return 2 + 4 * noise(i); }, ""},
      {"climbs", [&](double i) { return 1 + i / 20 + 0.02 * noise(i); }, "LossDivergence"},
      {"rises from nothing to next to nothing", [&](double i) { return 2 * std::exp(-i / 10) + (i > 150 ? 1e-3 : 0); },
       ""},
      {"is negative and falls", [&](double i) { return -i / 10; }, ""},
      {"swings around zero, less and less", [&](double i) { return std::exp(-i / 80) * (noise(i) - 0.3); }, ""},
      {"leaves the values around zero", [&](double i) { return i / 20 + noise(i); }, "LossDivergence"},
  };
  for (const Case& c : cases) {
    MadeRun run(200);
    run.losses([&](std::size_t i) { return c.loss(static_cast<double>(i)); });
    const std::vector<Verdict> verdicts = ask(kCheckLossTrend, run);
    EXPECT_EQ(verdicts.empty() ? "" : verdicts[0].rule, c.rule) << c.what;
  }
}

TEST(LossTrend, OfAProgramThatCollectsItsDataIsNotAskedFor) {
  struct Case {
    const char* what;
    std::size_t passes_a_loss;
    std::int64_t passes_a_step;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"trains on each batch", 1, 1, 1},     {"plays ten times, then trains", 10, 10, 0},
      {"saves every tenth loss", 10, 1, 1},  {"accumulates gradients", 1, 10, 1},
      {"nobody counts its steps", 10, 0, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(400);
    run.losses([](std::size_t i) { return 1 + static_cast<double>(i) / 20; });
    History& loss = run.record.histories.back();
    std::erase_if(loss.points, [&](std::uint32_t point) { return point % c.passes_a_loss != 0; });
    for (std::size_t i = 0; i < loss.points.size(); ++i) loss.rows[i] = loss.rows[loss.points[i]];
    loss.rows.resize(loss.points.size());
    for (StepPoint& point : run.record.steps) {
      point.optimizer_step = c.passes_a_step == 0 ? -1 : point.step.number / c.passes_a_step;
    }
    EXPECT_EQ(ask(kCheckLossTrend, run).size(), c.verdicts) << c.what;
  }
}

TEST(LossTrend, IsNotAskedForWhereOnlyStepsLookedAtCloselyShowThePlay) {
  for (const auto& [is_loss_of_each, verdicts] : {std::pair(false, 0U), std::pair(true, 1U)}) {
    MadeRun run(400);  // every step that is saved has a loss but the forty that are looked at
    for (std::size_t i = 0; i < 400; ++i) {
      run.record.steps[i].global_step = static_cast<std::int64_t>(i) * 10;
      run.record.steps[i].optimizer_step = static_cast<std::int64_t>(i);
    }
    run.losses([](std::size_t i) { return 1 + static_cast<double>(i) / 20; });
    History& loss = run.record.histories.back();
    if (!is_loss_of_each) {
      loss.points.erase(loss.points.begin(), loss.points.begin() + 40);
      loss.rows.erase(loss.rows.begin(), loss.rows.begin() + 40);
    }
    History& output = run.add("layer_output_0", {.role = Role::kLayerOutput}, Columns{{Column::kMean, 1}});
    output.points.resize(40);
    output.rows.resize(40);
    EXPECT_EQ(ask(kCheckLossTrend, run).size(), verdicts) << is_loss_of_each;
  }
}

TEST(Overfit, ValidationRisesWhileTrainingFalls) {
  for (const auto& [slope, is_overfit] : {std::pair(0.1, true), std::pair(0.012, true), std::pair(0.001, false),
                                          std::pair(-0.01, false), std::pair(0.0, false)}) {
    MadeRun run(100);
    for (std::size_t i = 9; i < 100; i += 10) {
      run.record.steps[i].step.mode = Mode::kEval;
    }
    run.losses([&](std::size_t i) {
      const auto x = static_cast<double>(i);
      return i % 10 == 9 ? 1 + slope * std::max(0.0, x - 30) / 10 - (x < 30 ? 0.1 * x / 30 : 0.1) : 2 / (1 + x / 10);
    });
    EXPECT_EQ(!ask(kCheckOverfit, run).empty(), is_overfit) << slope;
  }
}

TEST(Overfit, ARiseOfNextToNothingIsNone) {
  for (const auto& [lowest, is_overfit] : {std::pair(0.04, false), std::pair(0.8, true)}) {
    MadeRun run(100);
    for (std::size_t i = 9; i < 100; i += 10) run.record.steps[i].step.mode = Mode::kEval;
    run.losses([&](std::size_t i) {
      const auto x = static_cast<double>(i);
      if (i % 10 != 9) return 1.4 / (1 + x);
      return i < 30 ? 1.4 - (1.4 - lowest) * x / 29 : lowest * (1 + 0.15 * (x - 29) / 70);
    });
    EXPECT_EQ(!ask(kCheckOverfit, run).empty(), is_overfit) << lowest;
  }
}

TEST(InputRange, KnowsRawBytesAndOffsets) {
  struct Case {
    const char* what;
    double low, high, mean, deviation;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"scaled", -3, 3, 0, 1, 0},
      {"pixels from 0 to 1", 0, 1, 0.3, 0.3, 0},
      {"pixels from 0 to 255", 0, 255, 33, 78, 1},
      {"a column of incomes", 0, 90'000, 30'000, 20'000, 1},
      {"far from zero", 29, 31, 30, 0.5, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(3);
    run.add("x", {.role = Role::kModelInput},
            {{Column::kMin, c.low}, {Column::kMax, c.high}, {Column::kMean, c.mean}, {Column::kStd, c.deviation}});
    EXPECT_EQ(ask(kCheckInputRange, run).size(), c.verdicts) << c.what;
  }
}

TEST(TrainEvalMismatch, OnlyWhereTheModeMatters) {
  for (const auto& [layer, verdicts] : {std::pair("dropout", 1U), std::pair("linear", 0U)}) {
    MadeRun run(10);
    run.record.layer_classes = {layer};
    for (std::size_t i = 5; i < 10; ++i) run.record.facts[i].grad_enabled = false;
    EXPECT_EQ(ask(kCheckTrainEval, run).size(), verdicts) << layer;
  }
}

TEST(NonFiniteProvenance, NamesWhereItBegan) {
  MadeRun run(5);
  const auto bad_from = [](std::size_t step) {
    return [step](std::size_t i) { return Columns{{Column::kNan, i >= step ? 1 : 0}, {Column::kMax, 7}}; };
  };
  run.add("a_output_0", {.role = Role::kLayerOutput}, bad_from(9));
  run.add("b_output_0", {.role = Role::kLayerOutput}, bad_from(3));
  run.add("c_output_0", {.role = Role::kLayerOutput}, bad_from(3));
  run.add("loss", {.role = Role::kLoss}, bad_from(3));
  const std::vector<Verdict> verdicts = ask(kCheckNonFinite, run);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].rule, "NonFiniteProvenance");
  EXPECT_EQ(verdicts[0].tensors, std::vector<std::string>{"b_output_0"});
  EXPECT_EQ(verdicts[0].first_step, 3);
  EXPECT_EQ(verdicts[1].rule, "ExplodingTensor");
  EXPECT_EQ(verdicts[1].tensors.size(), 3U);
}

TEST(NonFiniteProvenance, MasksAndLossScalersAreHealthy) {
  MadeRun masks(5);
  masks.add("mask_output_0", {.role = Role::kLayerOutput}, {{Column::kInf, 10}, {Column::kNan, 0}});
  masks.add("loss", {.role = Role::kLoss}, {{Column::kNan, 0}, {Column::kInf, 0}});
  EXPECT_TRUE(ask(kCheckNonFinite, masks).empty());

  MadeRun scaled(5);
  scaled.add("gradient/w", {.role = Role::kGradient}, {{Column::kInf, 10}, {Column::kNan, 0}});
  for (StepFacts& facts : scaled.record.facts) facts.grad_scale = 65536;
  EXPECT_TRUE(ask(kCheckNonFinite, scaled).empty());
  for (StepFacts& facts : scaled.record.facts) facts.grad_scale.reset();
  EXPECT_EQ(ask(kCheckNonFinite, scaled).size(), 2U);
}

}  // namespace
}  // namespace tornasole::rules
