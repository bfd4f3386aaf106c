// What check holds to be the reason of a training that gets nowhere, of records made by hand: each case beside one that
// looks like it and is healthy, or sick for another reason.

#include <gtest/gtest.h>

#include <cctype>

#include "rules/made_run.h"

namespace tornasole::rules {
namespace {

// The message of the only verdict; empty if there is none.
std::string told(const Detector& detector, const MadeRun& run) {
  const std::vector<Verdict> verdicts = ask(detector, run);
  EXPECT_LE(verdicts.size(), 1U);
  return verdicts.empty() ? "" : verdicts[0].message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(InputRange, TargetsAreTooLargeWhereTheModelDoesNotGetThere) {
  struct Case {
    const char* what;
    const char* loss_class;
    double mean, deviation, first, last;  // of the targets; of the loss
    bool is_told;
  };
  const Case cases[] = {
      {"prices, far from what a constant costs", "mseloss", 3e5, 5e4, 9.2e10, 9e10, true},
      {"prices, learned", "mseloss", 3e5, 5e4, 9.2e10, 1e9, false},
      {"prices, by their distance", "l1_loss", 3e5, 5e4, 3e5, 2.9e5, true},
      {"prices, by their distance, learned", "l1_loss", 3e5, 5e4, 3e5, 3e4, false},
      {"prices, and it breaks", "mseloss", 3e5, 5e4, 9.2e10, NAN, true},
      {"small targets, not learned", "mseloss", 3, 1, 10, 9, false},
      {"a sum over the samples", "mseloss", 300, 50, 64 * 9.2e4, 64 * 1e3, false},
      {"no targets, but classes", "crossentropyloss", 300, 50, 2, 2, false},
  };
  for (const Case& c : cases) {
    MadeRun run(60);
    run.add("loss", {.role = Role::kLoss, .loss_class = c.loss_class}, [&](std::size_t i) {
      return Columns{{Column::kMean, c.first + (c.last - c.first) * std::min(1.0, static_cast<double>(i) / 30)}};
    });
    run.of_loss(Role::kLabels, c.loss_class, {{Column::kMean, c.mean}, {Column::kStd, c.deviation}});
    EXPECT_EQ(contains(told(kCheckInputRange, run), "The targets (labels)"), c.is_told) << c.what;
  }
}

TEST(TrainEvalMismatch, BatchNormalisationNeedsNumbers) {
  struct Case {
    const char* what;
    std::vector<double> counts;  // elements of the outputs of its layers, which have 8 channels
    bool is_told;
  };
  const Case cases[] = {
      {"two samples", {16}, true},
      {"thirty-two samples", {256}, false},
      {"two images", {16.0 * 64}, false},
      {"two images, and once what is left of them by pooling", {16.0 * 64, 16}, false},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    for (std::size_t i = 0; i < c.counts.size(); ++i) {
      const std::string layer = "norm" + std::to_string(i);
      run.add(layer + ".weight", {.role = Role::kBias, .layer = layer, .rank = 1, .shape = {8}}, Columns{});
      run.add(layer + "_output_0", {.role = Role::kLayerOutput, .layer = layer, .layer_class = "batchnorm2d"},
              {{Column::kCount, c.counts[i]}});
    }
    EXPECT_EQ(contains(told(kCheckTrainEval, run), "of 2 numbers"), c.is_told) << c.what;
  }
}

TEST(LossActivationMismatch, TheLastLayerTellsWhereNothingElseDoes) {
  struct Case {
    const char* what;
    const char* loss_class;
    const char* last_layer;
    double lowest;  // loss
    bool is_told;
  };
  const Case cases[] = {
      {"a softmax twice", "crossentropyloss", "softmax", 0.8, true},
      {"shares beside the scores that are trained", "crossentropyloss", "softmax", 0.5, false},
      {"scores", "crossentropyloss", "linear", 0.8, false},
      {"logarithms, which a softmax leaves as they are", "crossentropyloss", "logsoftmax", 0.8, false},
      {"a sigmoid twice", "bcewithlogitsloss", "sigmoid", 0.5, true},
      {"a sigmoid beside what is trained", "bcewithlogitsloss", "sigmoid", 0.2, false},
      {"a sigmoid once", "bceloss", "sigmoid", 0.5, false},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.record.last_layer = c.last_layer;
    run.add("loss", {.role = Role::kLoss, .loss_class = c.loss_class},
            [&](std::size_t i) { return Columns{{Column::kMean, i == 0 ? 1.3 : c.lowest}}; });
    run.add("head.weight", {.role = Role::kWeight, .order = 5, .rank = 2, .shape = {4, 16}}, Columns{});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "applied twice"), c.is_told) << c.what;
  }
}

TEST(MissingZeroGrad, WeightsGoFurtherThanGradientsExplain) {
  struct Case {
    const char* what;
    double rate, momentum;
    double update;  // by one step, of gradients of 1
    double last_loss;
    bool is_told;
  };
  const Case cases[] = {
      {"three times as far", 0.01, 0, 0.03, 3, true},
      {"as far as gradients go", 0.01, 0, 0.01, 3, false},
      {"three times as far, by momentum", 0.01, 0.9, 0.03, 3, false},
      {"further than momentum explains", 0.01, 0.9, 0.3, 3, true},
      {"three times as far, as a schedule may, and all is well", 0.01, 0, 0.03, 0.1, false},
      {"no plain gradient descent", NAN, 0, 0.03, 3, false},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.record.plain_rate = c.rate;
    run.record.momentum = c.momentum;
    run.losses([&](std::size_t i) { return i < 5 ? 2.0 : c.last_loss; });
    run.weight("w", [&](std::size_t) { return c.update; });
    run.gradient("w", 1);
    EXPECT_EQ(contains(told(kCheckMissingZeroGrad, run), "never cleared"), c.is_told) << c.what;
  }
}

TEST(MissingZeroGrad, AccumulatedPassesExplainLongSteps) {
  MadeRun run(20);
  run.record.plain_rate = 0.01;
  for (std::size_t i = 0; i < 20; ++i) {  // saved at every twentieth pass, five of which make a step
    run.record.steps[i].step.number = static_cast<std::int64_t>(20 * i);
    run.record.steps[i].optimizer_step = static_cast<std::int64_t>(4 * i);
  }
  run.losses([](std::size_t) { return 2.0; });
  run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2},
          Columns{{Column::kUpdate, 4 * 5 * 0.01}, {Column::kBefore, 1}, {Column::kGap, 4}});
  run.gradient("w", 1);
  EXPECT_EQ(told(kCheckMissingZeroGrad, run), "");
}

