#pragma once

// Captures a training with the C interface of XGBoost: the tensors and names of the Python hook.
//
//   auto hook = tornasole::xgboost::open({.out_dir = "runs/boost", .include_collections = {"feature_importance"}});
//   if (!hook) return fail(hook.error());
//   tornasole::xgboost::Capture capture(*hook, {.train_data = train, .validation_data = valid});
//   for (int round = 0; round < 100; ++round) {
//     XGBoosterUpdateOneIter(booster, round, train);
//     capture.after_round(booster, round, {{train, "train"}, {valid, "validation"}});
//   }
//
//   <data>-<metric>                     evaluation metric of the round
//   hyperparameters/<key>               what was given; texts are allowed
//   predictions, labels                 of validation_data
//   feature_importance/<type>/<feature> score divided by the total of its type
//   average_shap/<feature>              sum of the contributions' magnitudes over the rows of train_data
//   full_shap/<feature>                 the matrix (rows, features + 1) of contributions, under each name
//   trees/<column>                      the trees of this round, a column each
//
// A step is a boosting round and has its number. What nobody asked for is not computed. After the set-up nothing fails:
// what cannot be had is told once to the log of the hook. Needs XGBoost 1.7 or later, and its library to be linked.

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tornasole/hook.h"
#include "tornasole/xgboost_model.h"

namespace tornasole::xgboost {

// Data that each round is evaluated on, and its name in metrics.
struct Evaluation {
  DMatrixHandle data = nullptr;
  std::string name;
};

using Hyperparameter = std::variant<std::int64_t, double, bool, std::string>;

// The handles are borrowed as long as the capture is used.
struct CaptureOptions {
  std::vector<std::pair<std::string, Hyperparameter>> hyperparameters = {};
  DMatrixHandle train_data = nullptr;       // what SHAP values are computed of
  DMatrixHandle validation_data = nullptr;  // what predictions and labels are taken from
};

// A hook with the collections of XGBoost; every 10th round is saved unless the options say otherwise.
inline Result<Hook> open(HookOptions options) {
  options.framework = Framework::kXgboost;
  options.framework_version = detail::version();
  return Hook::open(std::move(options));
}

class Capture {
 public:
  // The hook must outlive the capture.
  explicit Capture(Hook& hook, CaptureOptions options = {}) : hook_(hook), options_(std::move(options)) {}

  // A round is done. The sets are evaluated if their metrics are due in this round, and only then.
  void after_round(BoosterHandle booster, std::int64_t round, std::initializer_list<Evaluation> sets) noexcept {
    after_round(booster, round, std::span<const Evaluation>(sets.begin(), sets.size()));
  }
  void after_round(BoosterHandle booster, std::int64_t round, std::span<const Evaluation> sets) noexcept {
    run(booster, round, {.sets = sets});
  }
  // The same where the training evaluates anyway: `scores` is the text of XGBoosterEvalOneIter; it may be empty.
  void after_round(BoosterHandle booster, std::int64_t round, std::string_view scores = {}) noexcept {
    run(booster, round, {.text = scores});
  }

 private:
  struct Round {
    std::span<const Evaluation> sets = {};
    std::string_view text = {};
    BoosterHandle booster = nullptr;
    std::int64_t number = 0;
  };
  struct Group {
    std::string_view name;
    void (Capture::*save)(const StepRef&, const Round&);
  };
  using Names = std::vector<std::string>;

  // The one boundary: an exception of the standard library, when memory is short, ends here.
  void run(BoosterHandle booster, std::int64_t number, Round round) noexcept {
    const StepScope step = hook_.begin_step(hook_.mode(), GlobalStep{number});
    if (!step.anything_due()) return;
    try {
      round.booster = booster;
      round.number = number;
      scores_.reset();
      describe(round);
      for (const Group& group : groups_of(step, round)) (this->*group.save)(step, round);
    } catch (const std::exception& error) {
      hook_.log(LogLevel::kWarning, error.what());
    }
  }

  static std::span<const Group> groups() {
    static constexpr Group kGroups[] = {
        {"hyperparameters", &Capture::save_hyperparameters},
        {"metrics", &Capture::save_metrics},
        {"losses", &Capture::save_losses},
        {"predictions", &Capture::save_predictions},
        {"labels", &Capture::save_labels},
        {"feature_importance", &Capture::save_importances},
        {"trees", &Capture::save_trees},
        {"full_shap", &Capture::save_full_shap},
        {"average_shap", &Capture::save_average_shap},
    };
    return kGroups;
  }

