// The questions of check about how a run begins, its data and its classes, its jumps and its workers.

#include <gtest/gtest.h>

#include "rules/check/loss_facts.h"
#include "rules/made_run.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

double falling(std::size_t i) { return 2.0 / (1.0 + 0.1 * static_cast<double>(i)); }
double flat(std::size_t i) { return 1.386 + (i % 2 == 0 ? 0.001 : -0.001); }

TEST(TrivialLoss, IsThatOfAConstantAnswer) {
  MadeRun classes(10);
  classes.add("loss", {.role = Role::kLoss, .loss_class = "crossentropyloss"}, Columns{{Column::kMean, 1.0}});
  classes.of_loss(Role::kLabels, "crossentropyloss", {}).label_counts = {50, 50};
  EXPECT_NEAR(trivial_loss(classes.record).value(), std::log(2.0), 1e-9);
  for (const auto& [first, summed] : {std::pair(14.0, 20.0), std::pair(0.7, 1.0), std::pair(50.0, 1.0)}) {
    MadeRun sums(10);
    sums.add("loss", {.role = Role::kLoss, .loss_class = "crossentropyloss"}, Columns{{Column::kMean, first}});
    sums.of_loss(Role::kLabels, "crossentropyloss", {{Column::kCount, 20}}).label_counts = {50, 50};
    EXPECT_NEAR(trivial_loss(sums.record).value(), summed * std::log(2.0), 1e-9) << first;
  }
  MadeRun sure(10);
  sure.add("loss", {.role = Role::kLoss, .loss_class = "crossentropyloss"},
           [](std::size_t i) { return Columns{{Column::kMean, i == 0 ? 14.0 : 2.0}}; });
  sure.of_loss(Role::kLabels, "crossentropyloss", {{Column::kCount, 20}}).label_counts = {50, 50};
  EXPECT_NEAR(trivial_loss(sure.record).value(), std::log(2.0), 1e-9) << "it is over at once";
  classes.record.histories.back().label_counts = {100, 0};
  EXPECT_FALSE(trivial_loss(classes.record).has_value()) << "one class tells nothing of others";

  MadeRun numbers(10);
  numbers.add("loss", {.role = Role::kLoss, .loss_class = "mseloss"}, Columns{{Column::kMean, 1.0}});
  EXPECT_FALSE(trivial_loss(numbers.record).has_value()) << "no labels";
  // Eight labels of mean square 10, of which 0.4 is variance over the samples.
  numbers.of_loss(
      Role::kLabels, "mseloss",
      {{Column::kL2, std::sqrt(80.0)}, {Column::kCount, 8}, {Column::kSamples, 8}, {Column::kSampleVariance, 0.4}});
  EXPECT_NEAR(trivial_loss(numbers.record).value(), 4, 1e-5);
}