TEST(LossSpike, IsLeftWhereALossThatFellDoesNotComeBack) {
  for (const auto& [end, verdicts] : {std::pair(1.3, 1U), std::pair(0.72, 0U)}) {
    MadeRun run(300);
    run.losses([last = end](std::size_t i) {
      const double noise = i % 2 == 0 ? 0.02 : -0.02;
      return i == 150 ? 70.0 : noise + (i < 150 ? 1.3 - 0.004 * static_cast<double>(i) : last);
    });
    std::size_t warnings = 0;
    for (const Verdict& verdict : ask(kCheckLossSpike, run))
      warnings += verdict.severity == Severity::kWarning ? 1U : 0U;
    EXPECT_EQ(warnings, verdicts) << end;
  }
}

TEST(LearningRateSanity, IsNotToBlameForALossThatBreaksWhileItFalls) {
  for (const auto& [before, verdicts] : {std::pair(0.05, 0U), std::pair(5.0, 1U)}) {
    MadeRun run(100);
    run.losses([last = before](std::size_t i) { return i == 0 ? 0.8 : i < 10 ? last : NAN; });
    run.weight("w", [](std::size_t i) { return i < 10 ? 0.3 : NAN; });
    EXPECT_EQ(ask(kCheckLearningRate, run).size(), verdicts) << before;
  }
}

