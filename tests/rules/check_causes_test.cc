// Which of several causes check names, of records made by hand.

#include <gtest/gtest.h>

#include "rules/check/loss_facts.h"
#include "rules/made_run.h"

namespace tornasole::rules {
namespace {

double flat(std::size_t /*step*/) { return 2.0; }

// How far from the root of things the first verdict is; -1 without one.
int depth_of(const Detector& detector, const MadeRun& run) {
  Judgement judgement(detector.name);
  detector.look(run.record, judgement);
  return judgement.verdicts().empty() ? -1 : detector.depth + judgement.deeper(0);
}

TEST(LearningRateSanity, IsToBlameWhereGradientsArriveAndNothingMoves) {
  struct Case {
    const char* what;
    double last_update;  // of the layer with the large gradients
    bool is_root;
  };
  const Case cases[] = {
      {"even the layer with large gradients stands still", 1e-8, true},
      {"that layer moves, the others get no gradients", 1e-2, false},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses(flat);
    for (const char* name : {"a", "b"}) {
      run.weight(name, [](std::size_t) { return 1e-9; });
      run.gradient(name, 1e-9);
    }
    run.weight("last", [&](std::size_t) { return c.last_update; });
    run.gradient("last", 1);
    const int depth = depth_of(kCheckLearningRate, run);
    ASSERT_GE(depth, 0) << c.what;
    EXPECT_EQ(depth < kCheckVanishingGradient.depth, c.is_root) << c.what;
    EXPECT_EQ(depth < kCheckFrozenLayers.depth, c.is_root) << c.what;
  }
  EXPECT_LT(kCheckMissingZeroGrad.depth, kCheckLearningRate.depth) << "gradients that add up make large steps";
}

TEST(LearningRateSanity, LeavesOutWhatStartsAtZero) {
  MadeRun run(100);
  run.losses(flat);
  run.weight("table", [](std::size_t) { return 1e-8; });
  // Small for long, so that each step is large beside it.
  run.add("branch", {.role = Role::kWeight, .parameter = "branch", .rank = 2}, [](std::size_t i) {
    return Columns{{Column::kUpdate, 1e-8}, {Column::kBefore, 1e-8 * static_cast<double>(i)}, {Column::kGap, 1}};
  });
  const std::vector<Verdict> verdicts = ask(kCheckLearningRate, run);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].tensors, std::vector<std::string>{"table"});
  EXPECT_NEAR(verdicts[0].value.value_or(0), 1e-8, 1e-12);
}

TEST(LearningRateSanity, LeavesOutWeightsThatAreMadeAnew) {
  struct Case {
    const char* what;
    double change, size_after;
    double later;  // changes
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"drawn once more, in the size they had", 1.41, 1.0, 0.003, 0},
      {"stepped as far, and larger for it", 1.41, 1.7, 0.003, 1},
      {"further than two draws are apart", 3, 1.0, 0.003, 1},
      {"steps that stay large", 1.41, 1.0, 0.4, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses([](std::size_t i) { return i < 10 ? 2.0 : 2.5; });
    run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2}, [&](std::size_t i) {
      return Columns{{Column::kUpdate, i == 3  ? c.change
                                       : i < 3 ? 0.003
                                               : c.later},
                     {Column::kBefore, i <= 3 ? 1.0 : c.size_after},
                     {Column::kGap, 1}};
    });
    EXPECT_EQ(ask(kCheckLearningRate, run).size(), c.verdicts) << c.what;
  }
}

TEST(VanishingGradient, LeavesOutBranchesThatBeginWithAFactorOfZero) {
  struct Case {
    const char* what;
    double late;  // gradients in the second half
    double last_loss;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"gradients come, and the loss falls", 0.1, 0.2, 0},
      {"they never come", 1e-9, 0.2, 1},
      {"they come, and nothing is learned", 0.1, 2.0, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(40);
    run.losses([&](std::size_t i) { return i < 20 ? 2.0 : c.last_loss; });
    for (const char* name : {"gradient/a", "gradient/b"}) {
      run.add(name, {.role = Role::kGradient, .parameter = "x", .rank = 2}, [&](std::size_t i) {
        return Columns{{Column::kL2, i < 20 ? 1e-9 : c.late}, {Column::kCount, 100}, {Column::kZeros, 0}};
      });
    }
    run.gradient("last", 1);
    EXPECT_EQ(ask(kCheckVanishingGradient, run).size(), c.verdicts) << c.what;
  }
}

