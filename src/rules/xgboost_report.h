#pragma once

// XgboostReport: what a training of boosted trees looks like so far; printed as JSON and as one HTML page.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/xgboost_numbers.h"

namespace tornasole::rules {

struct XgboostReport {
  template <typename T>
  using BySteps = std::vector<std::pair<std::int64_t, T>>;

  std::string trial = {};
  std::int64_t last_step = -1;
  std::map<std::string, std::string> hyperparameters = {};
  std::map<std::string, BySteps<double>> metrics = {};                    // "train-logloss" -> values
  std::map<std::string, std::map<std::string, double>> importances = {};  // "weight" -> feature -> share
  LabelledPairs pairs = {};                                               // of the last step that has any
  BySteps<std::vector<std::pair<double, double>>> diagonals = {};         // class -> share that is right
  BySteps<BinnedErrors> errors = {};

  // What the losses tell, in sentences.
  std::vector<std::string> remarks() const;
  std::string to_json() const;
};

// One page that needs nothing but itself: no script, no outside resource, every text escaped.
std::string xgboost_page(const XgboostReport& report);

}  // namespace tornasole::rules