TEST(TrivialLoss, OfLabelsThatAreZeroOrOneIsTheirEntropy) {
  struct Case {
    const char* what;
    double first, ones, zeros;  // the first loss; of 100 labels
    double guess;               // 0 if it is not known
  };
  const Case cases[] = {
      {"even", 0.69, 50, 50, std::log(2.0)},    {"one in ten", 0.65, 10, 90, 0.3251},
      {"classes with weights", 1.3, 10, 90, 0}, {"shades between zero and one", 0.69, 50, 20, 0},
      {"one class", 0.69, 100, 0, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.add("loss", {.role = Role::kLoss, .loss_class = "bcewithlogitsloss"}, Columns{{Column::kMean, c.first}});
    run.of_loss(Role::kLabels, "bcewithlogitsloss",
                {{Column::kCount, 100},
                 {Column::kMean, c.ones / 100},
                 {Column::kZeros, c.zeros},
                 {Column::kMin, 0},
                 {Column::kMax, 1}});
    EXPECT_NEAR(trivial_loss(run.record).value_or(0), c.guess, 1e-4) << c.what;
  }
}

TEST(LearningRateSanity, BackAtAGuessIsNoBetter) {
  for (const auto& [end, verdicts] : {std::pair(std::log(4.0), 1U), std::pair(0.7, 0U)}) {
    MadeRun run(100);
    run.add("loss", {.role = Role::kLoss, .loss_class = "crossentropyloss"}, [last = end](std::size_t i) {
      return Columns{{Column::kMean, i == 0 ? 1.6 : i < 20 ? 3.0 : last}};
    });
    run.of_loss(Role::kLabels, "crossentropyloss", {}).label_counts = {50, 50, 50, 50};
    run.weight("w", [](std::size_t i) { return i < 5 ? 2.0 : 0.03; });
    EXPECT_EQ(ask(kCheckLearningRate, run).size(), verdicts) << end;
  }
}

TEST(PoorWeightInitialization, WhatIsEqualFromUnitToUnitNeverLearns) {
  struct Weight {
    double mean, deviation, equal_units = 0;
  };
  struct Case {
    const char* what;
    std::vector<Weight> weights;
    std::function<double(std::size_t)> loss;
    std::size_t verdicts;
  };
  const double usual = 1 / std::sqrt(100.0);
  const Case cases[] = {
      {"drawn at random", {{0, usual}, {0, usual}}, falling, 0},
      {"drawn at random, and the loss does not fall for other reasons", {{0, usual}, {0, usual}}, flat, 0},
      {"a last layer of zeros", {{0, usual}, {0, 0}}, falling, 0},
      {"nothing but zeros", {{0, 0}, {0, 0}}, flat, 1},
      {"one number everywhere", {{0.05, 0}, {0, usual}}, falling, 1},
      {"rows that are copies of each other", {{0, usual, 0.9}, {0, usual}}, falling, 1},
      {"far too large, and the loss does not fall", {{0, 30 * usual}, {0, usual}}, flat, 1},
      {"far too large, and the training copes", {{0, 30 * usual}, {0, usual}}, falling, 0},
      {"all far too small, and nothing gets through", {{0, usual / 100}, {0, usual / 100}}, flat, 1},
      {"one small layer", {{0, usual / 100}, {0, usual}, {0, usual}}, flat, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(50);
    run.losses(c.loss);
    for (std::size_t i = 0; i < c.weights.size(); ++i) {
      const Weight& weight = c.weights[i];
      TensorRole role{.role = Role::kWeight, .rank = 2, .shape = {50, 100}};
      run.add(
          "w" + std::to_string(i), role,
          {{Column::kMean, weight.mean}, {Column::kStd, weight.deviation}, {Column::kEqualUnits, weight.equal_units}});
    }
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), c.verdicts) << c.what;
  }
  for (const auto& [what, loss, late_size, verdicts] :
       {std::tuple("a hidden layer of zeros that never moves", &flat, 0.0, 1U),
        std::tuple("a branch that starts at zero and moves", &flat, 0.1, 0U),
        std::tuple("a branch nobody uses, and the loss falls", &falling, 0.0, 0U)}) {
    MadeRun run(50);
    run.losses(*loss);
    run.add("head", {.role = Role::kWeight, .rank = 2, .shape = {50, 100}},
            {{Column::kMean, 0}, {Column::kStd, usual}, {Column::kMin, -0.2}, {Column::kMax, 0.2}});
    run.add("hidden", {.role = Role::kWeight, .rank = 2, .shape = {50, 100}}, [size = late_size](std::size_t i) {
      const double now = i == 0 ? 0 : size;
      return Columns{{Column::kMean, 0}, {Column::kStd, now}, {Column::kMin, -now}, {Column::kMax, now}};
    });
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), verdicts) << what;
  }
  // Keras: the first weights are those after the first step, which a huge rate has made.
  for (const auto& [update, verdicts] : {std::pair(0.01, 1U), std::pair(50.0, 0U)}) {
    MadeRun run(50);
    run.record.weights_after_step = run.record.units_last = true;
    run.losses(flat);
    run.add("kernel", {.role = Role::kWeight, .rank = 2, .shape = {100, 50}},
            {{Column::kMean, 0}, {Column::kStd, 30 * usual}, {Column::kUpdate, update}, {Column::kBefore, 1}});
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), verdicts) << update;
  }
  for (const auto& [units, verdicts] : {std::pair(1, 0U), std::pair(2, 1U)}) {
    MadeRun run(50);
    run.record.units_last = true;
    run.losses(falling);
    run.add("kernel", {.role = Role::kWeight, .rank = 2, .shape = {1, units}},
            {{Column::kMean, 0.7}, {Column::kStd, 0}});
    EXPECT_EQ(ask(kCheckPoorStart, run).size(), verdicts) << units;
  }
  MadeRun late(10);
  late.record.steps.front().optimizer_step = 100;
  late.add("w", {.role = Role::kWeight, .shape = {2, 2}}, {{Column::kMean, 1}, {Column::kStd, 0}});
  std::string cannot;
  EXPECT_TRUE(ask(kCheckPoorStart, late, &cannot).empty());
  EXPECT_FALSE(cannot.empty()) << "these are not the weights it started with";
}