TEST(LearningRateSanity, SeesWhatALossCameBackFrom) {
  struct Case {
    const char* what;
    double first_update, height;
    std::size_t verdicts;
    Severity severity;
  };
  const Case cases[] = {
      {"a ruinous step, a loss thrown up and learned after all", 5, 3, 1, Severity::kWarning},
      {"a ruinous step and a loss that stays where it is", 5, 1.5, 0, Severity::kWarning},
      {"one large step and a loss thrown up: a bad batch may do that", 0.3, 9, 0, Severity::kWarning},
      {"ordinary steps", 0.01, 9, 0, Severity::kWarning},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses([&](std::size_t i) { return i == 0 || i > 95 ? 2.0 : i < 20 ? 2.0 * c.height : 0.1; });
    run.record.histories.back().rows.back()[static_cast<std::size_t>(Column::kMean)] = 0.1F;
    run.weight("w", [&](std::size_t i) { return i == 0 ? c.first_update : 0.01; });
    const std::vector<Verdict> verdicts = ask(kCheckLearningRate, run);
    ASSERT_EQ(verdicts.size(), c.verdicts) << c.what;
    if (!verdicts.empty()) {
      EXPECT_EQ(verdicts[0].severity, c.severity) << c.what;
    }
  }
}

TEST(LossPeak, OneBadBatchIsNoLevel) {
  MadeRun run(40);
  run.losses([](std::size_t i) { return i == 7 ? 900.0 : 2.0; });
  EXPECT_EQ(loss_peak(run.record), 1);
}

TEST(MissingZeroGrad, APassThatLeavesNothingLeavesNothingToClear) {
  // A factor that multiplies one which starts at zero: its first pass has a gradient of zero, and nobody clears it.
  for (const auto& [first_gradient, verdicts] : {std::pair(0.0, 1U), std::pair(0.5, 0U)}) {
    MadeRun run(10);
    run.weight("w", [](std::size_t) { return 0.1; });
    run.add("gradient/w", {.role = Role::kGradient, .parameter = "w", .rank = 2},
            [first = first_gradient](std::size_t i) { return Columns{{Column::kL2, i == 0 ? first : 0.5}}; });
    run.add("scalar/gradient_before/w", {.role = Role::kGradientBefore, .parameter = "w"},
            [](std::size_t i) { return Columns{{Column::kMean, i < 2 ? 0.0 : 0.5}}; });
    EXPECT_EQ(ask(kCheckMissingZeroGrad, run).size(), verdicts) << first_gradient;
  }
}

TEST(SilentOptimizer, StatisticsTellWhatNobodyMeasured) {
  // One optimizer step in four passes, of which only some were saved.
  const auto accumulating = [](bool is_moving) {
    MadeRun run(12);
    for (std::size_t i = 0; i < run.record.steps.size(); ++i) {
      run.record.steps[i].optimizer_step = static_cast<std::int64_t>(i / 2);
    }
    run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2}, [&](std::size_t i) {
      return Columns{{Column::kL2, is_moving ? 1 + 0.01 * static_cast<double>(i / 2) : 1}, {Column::kMean, 0.5}};
    });
    run.gradient("w", 1);
    return run;
  };
  EXPECT_EQ(ask(kCheckSilentOptimizer, accumulating(false)).size(), 1U);
  EXPECT_TRUE(ask(kCheckSilentOptimizer, accumulating(true)).empty());
}

TEST(SilentOptimizer, NothingIsLeftToTrain) {
  const auto frozen = [](const std::function<double(std::size_t)>& loss) {
    MadeRun run(40);
    run.losses(loss);
    run.weight("w", [](std::size_t) { return 0.0; });
    run.record.histories.back().role.requires_grad = false;
    run.record.optimizers = run.record.optimizers_of_others = 1;
    return run;
  };
  EXPECT_EQ(ask(kCheckSilentOptimizer, frozen(flat)).size(), 1U);
  const auto falling = [](std::size_t i) { return 2.0 / (1.0 + 0.1 * static_cast<double>(i)); };
  EXPECT_TRUE(ask(kCheckSilentOptimizer, frozen(falling)).empty()) << "an image that a frozen model judges";
}