TEST(LearningRateSanity, NamesMomentumAndClipping) {
  MadeRun far(100);
  far.losses([](std::size_t i) { return 2.0 + 0.1 * static_cast<double>(i); });
  far.weight("w", [](std::size_t) { return 0.5; });
  far.record.momentum = 0.9;
  EXPECT_TRUE(contains(told(kCheckLearningRate, far), "the learning rate is too high"));
  far.record.momentum = 0.999;
  EXPECT_TRUE(contains(told(kCheckLearningRate, far), "a momentum of 0.999 adds up about 1000 steps"));

  for (const auto& [seen, is_clipped] : {std::pair(1e-5, true), std::pair(0.5, false)}) {
    MadeRun still(100);
    still.losses([](std::size_t) { return 2.0; });
    still.weight("w", [](std::size_t) { return 1e-8; });
    still.gradient("w", 1);
    still.add("optimizer_gradient/w", {.role = Role::kOptimizerGradient, .parameter = "w", .rank = 2},
              Columns{{Column::kL2, seen}});
    const std::string message = told(kCheckLearningRate, still);
    EXPECT_EQ(contains(message, "clipped or scaled to 1e-05"), is_clipped) << message;
    EXPECT_EQ(contains(message, "The learning rate is too low"), !is_clipped) << message;
  }
}

TEST(LossNotDecreasing, NamesDropOutThatLeavesTooLittle) {
  for (const auto& [zeros, is_told] : {std::pair(97.5, true), std::pair(75.0, false)}) {
    MadeRun run(100);
    run.losses([](std::size_t i) { return i % 2 == 0 ? 1.38 : 1.39; });
    run.add("relu_output_0", {.role = Role::kLayerOutput, .layer_class = "relu", .order = 1},
            {{Column::kZeros, 50}, {Column::kCount, 100}});
    run.add("drop_output_0", {.role = Role::kLayerOutput, .layer_class = "dropout", .order = 2},
            {{Column::kZeros, zeros}, {Column::kCount, 100}});
    const std::string message = told(kCheckLossTrend, run);
    EXPECT_TRUE(contains(message, "does not fall")) << message;
    EXPECT_EQ(contains(message, "Drop-out takes 95 %"), is_told) << message;
  }
}

TEST(FrozenLayers, AnAnswerThatNobodyUsesIsNoted) {
  struct Case {
    const char* what;
    std::vector<const char*> layers;  // in the order in which they run; those in capitals learn
    Severity severity;
  };
  const Case cases[] = {
      {"the last block's answer for one that does not come", {"B.0.F", "B.0.back", "B.0.OUT"}, Severity::kInfo},
      {"several layers of it", {"B.0.F", "B.0.back.0", "B.0.back.1", "B.0.OUT"}, Severity::kInfo},
      {"an encoder that is cut off", {"enc.0", "enc.1", "HEAD"}, Severity::kWarning},
      {"a tower of two that is cut off", {"LEFT.0", "right.0", "HEAD"}, Severity::kWarning},
      {"attention that is cut off, first in its block", {"B.0.MLP", "B.1.attn", "B.1.MLP"}, Severity::kWarning},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.losses([](std::size_t i) { return 2.0 / static_cast<double>(i + 1); });
    for (const std::string layer : c.layers) {
      const bool learns = std::isupper(layer.back()) != 0 || layer == "LEFT.0";
      const std::string name = layer + ".weight";
      run.add(layer + "_output_0", {.role = Role::kLayerOutput, .layer = layer}, Columns{});
      run.add(name, {.role = Role::kWeight, .parameter = name, .layer = layer, .rank = 2},
              Columns{{Column::kUpdate, learns ? 0.01 : 0}, {Column::kBefore, 1}, {Column::kGap, 1}});
      run.record.optimized.insert(name);
      if (learns) run.gradient(name, 1);
    }
    const std::vector<Verdict> verdicts = ask(kCheckFrozenLayers, run);
    ASSERT_EQ(verdicts.size(), 1U) << c.what;
    EXPECT_EQ(verdicts[0].severity, c.severity) << c.what;
  }
}