MadeRun classifier(const std::function<double(std::size_t)>& loss, std::vector<std::int64_t> labels) {
  MadeRun run(60);
  run.add("loss", {.role = Role::kLoss, .loss_class = "cross_entropy"},
          [&](std::size_t i) { return Columns{{Column::kMean, loss(i)}}; });
  run.of_loss(Role::kLabels, "cross_entropy", {}).label_counts = std::move(labels);
  return run;
}

TEST(InitialLoss, IsNearThatOfAGuess) {
  EXPECT_TRUE(ask(kCheckInitialLoss, classifier(falling, {100, 100, 100, 100})).empty());
  const auto huge = [](std::size_t i) { return 40.0 * falling(i); };
  EXPECT_EQ(ask(kCheckInitialLoss, classifier(huge, {100, 100, 100, 100})).size(), 1U);
  MadeRun unlabelled(10);
  unlabelled.losses(huge);
  EXPECT_TRUE(ask(kCheckInitialLoss, unlabelled).empty());
  MadeRun adapted = classifier(huge, {100, 100, 100, 100});
  adapted.weight("base", [](std::size_t) { return 0.0; });
  adapted.record.histories.back().role.requires_grad = false;
  EXPECT_TRUE(ask(kCheckInitialLoss, adapted).empty()) << "what is frozen has learned other answers before";
}

TEST(Plateau, IsTheLevelOfAGuessAndNotThatOfConvergence) {
  const auto from_above = [](double level) {
    return [level](std::size_t i) { return level + (i < 5 ? 1.0 : 0) + (i % 2 == 0 ? 1e-3 : -1e-3); };
  };
  const double guess = std::log(4.0);
  const auto stuck = ask(kCheckLossTrend, classifier(from_above(guess), {100, 100, 100, 100}));
  ASSERT_EQ(stuck.size(), 1U);
  EXPECT_EQ(stuck[0].rule, "Plateau");
  EXPECT_TRUE(ask(kCheckLossTrend, classifier(from_above(0.2), {100, 100, 100, 100})).empty());
  // A run that goes on from a trained model is flat, and far below a guess.
  const auto trained = [](std::size_t i) { return 0.1 + (i % 2 == 0 ? 1e-4 : -1e-4); };
  EXPECT_TRUE(ask(kCheckLossTrend, classifier(trained, {100, 100, 100, 100})).empty());
  EXPECT_EQ(ask(kCheckLossTrend, classifier(flat, {100, 100, 100, 100})).size(), 1U);
}

TEST(ClassImbalance, CountsLabelsOfClassifiers) {
  struct Case {
    const char* what;
    std::vector<std::int64_t> labels;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"about even", {90, 110, 100}, 0}, {"ten to one could be chance", {100, 10}, 0},
      {"fifty to one", {1000, 20}, 1},   {"a class that never comes", {500, 0, 500}, 1},
      {"too few to tell", {20, 0}, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ask(kCheckClassImbalance, classifier(falling, c.labels)).size(), c.verdicts) << c.what;
  }
  MadeRun tokens = classifier(falling, std::vector<std::int64_t>(50, 10));
  tokens.record.histories.back().label_counts[0] = 5000;
  EXPECT_EQ(ask(kCheckClassImbalance, tokens).size(), 1U);
  tokens.record.layer_classes = {"embedding"};
  EXPECT_TRUE(ask(kCheckClassImbalance, tokens).empty()) << "words are as rare as they are";

  MadeRun pixels = classifier(falling, {900, 10, 90});
  pixels.record.histories.back().shape = Shape{16, 24, 24};
  EXPECT_TRUE(ask(kCheckClassImbalance, pixels).empty()) << "pixels are as rare as they are";

  const auto with_scores_of = [&](double units) {
    MadeRun run = classifier(falling, {900, 10, 90});
    run.of_loss(Role::kPredictions, "cross_entropy", {{Column::kL2, 7}, {Column::kUnits, 3}});
    run.add("head_output_0", {.role = Role::kLayerOutput, .layer_class = "linear"},
            {{Column::kL2, 7}, {Column::kUnits, units}});
    return run;
  };
  EXPECT_EQ(ask(kCheckClassImbalance, with_scores_of(3)).size(), 1U) << "three scores a sample";
  EXPECT_TRUE(ask(kCheckClassImbalance, with_scores_of(20)).empty()) << "three scores for each of 20 tokens a sample";
}