TEST(ClassImbalance, OfBoostingIsInItsPairs) {
  struct Case {
    const char* what;
    std::vector<std::int64_t> counts;
    double weight;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"one in a thousand", {5000, 0, 4, 1}, 1, 1},
      {"one in twenty: trees take that", {5000, 0, 100, 150}, 1, 0},
      {"one in a thousand, and it is weighed", {5000, 0, 4, 1}, 500, 0},
      {"one class only", {5000, 0, 0, 0}, 1, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.record.is_boosting = true;
    run.record.hyperparameters["scale_pos_weight"] = c.weight;
    run.of_loss(Role::kLabels, "", {});
    run.of_loss(Role::kPredictions, "", {}).class_pairs = {{9, 2, c.counts}};
    EXPECT_EQ(ask(kCheckClassImbalance, run).size(), c.verdicts) << c.what;
  }
}

TEST(InputRange, MeasuresBesideTablesAreNoTokens) {
  for (const auto& [low, verdicts] : {std::pair(-6.5, 1U), std::pair(0.0, 0U)}) {
    MadeRun run(5);
    run.record.layer_classes = {"embedding", "linear"};
    run.add("input", {.role = Role::kModelInput},
            Columns{{Column::kMean, 900},
                    {Column::kStd, 400},
                    {Column::kMin, low},
                    {Column::kMax, low + 2000},
                    {Column::kSampleVariance, 0.5},
                    {Column::kSamples, 32}});
    EXPECT_EQ(ask(kCheckInputRange, run).size(), verdicts) << low;
  }
}

TEST(Plateau, TasksThatDifferLeaveTheGuessInDoubt) {
  // Batches of one task each: their labels scatter by little in some and by much in others.
  const auto of_tasks = [](double least, double most) {
    MadeRun run(100);
    run.add("loss", {.role = Role::kLoss, .loss_class = "mse_loss"},
            [](std::size_t i) { return Columns{{Column::kMean, i % 2 == 0 ? 1.6 : 1.5}}; });
    History& labels = run.add("labels", {.role = Role::kLabels, .loss_class = "mse_loss"}, [&](std::size_t i) {
      return Columns{{Column::kStd, i % 2 == 0 ? least : most}, {Column::kCount, 400}, {Column::kSamples, 1}};
    });
    labels.points.resize(4);
    labels.rows.resize(4);
    return run;
  };
  EXPECT_TRUE(stays_at_guess(of_tasks(1.1, 1.11).record));
  EXPECT_FALSE(stays_at_guess(of_tasks(0.3, 1.6).record));
}

TEST(LearningRateSanity, WhatStartsAtZeroAndGetsTheLargestGradientsStandsStillToo) {
  for (const auto& [update, is_root] : {std::pair(1e-7, true), std::pair(1.0, false)}) {
    MadeRun run(100);
    run.losses(flat);
    run.add("table", {.role = Role::kWeight, .parameter = "table", .rank = 2},
            {{Column::kUpdate, 1e-9}, {Column::kBefore, 10}, {Column::kGap, 1}, {Column::kCount, 100}});
    run.gradient("table", 1e-9);
    run.add("zeros", {.role = Role::kWeight, .parameter = "zeros", .rank = 2}, [&](std::size_t i) {
      return Columns{{Column::kUpdate, update},
                     {Column::kBefore, update * static_cast<double>(i)},
                     {Column::kGap, 1},
                     {Column::kCount, 100}};
    });
    run.gradient("zeros", 1);
    EXPECT_EQ(depth_of(kCheckLearningRate, run) < kCheckVanishingGradient.depth, is_root) << update;
  }
}