TEST(LossDivergence, LossesThatAreMixedMayRise) {
  for (const auto& [losses, verdicts] : {std::pair(1, 1U), std::pair(2, 0U)}) {
    MadeRun run(100);
    for (int k = 0; k < losses; ++k) {
      run.add("cross_entropy_output_" + std::to_string(k), {.role = Role::kLoss, .loss_class = "cross_entropy"},
              [](std::size_t i) { return Columns{{Column::kMean, 1.2 + 0.005 * static_cast<double>(i)}}; });
    }
    EXPECT_EQ(ask(kCheckLossTrend, run).size(), verdicts) << losses;
  }
}

TEST(LossActivationMismatch, LabelsOfABinaryLossAreChances) {
  struct Case {
    const char* what;
    const char* loss_class;
    double low, high;
    bool is_told;
  };
  const Case cases[] = {
      {"classes of Keras", "binarycrossentropy", 0, 9, true},
      {"signs", "bcewithlogitsloss", -1, 1, true},
      {"pixels", "binary_cross_entropy_with_logits", 0, 255, true},
      {"two classes", "bceloss", 0, 1, false},
      {"smoothed", "binary_cross_entropy", 0.05, 0.95, false},
      {"signs of another loss", "hingeembeddingloss", -1, 1, false},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.losses([](std::size_t i) { return 0.7 - 0.01 * static_cast<double>(i); });
    run.of_loss(Role::kLabels, c.loss_class, {{Column::kMin, c.low}, {Column::kMax, c.high}, {Column::kMean, 0.5}});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "takes labels from 0 to 1"), c.is_told) << c.what;
  }
}

// A policy and a critic, say: first one is trained for a while, then the other, and so on.
TEST(LossDivergence, LossesThatTakeTurnsAreNoClimb) {
  for (const auto& [growth, verdicts] : {std::pair(-0.002, 0U), std::pair(0.05, 1U)}) {
    MadeRun run(320);
    for (const std::size_t turn : {0U, 1U}) {
      History& loss = run.add("loss" + std::to_string(turn), {.role = Role::kLoss}, [&, rate = growth](std::size_t i) {
        return Columns{{Column::kMean, turn == 0 ? 0.01 : 1 + rate * static_cast<double>(i)}};
      });
      for (std::size_t i = loss.points.size(); i-- > 0;) {
        if (i / 40 % 2 == turn) continue;
        loss.points.erase(loss.points.begin() + static_cast<std::ptrdiff_t>(i));
        loss.rows.erase(loss.rows.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    EXPECT_EQ(ask(kCheckLossTrend, run).size(), verdicts) << growth;
  }
}

TEST(PoorWeightInitialization, AFirstLossTellsWithoutLabels) {
  for (const auto& [first, verdicts] : {std::pair(500.0, 1U), std::pair(10.0, 0U)}) {
    MadeRun run(50);
    run.add("loss", {.role = Role::kLoss, .loss_class = "crossentropyloss"},
            [high = first](std::size_t i) { return Columns{{Column::kMean, high / (1.0 + static_cast<double>(i))}}; });
    for (const char* name : {"a", "b"}) {
      run.add(name, {.role = Role::kWeight, .rank = 2, .shape = {50, 100}},
              Columns{{Column::kMean, 0}, {Column::kStd, 1.5}, {Column::kEqualUnits, 0}});
    }
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), verdicts) << first;
  }
}

}  // namespace
}  // namespace tornasole::rules
