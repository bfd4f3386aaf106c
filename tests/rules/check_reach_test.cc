// What check says of answers that cannot reach their targets, and of trainings that break: of records made by hand.

#include <gtest/gtest.h>

#include "rules/made_run.h"

namespace tornasole::rules {
namespace {

std::string told(const Detector& detector, const MadeRun& run) {
  const std::vector<Verdict> verdicts = ask(detector, run);
  EXPECT_LE(verdicts.size(), 1U);
  return verdicts.empty() ? "" : verdicts[0].rule + ": " + verdicts[0].message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(LossActivationMismatch, TargetsBeyondTheLastActivationAreOutOfReach) {
  struct Case {
    const char* what;
    const char* last_layer;
    const char* loss;
    double low, high;                     // of the predictions
    double least, most, mean, deviation;  // of the labels
    bool is_told;
  };
  const Case cases[] = {
      {"a rectifier and targets of either sign", "relu", "mseloss", 0, 2, -2, 2, 0, 1, true},
      {"a rectifier and targets above zero", "relu", "mseloss", 0, 2, 0, 4, 1, 1, false},
      {"a rectifier and noise a little below zero", "relu", "l1loss", 0, 2, -0.3, 4, 1, 1.5, false},
      {"a sigmoid and prices", "sigmoid", "mse_loss", 0.1, 0.9, 10, 30, 20, 5, true},
      {"a sigmoid and shares", "sigmoid", "mseloss", 0.1, 0.9, 0, 1, 0.5, 0.3, false},
      {"a tanh and targets of several units", "tanh", "smoothl1loss", -0.9, 0.9, -4, 4, 0, 2, true},
      {"a tanh and targets with a little noise", "tanh", "mseloss", -1, 1, -1.2, 1.2, 0, 0.7, false},
      {"predictions that are not what the last layer gives", "sigmoid", "mseloss", -3, 5, 10, 30, 20, 5, false},
      {"a last layer with weights", "linear", "mseloss", 0, 2, -2, 2, 0, 1, false},
      {"another loss", "relu", "poissonnllloss", 0, 2, -2, 2, 0, 1, false},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.record.last_layer = c.last_layer;
    run.of_loss(Role::kPredictions, c.loss, {{Column::kMin, c.low}, {Column::kMax, c.high}, {Column::kMean, 0.5}});
    run.of_loss(
        Role::kLabels, c.loss,
        {{Column::kMin, c.least}, {Column::kMax, c.most}, {Column::kMean, c.mean}, {Column::kStd, c.deviation}});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "out of reach"), c.is_told) << c.what;
  }
}

TEST(LossActivationMismatch, ASoftmaxOverOneScoreIsOne) {
  for (const double score : {1.0, 0.9}) {
    MadeRun run(10);
    run.of_loss(Role::kPredictions, "bceloss",
                {{Column::kMin, score}, {Column::kMax, 1}, {Column::kMean, 1}, {Column::kUnits, 1}});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "single score"), score == 1) << score;
  }
}

TEST(LossActivationMismatch, CrossEntropyTakesNoSigmoid) {
  for (const char* last_layer : {"sigmoid", "linear"}) {
    MadeRun run(10);
    run.record.last_layer = last_layer;
    run.of_loss(Role::kPredictions, "crossentropyloss",
                {{Column::kMin, 0.1}, {Column::kMax, 0.9}, {Column::kMean, 0.5}, {Column::kUnits, 4}});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "sigmoid"), std::string_view(last_layer) == "sigmoid");
  }
}

TEST(LossDivergence, AClimbThatEndsInNaNIsToldAsOne) {
  struct Case {
    const char* what;
    std::function<double(std::size_t)> loss;
    bool is_told;
  };
  const Case cases[] = {
      {"it climbs and breaks", [](std::size_t i) { return i < 30 ? std::pow(3.0, static_cast<double>(i)) : NAN; },
       true},
      {"it falls and breaks", [](std::size_t i) { return i < 30 ? 1 / (1.0 + static_cast<double>(i)) : NAN; }, false},
      {"one large value before it breaks", [](std::size_t i) { return i < 29    ? 1.0
                                                                      : i == 29 ? 1e6
                                                                                : NAN; }, false},
      {"it climbs a little and breaks", [](std::size_t i) { return i < 30 ? 1 + 0.1 * static_cast<double>(i) : NAN; },
       false},
  };
  for (const Case& c : cases) {
    MadeRun run(60);
    run.losses(c.loss);
    EXPECT_EQ(contains(told(kCheckLossTrend, run), "LossDivergence: The training loss climbs from"), c.is_told)
        << c.what;
  }
}

