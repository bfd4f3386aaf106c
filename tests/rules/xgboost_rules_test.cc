// FeatureImportanceOverweight, TreeDepth; and the rules for XGBoost over trials written by smdebug.

#include <cmath>

#include "base/json.h"
#include "rules/rule_world.h"
#include "support/tests_dir.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

TEST(FeatureImportanceOverweight, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<float> importances;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"three of four features have 0.9", {0.5F, 0.3F, 0.1F, 0.1F}, {}, true},
      {"ten alike", std::vector<float>(10, 0.1F), {}, false},
      {"the order does not matter", {0.1F, 0.1F, 0.5F, 0.3F}, {}, true},
      {"a share equal to the threshold", {2, 1, 1}, {{"nfeatures", "1"}, {"threshold", "0.5"}}, false},
      {"a share above it", {3, 1, 1}, {{"nfeatures", "1"}, {"threshold", "0.5"}}, true},
      {"they need not sum to one", {50, 30, 10, 10}, {}, true},
      {"no more features than are counted", {0.5F, 0.3F, 0.2F}, {}, false},
      {"a sum of zero", {0, 0, 0, 0}, {}, false},
      {"NaN", {NAN, 1, 1, 1}, {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    Values values;
    for (std::size_t i = 0; i < c.importances.size(); ++i) {
      values.emplace_back("feature_importance/weight/f" + std::to_string(i), scalar(c.importances[i]));
    }
    values.emplace_back("feature_importance/gain/f0", scalar(1000));
    world.save(0, values, ModeStep{Mode::kGlobal, 0});
    EXPECT_EQ(world.met("FeatureImportanceOverweight", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(FeatureImportanceOverweight, AnotherPattern) {
  RuleWorld world;
  world.save(0, {{"a", scalar(8)}, {"b", scalar(1)}, {"c", scalar(1)}, {"d", floats({100, 100})}});
  const RuleOutcome outcome = world.run("FeatureImportanceOverweight",
                                        {{"tensor_regex", "^[a-d]{1,1}$"}, {"nfeatures", "1"}, {"threshold", "0.7"}});
  EXPECT_EQ(outcome.steps_met, Steps{0});
  EXPECT_EQ(outcome.report.skipped.at("not a scalar"), 1);
}

TEST(TreeDepth, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<float> nodes;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"the largest id is 31: depth 5", {0, 1, 31}, {}, true},
      {"the largest id is 30: a full tree of depth 4", {30, 1, 2}, {}, false},
      {"id 7 is at depth 3", {0, 7}, {{"depth", "2"}}, true},
      {"id 6 is at depth 2", {0, 6}, {{"depth", "2"}}, false},
      {"the limit may lie between two depths", {0, 7}, {{"depth", "2.5"}}, true},
      {"a tree of one node", {0}, {{"depth", "0"}}, false},
      {"no ids", {-1}, {{"depth", "0"}}, false},
      {"NaN is no id", {NAN, 2}, {{"depth", "1"}}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"trees/Node", floats(c.nodes)}}, ModeStep{Mode::kGlobal, 0});
    EXPECT_EQ(world.met("TreeDepth", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(TreeDepth, ByFollowingTheBranches) {
  struct Case {
    const char* what;
    std::vector<std::string> ids, yes, no;
    double depth;  // negative: it could not be told
  };
  const Case cases[] = {
      {"a chain",
       {"0-0", "0-1", "0-2", "0-3", "0-4"},
       {"0-1", "0-3", "nan", "nan", "nan"},
       {"0-2", "0-4", "nan", "nan", "nan"},
       2},
      {"the deepest of two trees",
       {"0-0", "1-0", "1-1", "1-2"},
       {"nan", "1-1", "nan", "nan"},
       {"nan", "1-2", "nan", "nan"},
       1},
      {"one leaf", {"0-0"}, {"nan"}, {"nan"}, 0},
      {"a circle is no tree", {"0-0", "0-1"}, {"0-1", "0-0"}, {"nan", "nan"}, -1},
      {"a circle below the root ends", {"0-0", "0-1", "0-2"}, {"0-1", "0-2", "0-1"}, {"nan", "nan", "nan"}, 2},
      {"columns of different lengths", {"0-0", "0-1"}, {"0-1"}, {"nan", "nan"}, -1},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    const auto texts = [](const std::vector<std::string>& items) {
      return Tensor(items, Shape{static_cast<std::int64_t>(items.size())});
    };
    world.save(0, {{"trees/ID", texts(c.ids)}, {"trees/Yes", texts(c.yes)}, {"trees/No", texts(c.no)}});
    for (double limit = 0; limit < 4; ++limit) {
      EXPECT_EQ(world.met("TreeDepth", {{"method", "exact"}, {"depth", std::to_string(limit)}}),
                c.depth > limit ? Steps{0} : Steps{})
          << c.what << ", limit " << limit;
    }
  }
}

class Golden : public testing::Test {
 protected:
  static std::string path(const std::string& name) { return tests_dir() + "/golden/smdebug/" + name + "/trial"; }
  RuleOutcome run(const std::string& rule, const Parameters& parameters = {},
                  const std::string& name = "xgboost_full") {
    auto trial = Trial::open({.path = path(name), .timeout_s = 0});
    EXPECT_TRUE(trial.ok());
    auto made = make_rule(rule, parameters, {.base = &*trial});
    EXPECT_TRUE(made.ok());
    RuleRunner runner(&*trial);
    runner.add(std::move(*made));
    EXPECT_TRUE(runner.run().ok());
    files_ = runner.rule(0).files();
    return runner.outcome(0);
  }
  std::map<std::string, std::string> files_;
};

TEST_F(Golden, TheRulesOverARealTraining) {
  struct Case {
    const char* what;
    const char* rule;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"the first round has two features, later ones three",
       "FeatureImportanceOverweight",
       {{"nfeatures", "2"}},
       {3, 6}},
      {"by gain",
       "FeatureImportanceOverweight",
       {{"nfeatures", "1"}, {"tensor_regex", "feature_importance/gain"}, {"threshold", "0.53"}},
       {0, 6}},
      {"depth 2, 2, 1", "TreeDepth", {{"depth", "1"}}, {0, 3}},
      {"depth 2, 2, 1 by the branches", "TreeDepth", {{"depth", "1"}, {"method", "exact"}}, {0, 3}},
      {"the deepest tree has depth 2", "TreeDepth", {{"depth", "2"}}, {}},
      {"validation loss is always above training loss", "Overfit", {}, {0, 3, 6}},
      {"the gap of logloss grows", "Overfit", {{"ratio_threshold", "0.35"}}, {3, 6}},
      {"the loss falls", "LossNotDecreasing", {{"num_steps", "3"}}, {}},
      {"the area does not",
       "LossNotDecreasing",
       {{"num_steps", "3"}, {"use_losses_collection", "False"}, {"tensor_regex", "train-auc"}},
       {6}},
      {"losses still improve", "Overtraining", {{"patience_train", "1"}, {"patience_validation", "1"}}, {}},
      {"predictions", "Confusion", {}, {0, 3, 6}},
      {"predictions, judged mildly", "Confusion", {{"min_diag", "0"}, {"max_off_diag", "1"}}, {}},
  };
  for (const Case& c : cases) EXPECT_EQ(run(c.rule, c.parameters).steps_met, c.met) << c.rule << ": " << c.what;
}

TEST_F(Golden, TheReportOfARealTraining) {
  const RuleOutcome outcome = run("CreateXgboostReport");
  EXPECT_TRUE(outcome.steps_met.empty());
  const auto json = parse_json(files_.at("xgboost_report.json"));
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(*json->find("kind")->as_string(), "binary");
  EXPECT_EQ(*json->find("last_step")->as_int(), 6);
  EXPECT_EQ(*json->find("hyperparameters")->find("objective")->as_string(), "binary:logistic");
  EXPECT_EQ(*json->find("hyperparameters")->find("max_depth")->as_string(), "2");
  EXPECT_EQ(*json->find("hyperparameters")->find("verbose")->as_string(), "True");
  EXPECT_EQ(json->find("metrics")->as_object()->size(), 4U);
  EXPECT_EQ(json->find("metrics")->find("train-logloss")->as_array()->size(), 3U);
  EXPECT_NEAR(*json->find("feature_importance")->find("weight")->find("f2")->as_double(), 0.07692308, 1e-8);
  EXPECT_EQ(json->find("diagonal")->as_array()->size(), 3U);
  const Json::Array& rows = *json->find("confusion_matrix")->find("counts")->as_array();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].to_message(), "[7, 2]");
  EXPECT_EQ(rows[1].to_message(), "[0, 3]");
  EXPECT_EQ(*json->find("roc")->find("area")->as_double(), 1);
  EXPECT_GE(json->find("remarks")->as_array()->size(), 2U);
}

}  // namespace
}  // namespace tornasole::rules
