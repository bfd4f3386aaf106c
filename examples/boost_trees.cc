// Boosted trees with the C interface of XGBoost, captured: metrics, importances, SHAP values and trees of each round.
//
//   boost_trees DIRECTORY

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tornasole/xgboost.h"

namespace {

// XGBoost's way to say that a call failed.
void check(int status) {
  if (status == 0) return;
  std::fprintf(stderr, "%s\n", XGBGetLastError());
  std::exit(1);
}

// y = 1 if x0 + x1 * x2 is large: numbers from a small generator, the same everywhere.
struct Data {
  explicit Data(int rows, unsigned seed) {
    unsigned state = seed;
    const auto next = [&] {
      state = state * 1664525U + 1013904223U;
      return static_cast<float>(state >> 8) / 16777216.0F;
    };
    std::vector<float> values, labels;
    for (int i = 0; i < rows; ++i) {
      const float x[4] = {next(), next(), next(), next()};
      values.insert(values.end(), x, x + 4);
      labels.push_back(x[0] + x[1] * x[2] > 0.75F ? 1.0F : 0.0F);
    }
    const auto count = static_cast<bst_ulong>(rows);
    check(XGDMatrixCreateFromMat(values.data(), count, 4, -1.0F, &matrix));
    check(XGDMatrixSetFloatInfo(matrix, "label", labels.data(), count));
    const char* names[] = {"age", "income", "rate", "noise"};
    check(XGDMatrixSetStrFeatureInfo(matrix, "feature_name", names, 4));
  }
  ~Data() { XGDMatrixFree(matrix); }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  DMatrixHandle matrix = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const Data train(200, 1), valid(100, 2);

  auto hook = tornasole::xgboost::open({
      .out_dir = argv[1],
      .save_config = {.save_interval = 2},
      .include_collections = {"hyperparameters", "predictions", "labels", "feature_importance", "average_shap",
                              "full_shap", "trees"},
  });
  if (!hook) {
    std::fprintf(stderr, "%s\n", hook.error().message.c_str());
    return 1;
  }
  tornasole::xgboost::Capture capture(
      *hook, {.hyperparameters = {{"objective", "binary:logistic"}, {"max_depth", std::int64_t{3}}, {"eta", 0.3}},
              .train_data = train.matrix,
              .validation_data = valid.matrix});

  BoosterHandle booster = nullptr;
  check(XGBoosterCreate(&train.matrix, 1, &booster));
  check(XGBoosterSetParam(booster, "objective", "binary:logistic"));
  check(XGBoosterSetParam(booster, "max_depth", "3"));
  check(XGBoosterSetParam(booster, "eta", "0.3"));
  check(XGBoosterSetParam(booster, "nthread", "1"));
  for (int round = 0; round < 10; ++round) {
    check(XGBoosterUpdateOneIter(booster, round, train.matrix));
    capture.after_round(booster, round, {{train.matrix, "train"}, {valid.matrix, "validation"}});
  }
  check(XGBoosterFree(booster));
  return hook->close().ok() ? 0 : 1;
}