TEST(LearningRateSanity, OneRuinousStepIsEnoughWhereTheRunBreaksByIt) {
  struct Case {
    const char* what;
    double update;
    std::size_t breaks_at;
    bool is_told;
  };
  const Case cases[] = {
      {"thrown far away, and broken", 50, 1, true},
      {"moved by little, and broken", 1e-3, 1, false},
      {"thrown far away once, and broken much later", 50, 30, false},
  };
  for (const Case& c : cases) {
    MadeRun run(40);
    run.losses([&](std::size_t i) { return i < c.breaks_at ? 1.0 : NAN; });
    run.weight("w", [&](std::size_t i) { return i == 1 ? c.update : NAN; });
    EXPECT_EQ(contains(told(kCheckLearningRate, run), "LearningRateSanity"), c.is_told) << c.what;
  }
}

TEST(NonFiniteProvenance, DataComesBeforeWhatIsComputedFromIt) {
  struct Case {
    Role role;
    const char* kind;
  };
  for (const Case& c : {Case{Role::kModelInput, "(input)"}, Case{Role::kLabels, "(labels)"},
                        Case{Role::kLayerOutput, "(forward)"}, Case{Role::kGradient, "(loss)"}}) {
    MadeRun run(10);
    const auto breaks = [](std::size_t i) { return Columns{{Column::kNan, i < 5 ? 0.0 : 3.0}}; };
    run.add("gradient/w", {.role = Role::kGradient, .parameter = "w"}, breaks);
    run.add("loss", {.role = Role::kLoss}, breaks);
    run.add("it", {.role = c.role}, breaks);
    const std::vector<Verdict> verdicts = ask(kCheckNonFinite, run);
    ASSERT_FALSE(verdicts.empty());
    EXPECT_TRUE(contains(verdicts[0].message, c.kind)) << verdicts[0].message;
  }
}

TEST(InitialLoss, EvenChancesCostTheLogarithmOfTheClasses) {
  for (const double first : {3.6, 20.0}) {
    MadeRun run(20);
    run.losses([&](std::size_t i) { return first / (1.0 + static_cast<double>(i)); });
    run.record.histories.back().role.loss_class = "cross_entropy";
    History& labels = run.of_loss(Role::kLabels, "cross_entropy", {});
    labels.label_counts.assign(30, 10);  // nearly all labels are of one class: guessing by counts costs 0.5
    labels.label_counts[0] = 10'000;
    EXPECT_EQ(ask(kCheckInitialLoss, run).size(), first > 10 ? 1U : 0U) << first;
  }
}

TEST(MissingZeroGrad, InAContestAnOptimizerSeesWhatTheOtherLossLeft) {
  for (const std::size_t optimizers : {1U, 2U}) {
    MadeRun run(20);
    run.record.optimizers = optimizers;
    run.gradient("w", 1);
    run.add("optimizer_gradient/w", {.role = Role::kOptimizerGradient, .parameter = "w", .rank = 2},
            {{Column::kCosine, 0.98}, {Column::kL2, 12}});
    EXPECT_EQ(ask(kCheckMissingZeroGrad, run).size(), optimizers == 1 ? 1U : 0U);
  }
}

