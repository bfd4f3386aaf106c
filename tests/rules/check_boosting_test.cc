// The questions of check about boosted trees, of records made by hand and of trials in memory.

#include <gtest/gtest.h>

#include <algorithm>

#include "format/model_file.h"
#include "rules/effective_rank.h"
#include "rules/made_run.h"
#include "rules/rule_world.h"
#include "rules/tree_shape.h"
#include "tornasole/check.h"

namespace tornasole::rules {
namespace {

Tensor texts(std::vector<std::string> all) {
  const auto count = static_cast<std::int64_t>(all.size());
  return Tensor(std::move(all), Shape{count});
}

// Losses of training and validation at every round.
MadeRun boosted(std::size_t rounds, const std::function<double(double)>& training,
                const std::function<double(double)>& validation) {
  MadeRun run(rounds);
  run.record.is_boosting = true;
  for (StepPoint& point : run.record.steps) point.step.mode = Mode::kGlobal;
  run.add("train-logloss", {.role = Role::kLoss},
          [&](std::size_t i) { return Columns{{Column::kMean, training(static_cast<double>(i))}}; });
  run.add("validation-logloss", {.role = Role::kValidationLoss},
          [&](std::size_t i) { return Columns{{Column::kMean, validation(static_cast<double>(i))}}; });
  return run;
}

double falls(double i) { return 0.69 * std::exp(-i / 3); }
double falls_less(double i) { return 0.3 + 0.39 * std::exp(-i / 3); }
double rises(double i) { return 0.69 + 0.02 * i; }

TEST(TreeShape, IsFoundByFollowingTheBranches) {
  // Tree 0: a root, a leaf and a chain of two; tree 1: a leaf.
  const Tensor ids = texts({"0-0", "0-1", "0-2", "0-3", "0-4", "1-0"});
  const Tensor yes = texts({"0-1", "nan", "0-3", "nan", "nan", "nan"});
  const Tensor no = texts({"0-2", "nan", "0-4", "nan", "nan", "nan"});
  const auto shape = tree_shape(&ids, &yes, &no);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->depth, 2);
  EXPECT_EQ(shape->trees, 2);
  EXPECT_EQ(shape->leaves, 4);
  EXPECT_FALSE(tree_shape(&ids, nullptr, &no).has_value());
  const Tensor shorter = texts({"0-1"});
  EXPECT_FALSE(tree_shape(&ids, &shorter, &no).has_value());
  const Tensor round_about = texts({"0-0"});
  EXPECT_TRUE(tree_shape(&round_about, &round_about, &round_about).has_value()) << "a circle ends";
}

TEST(TreeDepth, IsJudgedByWhatValidationMakesOfIt) {
  struct Case {
    const char* what;
    std::int64_t depth;
    std::function<double(double)> validation;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"deep, and validation follows", 12, falls_less, 0},
      {"deep, and validation rises", 12, rises, 1},
      {"deep, and validation learns nothing", 12, [](double) { return 0.69; }, 1},
      {"as deep as usual, and validation rises", 6, rises, 0},
      {"no tree has a branch", 0, [](double) { return 0.69; }, 1},
  };
  for (const Case& c : cases) {
    MadeRun run = boosted(12, falls, c.validation);
    for (std::uint32_t i = 0; i < 12; i += 4) run.record.trees.push_back({i, {c.depth, 1, 30}});
    EXPECT_EQ(ask(kCheckTreeDepth, run).size(), c.verdicts) << c.what;
  }
  MadeRun run(12);
  std::string cannot;
  EXPECT_TRUE(ask(kCheckTreeDepth, run, &cannot).empty());
  EXPECT_NE(cannot.find("trees"), std::string::npos);
  run.record.trees.push_back({3, {12, 1, 30}});
  EXPECT_TRUE(ask(kCheckTreeDepth, run, &cannot).empty());
  EXPECT_NE(cannot.find("12 levels"), std::string::npos) << "deep, and nobody evaluated";
}

TEST(FeatureImportanceOverweight, AFeatureThatKnowsAllAnswersIsTheAnswer) {
  struct Case {
    const char* what;
    std::size_t features;
    double share, unexplained;
    std::optional<Severity> severity;
  };
  const Case cases[] = {
      {"one of many, and all is explained", 6, 0.99, 0.0, Severity::kWarning},
      {"one of many, and much is left", 6, 0.99, 0.2, Severity::kInfo},
      {"one of many, and nobody knows", 6, 0.99, NAN, Severity::kWarning},
      {"the only one, and all is explained", 1, 1.0, 0.0, Severity::kWarning},
      {"the only one, and much is left", 1, 1.0, 0.2, {}},
      {"several share", 6, 0.5, 0.0, {}},
  };
  for (const Case& c : cases) {
    MadeRun run(6);
    run.record.is_boosting = true;
    for (std::size_t i = 0; i < c.features; ++i) {
      run.add("feature_importance/total_gain/f" + std::to_string(i), {.role = Role::kImportance},
              {{Column::kMean, i == 0 ? c.share : 0.001}});
    }
    run.add("predictions", {.role = Role::kPredictions}, {{Column::kUnexplained, c.unexplained}});
    const std::vector<Verdict> verdicts = ask(kCheckFeatures, run);
    ASSERT_EQ(verdicts.size(), c.severity ? 1U : 0U) << c.what;
    if (c.severity) {
      EXPECT_EQ(verdicts[0].severity, *c.severity) << c.what;
    }
  }
}