  // What has to be computed in this round: the groups of which a name is wanted by a collection that is due. Worked out
  // once for all rounds that want the same.
  const std::vector<Group>& groups_of(const StepRef& step, const Round& round) {
    const auto [known, is_new] = groups_by_due_set_.try_emplace(step.due_set());
    if (!is_new) return known->second;
    const std::vector<std::string> due = hook_.due_collections();
    const Names features = features_of(round);
    for (const Group& group : groups()) {
      const bool is_due = std::ranges::find(due, group.name) != due.end();
      if (is_due || std::ranges::any_of(names_of(group.name, features, round),
                                        [&](const std::string& name) { return step.wants(name); })) {
        known->second.push_back(group);
      }
    }
    // Losses are metrics: one pass saves both.
    if (std::ranges::count(known->second, "metrics", &Group::name) != 0) {
      std::erase_if(known->second, [](const Group& group) { return group.name == "losses"; });
    }
    return known->second;
  }

  // The names there can be in a group, for collections that are not the group's own.
  Names names_of(std::string_view group, const Names& features, const Round& round) {
    Names names;
    if (group == "metrics" || group == "losses") {
      for (const auto& [name, value] : scores(round)) names.push_back(name);
    } else if (group == "hyperparameters") {
      for (const auto& [key, value] : options_.hyperparameters) names.push_back("hyperparameters/" + key);
    } else if (group == "trees") {
      for (const char* column : kColumns) names.push_back(std::string("trees/") + column);
    } else if (group == "predictions" || group == "labels") {
      names.emplace_back(group);
    } else if (group == "feature_importance") {
      for (const std::string_view type : detail::kImportances) {
        for (const std::string& feature : features) {
          names.push_back("feature_importance/" + std::string(type) + "/" + feature);
        }
      }
    } else {
      for (const std::string& feature : features) names.push_back(std::string(group) + "/" + feature);
    }
    return names;
  }

  void describe(const Round& round) {
    if (is_described_) return;
    is_described_ = true;
    ModelDescription model;
    for (const Evaluation& set : round.sets) {
      model.data[set.name] = set.data == options_.train_data ? "train" : "validation";
    }
    model.versions["xgboost"] = detail::version();
    hook_.describe_model(model);
  }

  // ---- the groups

  void save_hyperparameters(const StepRef& step, const Round&) {
    if (options_.hyperparameters.empty()) tell("hyperparameters are to be saved, and the capture was given none");
    for (const auto& [key, value] : options_.hyperparameters) {
      std::visit([&, name = "hyperparameters/" + key](const auto& one) { save_one(step, name, one); }, value);
    }
  }
  void save_metrics(const StepRef& step, const Round& round) {
    for (const auto& [name, value] : scores(round)) step.save(name, value);
  }
  void save_losses(const StepRef& step, const Round& round) { save_metrics(step, round); }

  void save_predictions(const StepRef& step, const Round& round) {
    if (!has_data("predictions", "validation_data", options_.validation_data, round.booster)) return;
    const Result<detail::Numbers> found =
        detail::predict(round.booster, options_.validation_data, detail::Prediction::kValue);
    if (is_told("predictions", found)) step.save("predictions", view_of(*found));
  }
  void save_labels(const StepRef& step, const Round&) {
    if (options_.validation_data == nullptr) return tell("labels are to be saved, and validation_data was not given");
    bst_ulong count = 0;
    const float* labels = nullptr;
    if (XGDMatrixGetFloatInfo(options_.validation_data, "label", &count, &labels) != 0) {
      return tell("labels cannot be saved: " + detail::last_error("XGDMatrixGetFloatInfo").message);
    }
    step.save("labels", TensorView::of(std::span<const float>(labels, count)));
  }
  void save_importances(const StepRef& step, const Round& round) {
    if (!has_trees("feature_importance", round.booster)) return;
    const auto found = detail::importances(round.booster, options_.train_data);
    if (!is_told("feature_importance", found)) return;
    for (const auto& [name, share] : *found) step.save("feature_importance/" + name, share);
  }
  void save_trees(const StepRef& step, const Round& round) {
    if (!has_trees("trees", round.booster)) return;
    const auto found = detail::last_trees(round.booster, options_.train_data);
    if (!is_told("trees", found)) return;
    step.save("trees/Tree", found->tree);
    step.save("trees/Node", found->node);
    save_texts(step, "trees/ID", found->id);
    save_texts(step, "trees/Feature", found->feature);
    step.save("trees/Split", found->split);
    save_texts(step, "trees/Yes", found->yes);
    save_texts(step, "trees/No", found->no);
    save_texts(step, "trees/Missing", found->missing);
    step.save("trees/Gain", found->gain);
    step.save("trees/Cover", found->cover);
    save_texts(step, "trees/Category", found->category);
  }
  void save_full_shap(const StepRef& step, const Round& round) { save_shap(step, round, /*is_full=*/true); }
  void save_average_shap(const StepRef& step, const Round& round) { save_shap(step, round, /*is_full=*/false); }