TEST(PoorWeightInitialization, ManyGainsThatAreALittleTooLargeMultiply) {
  struct Case {
    const char* what;
    std::size_t layers;
    double deviation, first_loss;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"eight layers, and a loss beyond all measure", 8, 0.5, 1e6, 1},
      {"eight layers, whose outputs are normalised", 8, 0.5, 3, 0},
      {"two layers", 2, 0.5, 1e6, 0},
      {"layers of the usual scale", 8, 0.12, 1e6, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(30);
    run.losses([&](std::size_t i) { return c.first_loss / (1.0 + static_cast<double>(i)); });
    run.record.histories.back().role.loss_class = "mseloss";
    run.of_loss(Role::kLabels, "mseloss",
                {{Column::kMean, 0}, {Column::kStd, 1}, {Column::kMin, -2}, {Column::kMax, 2}, {Column::kCount, 32}});
    for (std::size_t layer = 0; layer < c.layers; ++layer) {
      const std::string name = std::to_string(layer) + ".weight";
      run.add(name, {.role = Role::kWeight, .parameter = name, .rank = 2, .shape = Shape{64, 64}},
              {{Column::kMean, 0.01}, {Column::kStd, c.deviation}, {Column::kMin, -1}, {Column::kMax, 1}});
    }
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), c.verdicts) << c.what;
  }
}

TEST(ConstantOutput, WhatWasConstantAtTheBeginningAloneIsOver) {
  for (const bool is_learned : {true, false}) {
    MadeRun run(400);
    run.losses([&](std::size_t i) { return is_learned && i > 100 ? 0.5 : 1.0; });
    run.of_loss(Role::kPredictions, "mse_loss",
                {{Column::kSampleVariance, 1e-9}, {Column::kSamples, 32}, {Column::kMean, 1}});
    History& predictions = run.record.histories.back();
    predictions.points.resize(16);
    predictions.rows.resize(16);
    EXPECT_EQ(ask(kCheckConstantOutput, run).size(), is_learned ? 0U : 1U);
    run.losses([](std::size_t i) { return static_cast<double>(i); });
    EXPECT_EQ(ask(kCheckConstantOutput, run).size(), is_learned ? 0U : 1U) << "another loss rises meanwhile";
  }
}

TEST(TrainEvalMismatch, EvaluationsThatAreWorseThanAnyGuessGetOtherInputs) {
  for (const double cost : {60.0, 1.5}) {
    MadeRun run(100);
    for (std::size_t i = 9; i < 100; i += 10) run.record.steps[i].step.mode = Mode::kEval;
    run.losses([&](std::size_t i) { return i % 10 == 9 ? cost : 2.3 / (1.0 + static_cast<double>(i)); });
    run.record.histories.back().role.loss_class = "cross_entropy";
    run.of_loss(Role::kLabels, "cross_entropy", {}).label_counts = {100, 100, 100, 100};
    const std::vector<Verdict> verdicts = ask(kCheckOverfit, run);
    EXPECT_EQ(!verdicts.empty() && verdicts[0].rule == "TrainEvalMismatch", cost > 10) << cost;
  }
}

TEST(SilentOptimizer, BiasesAloneDoNotMakeALossFall) {
  for (const bool falls : {false, true}) {
    MadeRun run(60);
    run.losses([&](std::size_t i) { return falls ? 2.0 / (1.0 + 0.1 * static_cast<double>(i)) : 2.0; });
    run.weight("w", [](std::size_t) { return 0.0; });
    run.record.histories.back().role.requires_grad = false;
    run.record.optimizers = 1;
    run.record.optimized = {"b"};
    EXPECT_EQ(contains(told(kCheckSilentOptimizer, run), "other kinds, such as b"), !falls);
  }
}

TEST(TreeDepth, NamesWhatKeepsTreesFromBranching) {
  MadeRun run(12);
  run.record.is_boosting = true;
  run.record.trees.push_back({3, {0, 1, 1}});
  EXPECT_FALSE(contains(told(kCheckTreeDepth, run), "gamma"));
  run.record.hyperparameters["gamma"] = 1e6;
  EXPECT_TRUE(contains(told(kCheckTreeDepth, run), "gamma is 1e+06"));
  run.of_loss(Role::kLabels, "", {{Column::kMin, 3}, {Column::kMax, 3}});
  EXPECT_TRUE(contains(told(kCheckTreeDepth, run), "All labels are the same"));
}

}  // namespace
}  // namespace tornasole::rules