TEST(Confusion, LooksAtTheEndOfTheRun) {
  const auto run_with = [](std::uint32_t point, std::vector<std::int64_t> counts) {
    MadeRun run(60);
    run.losses([](std::size_t) { return 1.0; });
    History& predictions = run.of_loss(Role::kPredictions, "cross_entropy", {});
    predictions.class_pairs = {{.point = point, .classes = 2, .counts = std::move(counts)}};
    return run;
  };
  EXPECT_TRUE(ask(kCheckConfusion, run_with(50, {90, 10, 20, 80})).empty());
  EXPECT_EQ(ask(kCheckConfusion, run_with(50, {100, 0, 100, 0})).size(), 1U) << "class 1 is never predicted";
  EXPECT_TRUE(ask(kCheckConfusion, run_with(5, {100, 0, 100, 0})).empty()) << "the model is untrained";
  EXPECT_TRUE(ask(kCheckConfusion, run_with(50, {30, 0, 30, 0})).empty()) << "too few";
  MadeRun contest = run_with(50, {100, 0, 100, 0});
  contest.record.optimizers = 2;
  EXPECT_TRUE(ask(kCheckConfusion, contest).empty()) << "a judge that is fooled is what the other one is trained for";

  MadeRun together = contest;
  for (StepPoint& point : together.record.steps) point.optimizer_step *= 2;
  EXPECT_EQ(ask(kCheckConfusion, together).size(), 1U) << "both step after each loss";
  MadeRun several = together;
  several.losses([](std::size_t) { return 1.0; });
  EXPECT_TRUE(ask(kCheckConfusion, several).empty()) << "each has a loss of its own";
  MadeRun stranger = together;
  stranger.record.optimizers_of_others = 1;
  EXPECT_TRUE(ask(kCheckConfusion, stranger).empty()) << "one trains another model";
  MadeRun sparse = together;
  for (StepPoint& point : sparse.record.steps) point.step.number *= 100;
  EXPECT_TRUE(ask(kCheckConfusion, sparse).empty()) << "nobody knows what was between";
}

