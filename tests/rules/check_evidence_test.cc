// What check takes for evidence, of records made by hand: numbers that say nothing, and what stands for those that were
// not saved.

#include <gtest/gtest.h>

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

TEST(LossActivationMismatch, ASoftmaxOverSamplesSumsToOneInItsColumns) {
  struct Case {
    const char* what;
    const char* loss_class;
    double samples, classes, mean;
    bool is_told;
  };
  const Case cases[] = {
      {"over samples", "crossentropyloss", 32, 5, 1.0 / 32, true},
      {"over classes is another matter", "crossentropyloss", 32, 5, 1.0 / 5, false},
      {"small positive scores", "crossentropyloss", 32, 5, 0.04, false},
      {"a loss that takes numbers", "mseloss", 32, 5, 1.0 / 32, false},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.of_loss(Role::kPredictions, c.loss_class,
                {{Column::kMin, 1e-4},
                 {Column::kMax, 0.3},
                 {Column::kMean, c.mean},
                 {Column::kUnits, c.classes},
                 {Column::kSamples, c.samples}});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "over samples"), c.is_told) << c.what;
  }
}

TEST(LossActivationMismatch, WhatALayerWithWeightsGivesIsNoShare) {
  struct Case {
    const char* what;
    const char* layer_class;
    double high;  // of the layer's output
    bool is_told;
  };
  const Case cases[] = {
      {"the output of a sigmoid", "sigmoid", 0.6, true},
      {"the output of a linear layer, all of it small and positive so far", "linear", 0.6, false},
      {"of a convolution", "conv2d", 0.6, false},
      {"of a linear layer somewhere else", "linear", 3, true},
      {"of a model that is called after its convolutions", "convolutions", 0.6, true},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.add("out_output_0", {.role = Role::kLayerOutput, .layer = "out", .layer_class = c.layer_class},
            {{Column::kMin, 0.2}, {Column::kMax, c.high}, {Column::kMean, 0.4}});
    run.of_loss(Role::kPredictions, "bcewithlogitsloss",
                {{Column::kMin, 0.2}, {Column::kMax, 0.6}, {Column::kMean, 0.4}, {Column::kUnits, 1}});
    EXPECT_EQ(contains(told(kCheckLossInput, run), "applied twice"), c.is_told) << c.what;
  }
}

TEST(LossActivationMismatch, WhatALayerWithWeightsGivesMayLackAnActivation) {
  MadeRun run(10);
  const Columns scores = {{Column::kMin, -2}, {Column::kMax, 3}, {Column::kMean, 0.4}, {Column::kUnits, 5}};
  run.add("out_output_0", {.role = Role::kLayerOutput, .layer = "out", .layer_class = "linear"}, scores);
  run.of_loss(Role::kPredictions, "nllloss", scores);
  EXPECT_TRUE(contains(told(kCheckLossInput, run), "log-softmax is missing"));
}

TEST(InputRange, SamplesAreAlikeUpToTheRoundingOfTheirStatistics) {
  struct Case {
    const char* what;
    double variance;
    bool is_told;
  };
  const Case cases[] = {
      {"one sample over and over", 0, true},
      {"the same, squared in single precision", 1.5e-7, true},
      {"samples that differ by a thousandth", 1e-6, false},
  };
  for (const Case& c : cases) {
    MadeRun run(6);
    run.add("inputs", {.role = Role::kModelInput},
            {{Column::kMin, -2},
             {Column::kMax, 2},
             {Column::kMean, 0.1},
             {Column::kStd, 1},
             {Column::kSamples, 32},
             {Column::kSampleVariance, c.variance}});
    EXPECT_EQ(contains(told(kCheckInputRange, run), "the same sample"), c.is_told) << c.what;
  }
}

TEST(InputRange, TheFirstLossStandsForTargetsThatWereNotSaved) {
  struct Case {
    const char* what;
    const char* loss_class;
    double first, last;
    bool is_told;
  };
  const Case cases[] = {
      {"squares of prices, and little is learned", "mseloss", 7e10, 6.5e10, true},
      {"distances of prices, and little is learned", "l1loss", 2.5e5, 2.4e5, true},
      {"squares of prices, learned", "mseloss", 7e10, 1e9, false},
      {"a loss of usual size, and little is learned", "mseloss", 50, 48, false},
      {"a loss over classes", "crossentropyloss", 7e10, 6.5e10, false},
  };
  for (const Case& c : cases) {
    MadeRun run(60);
    run.add("loss", {.role = Role::kLoss, .loss_class = c.loss_class}, [&](std::size_t i) {
      return Columns{{Column::kMean, c.first + (c.last - c.first) * std::min(1.0, static_cast<double>(i) / 30)}};
    });
    EXPECT_EQ(contains(told(kCheckInputRange, run), "targets that were not scaled"), c.is_told) << c.what;
  }
}

TEST(LossDivergence, NamesAMomentumThatIsOutOfMeasure) {
  for (const auto& [momentum, cause] : {std::pair(0.9, "the learning rate"), std::pair(0.999, "a momentum of 0.999")}) {
    MadeRun run(60);
    run.record.momentum = momentum;
    run.losses([](std::size_t i) { return 1 + static_cast<double>(i) / 10; });
    const std::vector<Verdict> verdicts = ask(kCheckLossTrend, run);
    ASSERT_EQ(verdicts.size(), 1U);
    EXPECT_TRUE(verdicts[0].causes.front().starts_with(cause)) << verdicts[0].causes.front();
  }
}

TEST(FrozenLayers, TheOrderOfCallsTellsWhereNoOutputWasSaved) {
  struct Case {
    const char* what;
    std::int64_t cut, learning;  // when the layers are called
    Severity severity;
  };
  const Case cases[] = {
      {"runs before a layer that learns", 1, 2, Severity::kWarning},
      {"runs last: nobody uses what it gives", 2, 1, Severity::kInfo},
      {"is never called", -1, 1, Severity::kInfo},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    run.record.optimized = {"cut.weight", "head.weight"};
    const auto weight = [&](const std::string& layer, std::int64_t call_order, double update) {
      run.add(
          layer + ".weight",
          {.role = Role::kWeight, .parameter = layer + ".weight", .layer = layer, .rank = 2, .call_order = call_order},
          {{Column::kUpdate, update}, {Column::kBefore, 1}, {Column::kGap, 1}});
    };
    weight("cut", c.cut, 0);
    weight("head", c.learning, 0.01);
    run.gradient("head.weight", 1);
    const std::vector<Verdict> verdicts = ask(kCheckFrozenLayers, run);
    ASSERT_EQ(verdicts.size(), 1U) << c.what;
    EXPECT_EQ(verdicts[0].severity, c.severity) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::rules