TEST(PoorWeightInitialization, ZerosAreNotToBlameForWhatTheOptimizerLeavesAlone) {
  struct Case {
    const char* what;
    double gradient;  // that reaches the zeros; NaN if none is known
    bool moves;       // another weight
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"no gradient reaches the zeros", 0, false, 1},
      {"a gradient reaches them, and nobody takes it", 0.1, false, 0},
      {"nothing is known of gradients, and others learn", NAN, true, 1},
      {"no gradient was seen anywhere, and nothing moves", NAN, false, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(30);
    run.losses(flat);
    run.add("zeros", {.role = Role::kWeight, .parameter = "zeros", .rank = 2},
            {{Column::kMean, 0}, {Column::kStd, 0}, {Column::kMin, 0}, {Column::kMax, 0}, {Column::kL2, 0}});
    run.add("other", {.role = Role::kWeight, .parameter = "other", .rank = 2}, [&](std::size_t i) {
      return Columns{
          {Column::kMean, 0.1}, {Column::kStd, 1}, {Column::kL2, c.moves ? 10 + static_cast<double>(i) : 10}};
    });
    if (!std::isnan(c.gradient)) run.gradient("zeros", c.gradient);
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), c.verdicts) << c.what;
  }
}

TEST(TrainEvalMismatch, WhatWasLearnedBeforeKeepsItsStatistics) {
  struct Case {
    const char* what;
    bool is_fine_tuned, trains_batch_norm;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"all is trained", false, true, 1},
      {"a new head on layers that are left as they are", true, false, 0},
      {"some layers are left as they are, and a batch normalisation is trained", true, true, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.record.layer_classes = {"batchnorm2d", "linear"};
    run.record.is_fine_tuned = c.is_fine_tuned;
    run.record.trains_batch_norm = c.trains_batch_norm;
    for (StepFacts& facts : run.record.facts) facts.training = false, facts.backward_in_eval = true;
    EXPECT_EQ(ask(kCheckTrainEval, run).size(), c.verdicts) << c.what;
  }
}

TEST(LossActivationMismatch, LossesOverSequencesOfPyTorchTakeLogarithms) {
  struct Case {
    const char* what;
    const char* framework;
    double low, high;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"logarithms of probabilities", "pytorch", -9, -0.01, 0},
      {"logarithms of which none is near zero, frames before samples", "pytorch", -9, -1.7, 0},
      {"probabilities", "pytorch", 0.01, 0.97, 1},
      {"scores", "pytorch", -3, 4, 1},
      {"scores, as others take them", "mxnet", -3, 4, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.record.framework = c.framework;
    run.of_loss(Role::kPredictions, "ctcloss",
                {{Column::kMin, c.low}, {Column::kMax, c.high}, {Column::kMean, 0.2}, {Column::kUnits, 5}});
    EXPECT_EQ(ask(kCheckLossInput, run).size(), c.verdicts) << c.what;
  }
}

TEST(LossDivergence, ALossWithItsSignTurnedRoundIsMadeLarge) {
  struct Case {
    const char* what;
    double turned;  // share of the passes that start from the negative
    bool climbs, is_contest, has_weights;
    bool is_told;
  };
  const Case cases[] = {
      {"the loss is made as large as it can be", 1, true, false, true, true},
      {"the sign is turned now and then", 0.3, true, false, true, false},
      {"it falls all the same: others learn from it", 1, false, false, true, false},
      {"one side of a contest makes it large", 1, true, true, true, false},
      {"inputs are looked for that the model gets wrong", 1, true, false, false, false},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses([&](std::size_t i) { return 2 + (c.climbs ? 0.01 : -0.01) * static_cast<double>(i); });
    History& sign = run.add("scalar/loss_sign", {.role = Role::kLossSign}, {{Column::kMean, -1}});
    const auto kept = static_cast<std::ptrdiff_t>(c.turned * 100);
    sign.points.erase(sign.points.begin() + kept, sign.points.end());
    sign.rows.erase(sign.rows.begin() + kept, sign.rows.end());
    if (c.has_weights) run.record.optimized = {"w"};
    if (c.is_contest) run.record.optimizers = 2, run.record.optimizers_of_others = 1;
    const std::vector<Verdict> verdicts = ask(kCheckLossTrend, run);
    const bool is_told = !verdicts.empty() && verdicts[0].message.find("sign turned") != std::string::npos;
    EXPECT_EQ(is_told, c.is_told) << c.what;
    if (c.is_told) {
      EXPECT_EQ(depth_of(kCheckLossTrend, run), 0) << "nothing else explains it";
    }
  }
}