TEST(LearningRateSanity, OfBoostingIsEta) {
  struct Case {
    const char* what;
    double eta;
    std::function<double(double)> loss;
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"usual", 0.3, falls, 0},
      {"usual, and the loss climbs for another reason", 0.3, rises, 0},
      {"low, and there are few rounds", 0.01, [](double i) { return 0.69 - 0.001 * i; }, 0},
      {"so low that all rounds together take next to nothing", 1e-6, [](double) { return 0.69; }, 1},
      {"none at all", 0, [](double) { return 0.69; }, 1},
      {"high, and the training copes", 1.5, falls, 0},
      {"high, and the loss climbs", 10, rises, 1},
      {"high, and the loss goes to and fro", 10, [](double i) { return 3 - 0.1 * i + (static_cast<int>(i) % 2); }, 1},
  };
  for (const Case& c : cases) {
    MadeRun run = boosted(12, c.loss, c.loss);
    run.record.hyperparameters = {{"eta", c.eta}};
    EXPECT_EQ(ask(kCheckLearningRate, run).size(), c.verdicts) << c.what;
  }
  MadeRun continued = boosted(12, falls, falls);
  continued.record.hyperparameters = {{"eta", 1e-6}};
  for (StepPoint& point : continued.record.steps) point.global_step += 40;
  EXPECT_TRUE(ask(kCheckLearningRate, continued).empty());
  std::string cannot;
  EXPECT_TRUE(ask(kCheckLearningRate, boosted(12, rises, rises), &cannot).empty());
  EXPECT_NE(cannot.find("eta"), std::string::npos);
}

TEST(Overfit, OfBoostingWhereValidationWinsNothing) {
  struct Case {
    const char* what;
    std::function<double(double)> training, validation;
    std::size_t verdicts;
  };
  const auto slowly = [](double i) { return 0.69 - 0.004 * i; };
  const Case cases[] = {
      {"validation climbs from the first round on", slowly, [](double i) { return 0.69 + 0.0005 * i; }, 1},
      {"validation falls, and climbs back by a little", slowly,
       [](double i) { return i < 20 ? 0.69 - 0.004 * i : 0.61 + 0.0005 * (i - 20); }, 0},
      {"both fall", slowly, [](double i) { return 0.69 - 0.003 * i; }, 0},
      {"training wins next to nothing either", [](double i) { return 0.69 - 0.0005 * i; },
       [](double i) { return 0.69 + 0.0005 * i; }, 0},
  };
  for (const Case& c : cases) {
    const std::vector<Verdict> verdicts = ask(kCheckOverfit, boosted(40, c.training, c.validation));
    ASSERT_EQ(verdicts.size(), c.verdicts) << c.what;
    if (c.verdicts == 1) {
      EXPECT_NE(verdicts[0].causes[0].find("labels"), std::string::npos) << c.what;
    }
  }
}

TEST(LossTrend, OfBoostingHasNoNoise) {
  struct Case {
    const char* what;
    std::function<double(double)> loss;
    std::string rule;
  };
  const Case cases[] = {
      {"seven rounds that fall", falls, ""},
      {"the first tree did nearly all there was to do", [](double i) { return 0.3 - 0.001 * i; }, ""},
      {"trees that do nothing", [](double) { return 0.69; }, "LossNotDecreasing"},
      {"trees that overshoot", [](double i) { return 1 + i; }, "LossDivergence"},
  };
  for (const Case& c : cases) {
    const std::vector<Verdict> verdicts = ask(kCheckLossTrend, boosted(7, c.loss, c.loss));
    EXPECT_EQ(verdicts.empty() ? "" : verdicts[0].rule, c.rule) << c.what;
  }
}

// Two rounds' tables, predictions and labels, as the hook saves them.
TEST(Check, ReadsWhatBoostingSaves) {
  RuleWorld world(Collections{{"losses", {"-logloss$"}},
                              {"predictions", {"^predictions$"}},
                              {"labels", {"^labels$"}},
                              {"feature_importance", {"^feature_importance/"}}});
  world.made().write("tornasole/worker_0_model.json", format::encode_model({}, "xgboost", 1));
  for (std::int64_t round = 0; round < 12; ++round) {
    world.save(round, {{"train-logloss", scalar(0.69F)},
                       {"validation-logloss", scalar(0.69F)},
                       {"trees/ID", texts({"0-0"})},
                       {"trees/Yes", texts({"nan"})},
                       {"trees/No", texts({"nan"})},
                       {"predictions", filled(0.5F, {40})},
                       {"labels", floats(std::vector<float>(40, 1), {40})}});
  }
  Trial trial = world.open();
  const auto report = check(trial);
  ASSERT_TRUE(report.ok()) << report.error().message;
  std::vector<std::string> rules;
  for (const Verdict& verdict : report->verdicts) rules.push_back(verdict.rule);
  ASSERT_FALSE(rules.empty());
  EXPECT_EQ(rules[0], "TreeDepth") << "no branch is the reason";
  EXPECT_NE(std::ranges::find(rules, "ConstantOutput"), rules.end());
  EXPECT_NE(std::ranges::find(rules, "LossNotDecreasing"), rules.end());
  for (std::size_t i = 1; i < report->verdicts.size(); ++i) EXPECT_EQ(report->verdicts[i].symptom_of, 0U) << rules[i];
}

TEST(EffectiveRank, CountsDirections) {
  EXPECT_NEAR(effective_rank(std::vector<double>{1, 1, 1, 1}), 4, 1e-9);
  EXPECT_NEAR(effective_rank(std::vector<double>{1, 0, 0, 0}), 1, 1e-9);
  EXPECT_EQ(effective_rank(std::vector<double>{0, 0}), 0);
}

}  // namespace
}  // namespace tornasole::rules