TEST(LossActivationMismatch, KnowsWhatALossDoesNotTake) {
  struct Case {
    const char* what;
    std::string loss;
    double low, high, mean;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"scores", "crossentropyloss", -3, 4, 0.1, 0},
      {"probabilities of four classes", "crossentropyloss", 0.01, 0.97, 0.25, 1},
      {"small scores that are no probabilities", "crossentropyloss", 0.01, 0.97, 0.4, 0},
      {"logarithms of probabilities", "nllloss", -7, -0.01, -2, 0},
      {"probabilities where logarithms are meant", "nll_loss", 0.01, 0.97, 0.25, 1},
      {"scores where logarithms are meant", "nll_loss", -3, 4, 0.1, 1},
      {"logarithms that sum to less than one", "nll_loss", -7, -1.6, -3, 1},
      {"probabilities in a divergence of logarithms", "kl_div", 0.01, 0.97, 0.25, 1},
      {"logarithms in a divergence", "kldivloss", -7, -0.01, -2, 0},
      {"scores cut by a rectifier", "crossentropyloss", 0, 4, 0.7, 1},
      {"a sigmoid before a loss that holds one", "bcewithlogitsloss", 0.1, 0.9, 0.5, 1},
      {"small scores of a model that has learned nothing", "bcewithlogitsloss", 0.1, 0.2, 0.15, 0},
      {"scores of either sign", "binary_cross_entropy_with_logits", -2, 0.9, 0.1, 0},
      {"distances", "mseloss", 0.01, 0.97, 0.25, 0},
      {"probabilities, as Keras takes them", "categorical_crossentropy", 0.01, 0.97, 0.25, 0},
      {"probabilities, by the name of the class", "sparsecategoricalcrossentropy", 0.01, 0.97, 0.25, 0},
      {"scores where Keras takes probabilities", "sparsecategoricalcrossentropy", -3, 4, 0.1, 1},
      {"scores, as they are announced", "categoricalcrossentropy(from_logits=true)", -3, 4, 0.1, 0},
      {"probabilities announced as scores", "categoricalcrossentropy(from_logits=true)", 0.01, 0.97, 0.25, 1},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    run.of_loss(Role::kPredictions, c.loss,
                {{Column::kMin, c.low}, {Column::kMax, c.high}, {Column::kMean, c.mean}, {Column::kUnits, 4}});
    EXPECT_EQ(ask(kCheckLossInput, run).size(), c.verdicts) << c.what;
  }
}

TEST(LossSpike, IsAVerdictWhereTheTrainingDoesNotRecover) {
  const auto with_spike = [](double after) {
    return [after](std::size_t i) {
      const double noise = i % 2 == 0 ? 0.02 : -0.02;
      return i < 100 ? 1.0 + noise : i == 100 ? 50.0 : after + noise;
    };
  };
  const auto said = [](const std::function<double(std::size_t)>& loss) {
    MadeRun run(200);
    run.losses(loss);
    return ask(kCheckLossSpike, run);
  };
  ASSERT_EQ(said(with_spike(3)).size(), 1U);
  EXPECT_EQ(said(with_spike(3))[0].severity, Severity::kWarning);
  EXPECT_EQ(said(with_spike(3))[0].first_step, 100);
  ASSERT_EQ(said(with_spike(1)).size(), 1U);
  EXPECT_EQ(said(with_spike(1))[0].severity, Severity::kInfo) << "it came back";
  EXPECT_TRUE(said(falling).empty());
}

TEST(OscillatingLoss, TellsSwingsFromNoise) {
  const auto said = [](const std::function<double(std::size_t)>& loss) {
    MadeRun run(300);
    run.losses(loss);
    return ask(kCheckOscillation, run).size();
  };
  EXPECT_EQ(said([](std::size_t i) { return 2 + std::sin(static_cast<double>(i) / 8); }), 1U);
  EXPECT_EQ(said([](std::size_t i) { return 2 + (i % 2 == 0 ? 0.9 : -0.9); }), 0U) << "mini-batches";
  EXPECT_EQ(said(falling), 0U);
  EXPECT_EQ(said([](std::size_t i) { return 1 + 6 * std::pow(std::sin(static_cast<double>(7 * (i / 4))), 2); }), 0U)
      << "tasks of four losses each, some of them far harder than others";
  MadeRun restarts(300);
  restarts.losses([](std::size_t i) { return 2 + std::sin(static_cast<double>(i) / 8); });
  restarts.add("scalar/learning_rate/0", {.role = Role::kLearningRate},
               [](std::size_t i) { return Columns{{Column::kMean, i % 50 == 0 ? 0.1 : 0.01}}; });
  EXPECT_TRUE(ask(kCheckOscillation, restarts).empty()) << "the schedule starts anew";
  MadeRun plays(300);
  plays.losses([](std::size_t i) { return 2 + std::sin(static_cast<double>(i) / 8); });
  for (std::int64_t i = 0; i < 1000; ++i) {
    plays.record.steps.push_back({300 + i, {Mode::kEval, i}, 300});
    plays.record.facts.push_back({});
  }
  std::string cannot;
  EXPECT_TRUE(ask(kCheckOscillation, plays, &cannot).empty()) << "it makes its own data";
  EXPECT_FALSE(cannot.empty());
  for (const auto& [climb, verdicts] : {std::pair(90.0, 0U), std::pair(20.0, 1U)}) {
    MadeRun cycle(300);
    cycle.losses([](std::size_t i) { return 2 + std::sin(static_cast<double>(i) / 8); });
    cycle.add("scalar/learning_rate/0", {.role = Role::kLearningRate}, [until = climb](std::size_t i) {
      const auto x = static_cast<double>(i);
      return Columns{{Column::kMean, x < until ? 0.01 + 0.3 * x / until : 0.31 * (300 - x) / (300 - until)}};
    });
    EXPECT_EQ(ask(kCheckOscillation, cycle).size(), verdicts) << "climbs for " << climb << " of 300 steps";
  }
}