  void save_shap(const StepRef& step, const Round& round, bool is_full) {
    const char* group = is_full ? "full_shap" : "average_shap";
    if (!has_data(group, "train_data", options_.train_data, round.booster)) return;
    const auto found = detail::predict(round.booster, options_.train_data, detail::Prediction::kContributions);
    if (!is_told(group, found) || found->shape.rank() == 0) return;
    Names features = features_of(round);
    features.emplace_back(detail::kBias);
    const std::vector<float> sums = is_full ? std::vector<float>() : detail::summed_magnitudes(*found);
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::string name = std::string(group) + "/" + features[i];
      if (is_full) {
        step.save(name, view_of(*found));
      } else if (i < sums.size()) {
        step.save(name, sums[i]);
      }
    }
  }

  // ---- what they need

  static constexpr const char* kColumns[] = {"Tree", "Node",    "ID",   "Feature", "Split",   "Yes",
                                             "No",   "Missing", "Gain", "Cover",   "Category"};

  static TensorView view_of(const detail::Numbers& numbers) { return {DType::kFloat32, numbers.data, numbers.shape}; }
  template <typename T>
  static void save_one(const StepRef& step, const std::string& name, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      save_texts(step, name, {value});
    } else {
      step.save(name, value);
    }
  }
  static void save_texts(const StepRef& step, std::string_view name, const std::vector<std::string>& texts) {
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    step.save(name, TensorView::strings(views));
  }

  // Evaluated once in a round, whoever asks.
  const std::vector<std::pair<std::string, double>>& scores(const Round& round) {
    if (scores_) return *scores_;
    std::string_view text = round.text;
    if (!round.sets.empty()) {
      std::vector<DMatrixHandle> data;
      std::vector<const char*> names;
      for (const Evaluation& set : round.sets) {
        data.push_back(set.data);
        names.push_back(set.name.c_str());
      }
      const char* result = nullptr;
      if (XGBoosterEvalOneIter(round.booster, static_cast<int>(round.number), data.data(), names.data(), data.size(),
                               &result) != 0) {
        tell("metrics cannot be saved: " + detail::last_error("XGBoosterEvalOneIter").message);
      } else {
        text = result;
      }
    }
    return scores_.emplace(detail::parse_scores(text));
  }
  Names features_of(const Round& round) {
    const auto names = detail::feature_names(round.booster, options_.train_data);
    return is_told("names of features", names) ? *names : Names();
  }
  // Whether there is data that the model can be asked about.
  bool has_data(const char* group, const char* which, DMatrixHandle data, BoosterHandle booster) {
    bst_ulong columns = 0;
    if (data == nullptr) {
      tell(std::string(group) + " are to be saved, and " + which + " was not given");
      return false;
    }
    const Result<std::int64_t> features = detail::feature_count(booster);
    if (!is_told(group, features) || XGDMatrixNumCol(data, &columns) != 0) return false;
    if (!std::cmp_greater(columns, *features)) return true;
    // XGBoost does not look, and writes beyond its arrays.
    tell(std::string(group) + " cannot be saved: " + which + " has " + std::to_string(columns) +
         " columns, the model " + std::to_string(*features) + " features");
    return false;
  }
  bool has_trees(const char* group, BoosterHandle booster) {
    const Result<std::string> kind = detail::booster_kind(booster);
    if (!is_told(group, kind)) return false;
    const bool is_tree = *kind == "gbtree" || *kind == "dart";
    if (!is_tree) tell(std::string(group) + " cannot be saved: the booster " + *kind + " has no trees");
    return is_tree;
  }
  // Whether it was found; if not, why is told.
  template <typename T>
  bool is_told(const char* group, const Result<T>& found) {
    if (!found) tell(std::string(group) + " cannot be saved: " + found.error().message);
    return found.ok();
  }
  void tell(const std::string& text) {
    if (told_.insert(text).second) hook_.log(LogLevel::kWarning, text);
  }

  Hook& hook_;
  const CaptureOptions options_;
  bool is_described_ = false;
  std::map<std::uint64_t, std::vector<Group>> groups_by_due_set_;
  std::optional<std::vector<std::pair<std::string, double>>> scores_;  // of this round
  std::set<std::string> told_;
};

}  // namespace tornasole::xgboost
