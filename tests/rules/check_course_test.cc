// The questions of check about evaluations, gradients' jumps, ranks, loss scales and batches that come again.

#include <gtest/gtest.h>

#include "rules/made_run.h"

namespace tornasole::rules {
namespace {

// Every tenth step is an evaluation.
MadeRun evaluated(std::size_t steps, const std::function<double(double)>& training,
                  const std::function<double(double)>& validation) {
  MadeRun run(steps);
  for (std::size_t i = 9; i < steps; i += 10) run.record.steps[i].step.mode = Mode::kEval;
  run.losses([&](std::size_t i) {
    const auto x = static_cast<double>(i);
    return i % 10 == 9 ? validation(x) : training(x);
  });
  return run;
}

TEST(Overtraining, NothingImprovesAnyMore) {
  struct Case {
    const char* what;
    std::function<double(double)> training, validation;
    std::optional<Severity> severity;
  };
  const auto settled = [](double x) { return 0.2 + 2 * std::exp(-x / 20); };
  const auto slow = [](double x) { return 2.2 - x / 200; };
  const Case cases[] = {
      {"both fall to the end", slow, slow, {}},
      {"both have settled", settled, settled, Severity::kInfo},
      {"training stands still, validation gets worse", [](double x) { return std::max(0.2, 2.2 - x / 20); },
       [](double x) { return 0.3 + 2 * std::exp(-x / 20) + 0.003 * x; }, Severity::kWarning},
      {"training goes on, validation gets worse: Overfit tells",
       slow,
       [](double x) { return 1 + 2 * std::exp(-x / 20) + 0.004 * x; },
       {}},
  };
  for (const Case& c : cases) {
    const std::vector<Verdict> verdicts = ask(kCheckOvertraining, evaluated(300, c.training, c.validation));
    ASSERT_EQ(verdicts.size(), c.severity ? 1U : 0U) << c.what;
    if (c.severity) {
      EXPECT_EQ(verdicts[0].severity, *c.severity) << c.what;
    }
  }
  std::string cannot;
  EXPECT_TRUE(ask(kCheckOvertraining, evaluated(50, settled, settled), &cannot).empty());
  EXPECT_FALSE(cannot.empty()) << "five evaluations are too few";
}

TEST(Overfit, OfWhichNothingHoldsForOtherData) {
  struct Case {
    const char* what;
    std::function<double(double)> training, validation;
    std::size_t verdicts;
  };
  const auto falls = [](double x) { return 1.6 - x / 800; };
  const Case cases[] = {
      {"validation climbs a little, from the first on", falls, [](double x) { return 1.62 + x / 4000; }, 1},
      {"validation falls a little", falls, [](double x) { return 1.62 - x / 4000; }, 0},
      {"validation stays where it is, with noise", falls, [](double x) { return 1.62 + 0.02 * std::sin(1.7 * x); }, 0},
      {"neither moves by much", [](double x) { return 1.6 - x / 8000; }, [](double x) { return 1.62 + x / 4000; }, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ask(kCheckOverfit, evaluated(200, c.training, c.validation)).size(), c.verdicts) << c.what;
  }
}

TEST(SuspiciousValidation, BatchesOfTheTraining) {
  struct Case {
    const char* what;
    std::function<double(std::size_t)> mean;  // of a batch, by step
    std::optional<Severity> severity;
  };
  const auto of_seven = [](std::size_t i) { return 0.01 * static_cast<double>(i % 7); };
  const Case cases[] = {
      {"other batches", [](std::size_t i) { return 0.01 * static_cast<double>(i); }, {}},
      {"batches that training steps had", of_seven, Severity::kWarning},
      {"the one batch of the training", [](std::size_t) { return 0.5; }, Severity::kInfo},
      {"most, but not all, are", [&](std::size_t i) { return i == 49 ? 7 : of_seven(i); }, {}},
  };
  for (const Case& c : cases) {
    MadeRun run = evaluated(50, [](double) { return 1.0; }, [](double) { return 1.0; });
    run.add("x", {.role = Role::kModelInput}, [&](std::size_t i) {
      return Columns{{Column::kMean, c.mean(i)}, {Column::kStd, 1}, {Column::kMin, -3}, {Column::kMax, 3}};
    });
    const std::vector<Verdict> verdicts = ask(kCheckSuspiciousValidation, run);
    ASSERT_EQ(verdicts.size(), c.severity ? 1U : 0U) << c.what;
    if (c.severity) {
      EXPECT_EQ(verdicts[0].severity, *c.severity) << c.what;
    }
  }
}

TEST(SuspiciousValidation, NeedsSomethingOfTheEvaluations) {
  std::string cannot;
  MadeRun run = evaluated(50, [](double) { return 1.0; }, [](double) { return 1.0; });
  EXPECT_TRUE(ask(kCheckSuspiciousValidation, run, &cannot).empty());
  EXPECT_NE(cannot.find("inputs of evaluations"), std::string::npos);
  EXPECT_TRUE(ask(kCheckSuspiciousValidation, MadeRun(50), &cannot).empty());
  EXPECT_NE(cannot.find("needs evaluations"), std::string::npos);
}

TEST(SuspiciousValidation, EvaluationsThatGetMoreRight) {
  struct Case {
    const char* what;
    std::int64_t right_in_training, right_in_evaluation;  // of 50
    std::string layer;
    double deviation_in_training;
    std::optional<Severity> severity;
  };
  const Case cases[] = {
      {"as many", 40, 40, "linear", 1, {}},
      {"more, without a reason", 30, 47, "linear", 1, Severity::kWarning},
      {"more, and drop-out explains it", 30, 47, "dropout", 1, {}},
      {"more, and training inputs were changed", 30, 47, "linear", 2, Severity::kInfo},
      {"fewer", 47, 30, "linear", 1, {}},
  };
  for (const Case& c : cases) {
    MadeRun run = evaluated(60, [](double) { return 1.0; }, [](double) { return 1.0; });
    run.record.layer_classes = {c.layer};
    run.add("x", {.role = Role::kModelInput}, [&](std::size_t i) {
      const auto number = static_cast<double>(i);
      return Columns{{Column::kMean, number},
                     {Column::kMin, number},
                     {Column::kMax, number},
                     {Column::kStd, i % 10 == 9 ? 1 : c.deviation_in_training}};
    });
    History& scores = run.add("scores", {.role = Role::kPredictions}, Columns{});
    for (std::uint32_t i = 0; i < 60; ++i) {
      const std::int64_t right = i % 10 == 9 ? c.right_in_evaluation : c.right_in_training;
      scores.class_pairs.push_back({i, 2, {right, 50 - right, 0, 0}});
    }
    const std::vector<Verdict> verdicts = ask(kCheckSuspiciousValidation, run);
    ASSERT_EQ(verdicts.size(), c.severity ? 1U : 0U) << c.what;
    if (c.severity) {
      EXPECT_EQ(verdicts[0].severity, *c.severity) << c.what;
    }
  }
}

TEST(SuspiciousValidation, APerfectFirstRoundIsNoted) {
  for (const auto& [metric, value, verdicts] :
       {std::tuple("validation-error", 0.0, 1U), std::tuple("validation-error", 0.1, 0U),
        std::tuple("validation-auc", 1.0, 1U), std::tuple("validation-auc", 0.9, 0U),
        std::tuple("validation-logloss", 0.01, 1U), std::tuple("validation-logloss", 0.4, 0U),
        std::tuple("validation-rmse", 0.0, 0U)}) {
    MadeRun run(10);
    run.record.is_boosting = true;
    run.add(metric, {.role = Role::kValidationLoss}, {{Column::kMean, value}});
    const std::vector<Verdict> said = ask(kCheckSuspiciousValidation, run);
    ASSERT_EQ(said.size(), verdicts) << metric;
    if (!said.empty()) {
      EXPECT_EQ(said[0].severity, Severity::kInfo);
    }
  }
}

TEST(GradNormSpike, CountsIfTheLossIsTheWorseForIt) {
  struct Case {
    const char* what;
    double spike;
    std::function<double(std::size_t)> loss;
    std::optional<Severity> severity;
  };
  const auto steady = [](std::size_t) { return 1.0; };
  const auto after = [](std::size_t i) { return i < 60 ? 1.0 : 2.5; };
  const Case cases[] = {
      {"no jump", 1.5, after, {}},
      {"a jump, and the loss goes on as before", 100, steady, Severity::kInfo},
      {"a jump, and the loss is higher ever after", 100, after, Severity::kWarning},
      {"a jump, and the loss breaks", 100, [](std::size_t i) { return i < 60 ? 1.0 : NAN; }, Severity::kWarning},
  };
  for (const Case& c : cases) {
    MadeRun run(100);
    run.losses(c.loss);
    run.add("gradient/w", {.role = Role::kGradient, .parameter = "w", .rank = 2}, [&](std::size_t i) {
      return Columns{{Column::kL2, i == 60 ? c.spike : 1 + 0.1 * static_cast<double>(i % 3)}};
    });
    const std::vector<Verdict> verdicts = ask(kCheckGradNormSpike, run);
    ASSERT_EQ(verdicts.size(), c.severity ? 1U : 0U) << c.what;
    if (c.severity) {
      EXPECT_EQ(verdicts[0].severity, *c.severity) << c.what;
    }
  }
}

TEST(RankCollapse, NeedsAMatrixThatHadManyDirections) {
  struct Case {
    const char* what;
    double first, last;
    std::function<double(std::size_t)> loss;
    std::optional<Severity> severity;
  };
  const auto flat = [](std::size_t) { return 1.4; };
  const auto falling = [](std::size_t i) { return 2.0 / (1.0 + 0.1 * static_cast<double>(i)); };
  const Case cases[] = {
      {"as at the start", 0.8, 0.7, flat, {}},
      {"half, as trained weights have it", 0.8, 0.4, flat, {}},
      {"one direction is left, and nothing is learned", 0.8, 0.02, flat, Severity::kWarning},
      {"one direction is left, and the loss falls", 0.8, 0.02, falling, Severity::kInfo},
  };
  for (const Case& c : cases) {
    MadeRun run(50);
    run.losses(c.loss);
    run.add("w", {.role = Role::kWeight, .rank = 2}, [&](std::size_t i) {
      return i == 0 || i == 31 ? Columns{{Column::kRank, i == 0 ? c.first : c.last}} : Columns{};
    });
    const std::vector<Verdict> verdicts = ask(kCheckRank, run);
    ASSERT_EQ(verdicts.size(), c.severity ? 1U : 0U) << c.what;
    if (c.severity) {
      EXPECT_EQ(verdicts[0].severity, *c.severity) << c.what;
    }
  }
}

TEST(LossScaleCollapse, AScalerThatSettlesIsHealthy) {
  struct Case {
    const char* what;
    std::function<double(std::size_t)> scale;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"halved a few times", [](std::size_t i) { return 65536 / std::pow(2, std::min<std::size_t>(i, 4)); }, 0},
      {"halved at every step", [](std::size_t i) { return 65536 / std::pow(2, static_cast<double>(i)); }, 1},
      {"small on purpose", [](std::size_t) { return 0.5; }, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(40);
    for (std::size_t i = 0; i < 40; ++i) run.record.facts[i].grad_scale = c.scale(i);
    EXPECT_EQ(ask(kCheckLossScale, run).size(), c.verdicts) << c.what;
  }
  std::string cannot;
  EXPECT_TRUE(ask(kCheckLossScale, MadeRun(40), &cannot).empty());
  EXPECT_FALSE(cannot.empty());
}

TEST(ClassImbalance, CountsBinaryLabelsByTheirMean) {
  struct Case {
    const char* what;
    double ones, units;
    std::string loss;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"as many of each", 32, 1, "bcewithlogitsloss", 0},
      {"next to none", 0.5, 1, "bcewithlogitsloss", 1},
      {"next to none, along the only axis", 0.5, 64, "bcewithlogitsloss", 1},
      {"pixels", 0.5, 16, "bcewithlogitsloss", 0},
      {"one answer is wanted of all", 64, 1, "bcewithlogitsloss", 0},
      {"amounts", 0.5, 1, "mseloss", 0},
  };
  for (const Case& c : cases) {
    MadeRun run(40);
    run.of_loss(Role::kLabels, c.loss,
                {{Column::kMean, c.ones / 64},
                 {Column::kCount, 64},
                 {Column::kZeros, 64 - c.ones},
                 {Column::kMin, 0},
                 {Column::kMax, 1},
                 {Column::kUnits, c.units}});
    EXPECT_EQ(ask(kCheckClassImbalance, run).size(), c.verdicts) << c.what;
    run.record.layer_classes = {"conv2d", "linear"};
    EXPECT_EQ(ask(kCheckClassImbalance, run).size(), c.verdicts) << c.what;
    run.record.layer_classes = {"conv2d", "relu"};
    EXPECT_EQ(ask(kCheckClassImbalance, run).size(), 0U) << c.what << ", of pixels";
  }
}

TEST(LossActivationMismatch, AColumnBesideARowIsStretched) {
  struct Case {
    const char* what;
    const char* loss;
    double units_of_predictions, units_of_labels;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"a column and a row", "mseloss", 1, 32, 1},
      {"two columns", "mseloss", 1, 1, 0},
      {"two rows", "mse_loss", 32, 32, 0},
      {"several outputs", "mseloss", 4, 4, 0},
      {"a loss that looks at shapes", "bceloss", 1, 32, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(10);
    const Columns numbers = {{Column::kMin, 0}, {Column::kMax, 1}, {Column::kMean, 0.1}, {Column::kCount, 32}};
    Columns predictions = numbers;
    Columns labels = numbers;
    predictions.emplace_back(Column::kUnits, c.units_of_predictions);
    labels.emplace_back(Column::kUnits, c.units_of_labels);
    run.of_loss(Role::kPredictions, c.loss, predictions);
    run.of_loss(Role::kLabels, c.loss, labels);
    EXPECT_EQ(ask(kCheckLossInput, run).size(), c.verdicts) << c.what;
  }
}

TEST(DataRepeat, ABatchThatIsAlwaysTheSameIsNoted) {
  for (const auto& [is_same, verdicts] : {std::pair(true, 1U), std::pair(false, 0U)}) {
    MadeRun run(20);
    run.add("x", {.role = Role::kModelInput}, [same = is_same](std::size_t i) {
      return Columns{{Column::kMean, same ? 0.5 : static_cast<double>(i)},
                     {Column::kStd, 1},
                     {Column::kMin, -3},
                     {Column::kMax, 3}};
    });
    EXPECT_EQ(ask(kCheckDataRepeat, run).size(), verdicts);
  }
}

TEST(WorkerOutlier, IsTheSameWorkerAtMostSteps) {
  struct Case {
    const char* what;
    std::function<double(std::size_t step, std::size_t worker)> loss;
    std::size_t verdicts;
  };
  const auto noise = [](std::size_t step, std::size_t worker) {
    return 1 + 0.1 * std::sin(static_cast<double>(13 * step + 7 * worker));
  };
  const Case cases[] = {
      {"alike", noise, 0},
      {"one is always apart", [&](auto step, auto worker) { return worker == 2 ? 9 : noise(step, worker); }, 1},
      {"each has an odd batch now and then",
       [&](auto step, auto worker) { return step % 4 == worker ? 9 : noise(step, worker); }, 0},
  };
  for (const Case& c : cases) {
    MadeRun run(20);
    for (std::size_t worker = 0; worker < 4; ++worker) {
      run.add("loss", {.role = Role::kLoss},
              [&](std::size_t step) { return Columns{{Column::kMean, c.loss(step, worker)}}; })
          .worker = "worker_" + std::to_string(worker);
    }
    EXPECT_EQ(ask(kCheckWorkerOutlier, run).size(), c.verdicts) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::rules