// The same tensor of another worker.
void add_worker(MadeRun& run, const std::string& name, TensorRole role, double number) {
  for (const char* worker : {"worker_0", "worker_1"}) {
    const double value = std::string_view(worker) == "worker_0" ? 1.0 : number;
    run.add(name, role, {{Column::kMean, value}, {Column::kL2, 2 * value}, {Column::kMax, 3 * value}}).worker = worker;
  }
}

TEST(Workers, ShareTheirWeightsAndNotTheirData) {
  MadeRun equal(5);
  add_worker(equal, "w", {.role = Role::kWeight}, 1.0);
  add_worker(equal, "x", {.role = Role::kModelInput}, 1.5);
  EXPECT_TRUE(ask(kCheckReplicas, equal).empty());
  EXPECT_TRUE(ask(kCheckShards, equal).empty());

  MadeRun wrong(5);
  add_worker(wrong, "w", {.role = Role::kWeight}, 1.0001);
  add_worker(wrong, "x", {.role = Role::kModelInput}, 1.0);
  ASSERT_EQ(ask(kCheckReplicas, wrong).size(), 1U);
  EXPECT_EQ(ask(kCheckReplicas, wrong)[0].tensors, std::vector<std::string>{"w"});
  EXPECT_EQ(ask(kCheckShards, wrong).size(), 1U);

  MadeRun shards(5);
  add_worker(shards, "w", {.role = Role::kWeight, .is_shard = true}, 1.0001);
  EXPECT_TRUE(ask(kCheckReplicas, shards).empty());

  MadeRun brief(2);
  add_worker(brief, "w", {.role = Role::kWeight}, 1.0001);
  EXPECT_TRUE(ask(kCheckReplicas, brief).empty()) << "one step is an event, not a state";
  MadeRun alone(5);
  std::string cannot;
  EXPECT_TRUE(ask(kCheckReplicas, alone, &cannot).empty());
  EXPECT_FALSE(cannot.empty());
}

TEST(FrozenLayers, ALayerThatRunsAndHasNoGradientIsCutOff) {
  const auto run_with = [](const std::vector<std::string>& in_order) {
    MadeRun run(10);
    run.weight("head.weight", [](std::size_t) { return 0.1; });
    run.record.histories.back().role.layer = "head";
    run.weight("encoder.weight", [](std::size_t) { return 0.0; });
    run.record.histories.back().role.layer = "encoder";
    run.gradient("head.weight", 1);
    run.record.optimized = {"head.weight", "encoder.weight"};
    for (const std::string& layer : in_order) {
      run.add(layer + "_output_0", {.role = Role::kLayerOutput, .layer = layer}, {{Column::kMean, 1}});
    }
    const std::vector<Verdict> verdicts = ask(kCheckFrozenLayers, run);
    EXPECT_EQ(verdicts.size(), 1U);
    return verdicts.at(0).severity;
  };
  EXPECT_EQ(run_with({"encoder", "head"}), Severity::kWarning);
  EXPECT_EQ(run_with({"head"}), Severity::kInfo) << "it is not used";
  EXPECT_EQ(run_with({"head", "encoder"}), Severity::kInfo) << "its output is not used";
  EXPECT_EQ(run_with({"head", "encoder", "head"}), Severity::kInfo) << "two calls";
}

