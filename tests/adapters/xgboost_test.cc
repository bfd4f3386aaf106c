// What the XGBoost adapter captures beyond what the comparison with Python shows, and that a training does not notice.

#include "tornasole/xgboost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tornasole/trial.h"

namespace tornasole::xgboost {
namespace {

using Names = std::vector<std::string>;

void check(int status) { ASSERT_EQ(status, 0) << XGBGetLastError(); }

TEST(XgboostJson, ReadsWhatXgboostWrites) {
  const auto tree = detail::Json::parse(
      R"({ "nodeid": 0, "split": "f1", "split_condition": [1, 3], "gain": -0, "x": true, "children": [ { "leaf": 1e-3 } ] })");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->find("split")->text(), "f1");
  EXPECT_TRUE(std::signbit(tree->find("gain")->number()));
  EXPECT_EQ(tree->find("split_condition")->items()[1].text(), "3");
  EXPECT_EQ(tree->find("children")->items()[0].find("leaf")->number(), 1e-3);
  EXPECT_EQ(tree->find("none"), nullptr);
  for (const char* bad : {"", "{", "[1,", "{\"a\" 1}", "[1] 2", "\"open", "nonsense", "[1 2]", "{\"a\":}"}) {
    EXPECT_FALSE(detail::Json::parse(bad)) << bad;
  }
  EXPECT_FALSE(detail::Json::parse(std::string(100'000, '[')));
}

TEST(XgboostScores, AreReadFromTheTextOfAnEvaluation) {
  struct Case {
    const char* what;
    const char* text;
    std::vector<std::pair<std::string, double>> scores;
  };
  const Case kCases[] = {
      {"two sets", "[3]\ttrain-rmse:0.5\tvalid-rmse:0.25", {{"train-rmse", 0.5}, {"valid-rmse", 0.25}}},
      {"a metric with an argument",
       "[0]\ttrain-ndcg@5:1.0\ttrain-error@0.5:0.125",
       {{"train-ndcg@5", 1.0}, {"train-error@0.5", 0.125}}},
      {"nothing", "", {}},
      {"a number that is none", "[0]\ttrain-rmse:much", {}},
  };
  for (const Case& c : kCases) EXPECT_EQ(detail::parse_scores(c.text), c.scores) << c.what;
  EXPECT_TRUE(std::isnan(detail::parse_scores("[0]\ttrain-rmse:-nan")[0].second));
  EXPECT_TRUE(std::isnan(detail::parse_scores("[0]\ttrain-rmse:nan")[0].second));
}

class Xgboost : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tornasole-xgboost-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::vector<float> labels;
    for (int i = 0; i < 60; ++i) {
      for (int j = 0; j < 3; ++j) values_.push_back(static_cast<float>((i * (j + 3) * 7) % 11));
      labels.push_back(static_cast<float>(i % 3));
    }
    check(XGDMatrixCreateFromMat(values_.data(), 60, 3, NAN, &data_));
    check(XGDMatrixSetFloatInfo(data_, "label", labels.data(), 60));
  }
  void TearDown() override {
    XGDMatrixFree(data_);
    std::filesystem::remove_all(folder_);
  }
  // Trains a few rounds and gives the predictions of the last.
  std::vector<float> train(const std::vector<std::pair<const char*, const char*>>& parameters, Capture* capture,
                           const char* scores = nullptr) {
    BoosterHandle booster = nullptr;
    check(XGBoosterCreate(&data_, 1, &booster));
    check(XGBoosterSetParam(booster, "nthread", "1"));
    for (const auto& [key, value] : parameters) check(XGBoosterSetParam(booster, key, value));
    for (int round = 0; round < 3; ++round) {
      check(XGBoosterUpdateOneIter(booster, round, data_));
      if (capture == nullptr) continue;
      if (scores != nullptr) {
        capture->after_round(booster, round, scores);
      } else {
        capture->after_round(booster, round, {{data_, "train"}});
      }
    }
    const auto predicted = detail::predict(booster, data_, detail::Prediction::kValue);
    EXPECT_TRUE(predicted.ok());
    const std::vector<float> result(predicted->data, predicted->data + predicted->shape.element_count());
    check(XGBoosterFree(booster));
    return result;
  }
  Hook open(Names collections, bool saves_all = false) {
    auto hook = xgboost::open({.out_dir = (folder_ / "run").string(),
                               .save_config = {.save_interval = 1},
                               .include_collections = std::move(collections),
                               .save_all = saves_all,
                               .log = [this](LogLevel level, std::string_view text) {
                                 if (level >= LogLevel::kWarning) log_.emplace_back(text);
                               }});
    EXPECT_TRUE(hook.ok());
    return std::move(*hook);
  }
  Trial trial() {
    auto opened = Trial::open({.path = (folder_ / "run").string()});
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  bool is_told(const std::string& text) const {
    return std::ranges::any_of(log_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  std::filesystem::path folder_;
  std::vector<float> values_;
  DMatrixHandle data_ = nullptr;
  Names log_;
};

TEST_F(Xgboost, SeveralClassesGiveSeveralTreesARoundAndFeaturesWithoutNames) {
  {
    Hook hook = open({}, /*saves_all=*/true);
    Capture capture(hook, {.train_data = data_, .validation_data = data_});
    train({{"objective", "multi:softprob"}, {"num_class", "3"}, {"max_depth", "2"}}, &capture);
  }
  const Trial run = trial();
  const auto trees = run.tensor("trees/Tree", {Mode::kGlobal, 2});
  ASSERT_TRUE(trees.ok());
  EXPECT_EQ(trees->values<std::int64_t>().front(), 6);
  EXPECT_EQ(trees->values<std::int64_t>().back(), 8);
  EXPECT_EQ(run.tensor("predictions", {Mode::kGlobal, 0})->shape(), (Shape{60, 3}));
  EXPECT_EQ(run.tensor("full_shap/f0", {Mode::kGlobal, 0})->shape(), (Shape{60, 3, 4}));
  EXPECT_TRUE(run.has_tensor("average_shap/bias"));
  EXPECT_TRUE(run.has_tensor("train-mlogloss"));
  double total = 0;
  const Names names = *run.tensor_names({.regex = {"^feature_importance/gain/"}});
  for (const std::string& name : names) total += run.tensor(name, {Mode::kGlobal, 2})->values<double>()[0];
  EXPECT_NEAR(total, 1.0, 1e-12);
}

TEST_F(Xgboost, ALinearBoosterHasNoTreesWhichIsToldOnce) {
  {
    Hook hook = open({"trees", "feature_importance", "metrics"});
    Capture capture(hook, {});
    train({{"booster", "gblinear"}, {"objective", "reg:squarederror"}}, &capture);
  }
  EXPECT_TRUE(is_told("trees cannot be saved: the booster gblinear has no trees"));
  EXPECT_TRUE(trial().has_tensor("train-rmse"));
  EXPECT_FALSE(trial().has_tensor("trees/Tree"));
}

TEST_F(Xgboost, WhatWasNotGivenIsToldAndTheRestIsSaved) {
  {
    Hook hook = open({"predictions", "labels", "average_shap", "hyperparameters", "metrics"});
    Capture capture(hook, {});
    train({{"objective", "reg:squarederror"}}, &capture, "[0]\ttrain-rmse:0.5");
  }
  for (const char* text : {"predictions are to be saved", "labels are to be saved", "average_shap are to be saved",
                           "hyperparameters are to be saved"}) {
    EXPECT_TRUE(is_told(text)) << text;
  }
  EXPECT_EQ(trial().tensor("train-rmse", {Mode::kGlobal, 1})->values<double>()[0], 0.5);
}

TEST_F(Xgboost, DataWiderThanTheModelIsRefusedAsXgboostDoesNotLook) {
  DMatrixHandle wide = nullptr;
  check(XGDMatrixCreateFromMat(values_.data(), 36, 5, NAN, &wide));
  {
    Hook hook = open({"predictions"});
    Capture capture(hook, {.validation_data = wide});
    train({{"objective", "reg:squarederror"}}, &capture);
  }
  EXPECT_TRUE(is_told("validation_data has 5 columns, the model 3 features"));
  check(XGDMatrixFree(wide));
}

TEST_F(Xgboost, TheModelIsTheSameToTheBitWithAndWithoutCapture) {
  const std::vector<std::pair<const char*, const char*>> parameters = {{"objective", "reg:squarederror"},
                                                                       {"subsample", "0.5"}};
  const std::vector<float> plain = train(parameters, nullptr);
  Hook hook = open({}, /*saves_all=*/true);
  Capture capture(hook, {.train_data = data_, .validation_data = data_});
  EXPECT_EQ(train(parameters, &capture), plain);
  ASSERT_TRUE(hook.close().ok());
  EXPECT_EQ(train(parameters, &capture), plain) << "after the hook was closed";
}

}  // namespace
}  // namespace tornasole::xgboost
