// What only boosted trees have. TreeDepth: trees so deep that they learn their data by heart, or without a branch.
// FeatureImportanceOverweight: one feature decides everything.
//
// Deep trees are a choice: they are judged by what validation makes of them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/number_windows.h"
#include "rules/check/validation_course.h"

namespace tornasole::rules {
namespace {

constexpr double kUsualDepth = 6;

Series depths_of(const RunRecord& run) {
  Series depths;
  for (const RoundTrees& round : run.trees) {
    depths.steps.push_back(run.steps[round.point].global_step);
    depths.values.push_back(static_cast<double>(round.shape.depth));
  }
  return depths;
}

// The training set is learned, and next to nothing of it helps with other data.
bool has_learned_nothing_else(const ValidationCourse& course) {
  const double start = course.training.values.front();
  const double won = start - course.training_now;
  const double won_elsewhere = course.validation.values.front() - course.last;
  return won > 0.5 * std::fabs(start) && won_elsewhere < 0.1 * won;
}

// What the training was told that keeps trees from branching, as a sentence after a blank; else empty.
std::string brakes_text(const RunRecord& run) {
  constexpr std::pair<const char*, double> kUsual[] = {{"min_child_weight", 1}, {"gamma", 0}, {"min_split_loss", 0}};
  std::string text;
  for (const auto& [name, usual] : kUsual) {
    const auto set = run.hyperparameters.find(name);
    if (set == run.hyperparameters.end() || !(set->second > usual)) continue;
    text += fmt::format("{}{} is {:g}", text.empty() ? " " : ", ", name, set->second);
  }
  return text.empty() ? text : text + ".";
}

// Whether all labels that are known are one number.
bool are_labels_equal(const RunRecord& run) {
  bool is_known = false;
  for (const History* labels : run.of_role(Role::kLabels)) {
    for (std::size_t i = 0; i < labels->size(); ++i) {
      if (!(labels->at(Column::kMin, i) == labels->at(Column::kMax, i))) return false;
      is_known = true;
    }
  }
  return is_known;
}

void look_at_stumps(const RunRecord& run, const Series& depths, Judgement& judgement) {
  const std::string brakes = brakes_text(run);
  const bool is_one_label = are_labels_equal(run);
  std::vector<std::string> causes = {"min_child_weight or gamma is so large that no branch is worth it",
                                     "the labels are all the same", "the features say nothing"};
  if (is_one_label) {
    std::swap(causes[0], causes[1]);
  } else if (brakes.empty()) {
    std::swap(causes[0], causes[2]);
  }
  judgement.add({.severity = Severity::kError,
                 .first_step = depths.steps.front(),
                 .last_step = depths.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = {"trees/Node"},
                 .value = 0,
                 .threshold = 1,
                 .message = fmt::format("No tree of the {} rounds that were saved has a branch: every sample gets the "
                                        "same answer.{}",
                                        depths.size(), is_one_label ? " All labels are the same." : brakes),
                 .causes = std::move(causes),
                 .advice = {"lower min_child_weight and gamma", "look at the labels and at the features"},
                 .evidence = evidence_of("depth of the trees", depths)});
}

void look_at_depth(const RunRecord& run, Judgement& judgement) {
  if (run.trees.empty()) {
    judgement.cannot("needs the trees of boosting (collection trees)");
    return;
  }
  const Series depths = depths_of(run);
  if (std::ranges::all_of(depths.values, [](double depth) { return depth <= 0; })) {
    look_at_stumps(run, depths, judgement);
    return;
  }
  const auto course = validation_course(run);
  const double depth = median(depths.values);
  if (!(depth > kUsualDepth)) return;
  if (!course) {
    judgement.cannot(
        fmt::format("trees are {:.0f} levels deep; whether that is too deep, {} evaluations of other data "
                    "and of the training data would tell; there are {}",
                    depth, kLeastEvaluations, evaluation_count(run)));
    return;
  }
  if (!is_overfit(*course) && !has_learned_nothing_else(*course)) return;
  std::vector<double> leaves;
  for (const RoundTrees& round : run.trees) {
    leaves.push_back(static_cast<double>(round.shape.leaves) /
                     static_cast<double>(std::max<std::int64_t>(1, round.shape.trees)));
  }
  judgement.add({.severity = Severity::kWarning,
                 .first_step = depths.steps.front(),
                 .last_step = depths.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = {"trees/Node"},
                 .value = depth,
                 .threshold = kUsualDepth,
                 .message = fmt::format(
                     "Trees are {:.0f} levels deep, with {:.0f} leaves each: they learn the training set by heart "
                     "(its loss fell from {:.3g} to {:.3g}, that of validation went from {:.3g} to {:.3g}).",
                     depth, median(leaves), course->training.values.front(), course->training_now,
                     course->validation.values.front(), course->last),
                 .causes = {"max_depth is too large for the data", "the features say nothing about the labels"},
                 .advice = {"lower max_depth, raise min_child_weight or gamma",
                            "draw rows and columns (subsample, colsample_bytree)", "stop at the best validation loss"},
                 .evidence = evidence_of("validation loss", course->validation)});
}

// The share of the answers that the model gets wrong, or of the labels' variance that it leaves; NaN if unknown.
double unexplained(const RunRecord& run) {
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    const Series left = run.series(*predictions, Column::kUnexplained);
    if (!left.empty()) return left.values.back();
  }
  return std::nan("");
}

void look_at_features(const RunRecord& run, Judgement& judgement) {
  constexpr double kMostShare = 0.9;
  constexpr double kKnowsAll = 0.05;
  constexpr std::size_t kLeastFeatures = 4;
  constexpr std::size_t kLeastRounds = 3;
  const std::vector<const History*> features = run.of_role(Role::kImportance);
  if (features.empty()) {
    judgement.cannot("needs the importance of features (collection feature_importance)");
    return;
  }
  // The first trees of every model use few features.
  const History* first = nullptr;
  double share = 0;
  for (const History* feature : features) {
    const Series shares = run.series(*feature, Column::kMean);
    if (shares.size() < kLeastRounds) continue;
    const std::vector<double> late(shares.values.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2),
                                   shares.values.end());
    if (const double usual = median(late); usual > share) {
      share = usual;
      first = feature;
    }
  }
  if (first == nullptr || !(share > kMostShare)) return;
  const double left = unexplained(run);
  // Features that no tree uses are not listed: a model that uses one of them may have had others to choose from.
  const bool is_sure = left < kKnowsAll;
  if (features.size() < kLeastFeatures && !is_sure) return;
  const Series shares = run.series(*first, Column::kMean);
  judgement.add(
      // A feature that helps most is no fault by itself; one that knows nearly all answers is the answer.
      {.severity = is_sure || std::isnan(left) ? Severity::kWarning : Severity::kInfo,
       .first_step = shares.steps.front(),
       .last_step = shares.steps.back(),
       .mode = run.training_mode(),
       .tensors = {first->name},
       .value = share,
       .threshold = kMostShare,
       .message = fmt::format(
           "{} has {:.0f} % of the gain of the {} {} in use{}.", first->name, 100 * share, features.size(),
           features.size() == 1 ? "feature" : "features",
           is_sure ? fmt::format(", and {:.1f} % of the answers are left to explain", 100 * left) : std::string()),
       .causes = {"the feature holds the answer: it is computed from the label, or known only afterwards",
                  "the other features say nothing"},
       .advice = {"check how the feature comes about", "train once without it"},
       .evidence = evidence_of(first->name, shares)});
}

}  // namespace

const Detector kCheckTreeDepth = {
    .name = "TreeDepth", .question = "Are trees as deep as their data allows?", .depth = 2, .look = look_at_depth};
const Detector kCheckFeatures = {.name = "FeatureImportanceOverweight",
                                 .question = "Does more than one feature count?",
                                 .depth = 0,
                                 .look = look_at_features};

}  // namespace tornasole::rules