TEST(LearningRateSanity, WeightsThatStoppedTellOfARateThatNobodySaved) {
  struct Case {
    const char* what;
    std::size_t moves;  // the last step at which weights move
    double gradient;
    bool are_rates_known;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"they stopped early", 10, 1, false, 1},
      {"they move to the end", 99, 1, false, 0},
      {"they stopped late", 80, 1, false, 0},
      {"they have learned all there is", 10, 0, false, 0},
      {"the rate is known, and tells itself", 10, 1, true, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses([](std::size_t i) { return 2 - 0.001 * static_cast<double>(i); });
    run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2}, [&](std::size_t i) {
      return Columns{
          {Column::kMean, 0.1}, {Column::kStd, 1}, {Column::kL2, 10 + 0.1 * static_cast<double>(std::min(i, c.moves))}};
    });
    run.gradient("w", c.gradient);
    if (c.are_rates_known) {
      run.add("scalar/learning_rate/0", {.role = Role::kLearningRate}, {{Column::kMean, 0.1}});
    }
    const std::vector<Verdict> verdicts = ask(kCheckLearningRate, run);
    ASSERT_EQ(verdicts.size(), c.verdicts) << c.what;
    if (c.verdicts > 0) {
      EXPECT_EQ(verdicts[0].first_step, 10) << c.what;
    }
  }
}

TEST(Plateau, OneOfSeveralLossesStaysAtAGuess) {
  struct Case {
    const char* what;
    std::size_t classes;
    double level;       // of the loss over classes; a guess costs the logarithm of their number
    std::size_t heads;  // that have such a loss
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"nothing is learned of the classes", 4, 1, 1, 1},
      {"they are learned", 4, 0.3, 1, 0},
      {"of two classes it may be meant so", 2, 1, 1, 0},
      {"which labels belong to which loss is not known", 4, 1, 2, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.add("boxes", {.role = Role::kLoss, .loss_class = "mseloss"},
            [](std::size_t i) { return Columns{{Column::kMean, 5.0 / (1 + static_cast<double>(i))}}; });
    for (std::size_t head = 0; head < c.heads; ++head) {
      run.add("kinds", {.role = Role::kLoss, .loss_class = "crossentropyloss"}, [&](std::size_t i) {
        const double guess = std::log(static_cast<double>(c.classes));
        return Columns{{Column::kMean, c.level * guess + (i % 2 == 0 ? 0.01 : -0.01)}};
      });
    }
    run.of_loss(Role::kLabels, "crossentropyloss", {{Column::kCount, 32}}).label_counts =
        std::vector<std::int64_t>(c.classes, 500);
    const std::vector<Verdict> verdicts = ask(kCheckLossTrend, run);
    ASSERT_EQ(verdicts.size(), c.verdicts) << c.what;
    if (c.verdicts > 0) {
      EXPECT_EQ(verdicts[0].tensors, std::vector<std::string>{"kinds"}) << c.what;
    }
  }
}

TEST(TrainEvalMismatch, SamplesThatAreMadeByGradientsTrainNothing) {
  struct Case {
    const char* what;
    std::int64_t steps;  // between one pass in evaluation mode that is known, and the next pass
    bool is_stepped;     // by the optimizer, before the next pass
    bool is_next_training;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"the optimizer steps by passes in evaluation mode", 1, true, false, 1},
      {"likewise, now and then back in training mode", 1, true, true, 1},
      {"each makes samples for the one that trains", 1, false, true, 0},
      {"of which some were saved", 5, true, true, 0},
      {"some were saved, and all are in evaluation mode", 5, true, false, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.record.layer_classes = {"batchnorm2d"};
    for (std::size_t i = 0; i < 20; ++i) {
      const auto number = static_cast<std::int64_t>(i);
      run.record.steps[i].global_step = c.steps * number;
      run.record.steps[i].optimizer_step = c.is_stepped ? c.steps * number : number / 2;
      const bool is_made = i % 2 == 0 || !c.is_next_training;
      run.record.facts[i] = {.training = !is_made, .grad_enabled = true, .backward_in_eval = is_made};
    }
    EXPECT_EQ(ask(kCheckTrainEval, run).size(), c.verdicts) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::rules