TEST(FrozenLayers, ALayerWhoseTurnMayComeLaterIsNotNoted) {
  for (const auto& [later_steps, verdicts] : {std::pair(5, 1U), std::pair(15, 0U)}) {
    MadeRun run(10);
    run.weight("actor.weight", [](std::size_t) { return 0.1; });
    run.weight("critic.weight", [](std::size_t) { return 0.0; });
    run.gradient("actor.weight", 1);
    run.record.optimized = {"actor.weight", "critic.weight"};
    for (std::int64_t i = 10; i < 10 + later_steps; ++i) {  // of which statistics were not saved
      run.record.steps.push_back({i, {Mode::kTrain, i}, i});
      run.record.facts.push_back({.optimizer_step = i, .training = true, .grad_enabled = true});
    }
    EXPECT_EQ(ask(kCheckFrozenLayers, run).size(), verdicts) << later_steps;
  }
}

TEST(SilentOptimizer, AnOptimizerNobodyKnowsMovesTheWeightsToo) {
  for (const auto& [drift, verdicts] : {std::pair(0.0, 1U), std::pair(0.01, 0U)}) {
    MadeRun run(20);
    for (StepPoint& point : run.record.steps) point.optimizer_step = 0;
    run.add("w", {.role = Role::kWeight, .parameter = "w", .rank = 2}, [by = drift](std::size_t i) {
      return Columns{{Column::kMean, 0.1 + by * static_cast<double>(i)}, {Column::kL2, 1}};
    });
    run.gradient("w", 1);
    EXPECT_EQ(ask(kCheckSilentOptimizer, run).size(), verdicts) << drift;
  }
}

TEST(FrozenLayers, WhatNoOptimizerHasAndNoLossReachesIsSetApart) {
  const auto verdicts = [](bool has_gradient) {
    MadeRun run(10);
    run.weight("net.weight", [](std::size_t) { return 0.1; });
    run.weight("target.weight", [](std::size_t) { return 0.0; });
    run.gradient("net.weight", 1);
    if (has_gradient) run.gradient("target.weight", 1);
    run.record.optimized = {"net.weight"};
    return ask(kCheckFrozenLayers, run).size();
  };
  EXPECT_EQ(verdicts(false), 0U) << "a target network";
  EXPECT_EQ(verdicts(true), 1U) << "it was forgotten";
}

TEST(FeatureImportanceOverweight, IsNotAboutTheFirstTrees) {
  const auto said = [](const std::function<double(std::size_t)>& share, std::size_t features) {
    MadeRun run(10);
    for (std::size_t i = 0; i < features; ++i) {
      run.add("feature_importance/total_gain/f" + std::to_string(i), {.role = Role::kImportance},
              [&](std::size_t step) { return Columns{{Column::kMean, i == 0 ? share(step) : 0.01}}; });
    }
    return ask(kCheckFeatures, run).size();
  };
  EXPECT_EQ(said([](std::size_t) { return 0.97; }, 5), 1U);
  EXPECT_EQ(said([](std::size_t) { return 0.6; }, 5), 0U);
  EXPECT_EQ(said([](std::size_t step) { return step < 4 ? 1.0 : 0.6; }, 5), 0U);
  EXPECT_EQ(said([](std::size_t) { return 0.97; }, 2), 0U) << "two features";
}

TEST(Overfit, BoostingEvaluatesAtEveryStep) {
  RuleWorld world(Collections{{"losses", {"-logloss$"}}});
  for (std::int64_t round = 0; round < 60; ++round) {
    const auto x = static_cast<float>(round);
    world.save(round, {{"train-logloss", scalar(0.7F / (1 + 0.1F * x))},
                       {"validation-logloss", scalar(0.5F + 0.00005F * (x - 20) * (x - 20))}});
  }
  Trial trial = world.open();
  const auto report = check(trial, {.rules = {"Overfit", "LossNotDecreasing"}});
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->verdicts.size(), 1U);
  EXPECT_EQ(report->verdicts[0].rule, "Overfit");
}

TEST(InputRange, AColumnBesideOthers) {
  MadeRun run(10);
  run.add(
      "x", {.role = Role::kModelInput},
      {{Column::kMean, 0.0}, {Column::kStd, 30}, {Column::kMin, -90}, {Column::kMax, 100}, {Column::kUnitSpread, 500}});
  EXPECT_EQ(ask(kCheckInputRange, run).size(), 1U);
}

}  // namespace
}  // namespace tornasole::rules
