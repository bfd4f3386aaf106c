// Overfit: validation rises from its best while training goes on falling. Overtraining: it rises, or stands still, and
// training does not fall either. SuspiciousValidation: evaluations go better than they can without help.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rules/check/batch_likeness.h"
#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/validation_course.h"

namespace tornasole::rules {
namespace {

std::vector<std::string> loss_names(const RunRecord& run) {
  std::vector<std::string> names;
  for (const History* loss : run.of_role(Role::kLoss)) names.push_back(loss->name);
  for (const History* loss : run.of_role(Role::kValidationLoss)) names.push_back(loss->name);
  return names;
}

std::string what_is_needed(const RunRecord& run) {
  return fmt::format("needs losses of training and of {} evaluations or more; there are {}", kLeastEvaluations,
                     evaluation_count(run));
}

// From the first evaluation to the last far worse than an answer that is the same for all, while training learns: no
// model does so by itself.
bool look_for_other_inputs(const RunRecord& run, const ValidationCourse& course, Judgement& judgement) {
  constexpr double kWorse = 5;
  constexpr double kLearned = 0.5;
  constexpr int kAtTheRoot = -7;
  const std::optional<double> trivial = trivial_loss(run);
  if (!trivial || run.is_boosting) return false;
  const double guess = std::max(*trivial, course.training.values.front());
  const double best = *std::ranges::min_element(course.validation.values);
  if (!(best > kWorse * guess) || !(course.training_now < kLearned * guess)) return false;
  judgement.add({.rule = "TrainEvalMismatch",
                 .severity = Severity::kWarning,
                 .first_step = course.validation.steps.front(),
                 .last_step = course.validation.steps.back(),
                 .mode = Mode::kEval,
                 .tensors = loss_names(run),
                 .value = best,
                 .threshold = kWorse * guess,
                 .message = fmt::format("Every evaluation costs {:.4g} or more, where training is at {:.4g} and the "
                                        "same answer for every sample would cost {:.4g}: evaluation is given other "
                                        "inputs than training, or the model is another one there.",
                                        best, course.training_now, *trivial),
                 .causes = {"samples are scaled or laid out in another way than those of the training",
                            "running statistics of a batch normalisation that do not fit"},
                 .advice = {"evaluate one batch of the training: its loss should be about that of the training",
                            "use one function for the inputs of both"},
                 .evidence = evidence_of("validation loss", course.validation)},
                kAtTheRoot);
  return true;
}

void look_for_overfit(const RunRecord& run, Judgement& judgement) {
  const auto course = validation_course(run);
  if (!course) {
    judgement.cannot(what_is_needed(run));
    return;
  }
  if (look_for_other_inputs(run, *course, judgement) || !is_overfit(*course)) return;
  const Series& validation = course->validation;
  std::vector<std::string> causes = {"the model learns the training set by heart",
                                     "too little data for the size of the model"};
  std::vector<std::string> advice = {"stop at the best validation loss",
                                     "regularise: weight decay, drop-out, augmentation",
                                     "use a smaller model or more data"};
  if (has_validation_won_nothing(*course)) {
    causes.insert(causes.begin(), "labels that do not belong to their samples, or that the features say nothing about");
    advice.insert(advice.begin(), "look whether samples and labels are in the same order, in both data sets");
  }
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = validation.steps[course->best_at + 1],
       .last_step = validation.steps.back(),
       .mode = run.is_boosting ? run.training_mode() : Mode::kEval,
       .tensors = loss_names(run),
       .value = course->last,
       .threshold = course->best,
       .message = fmt::format("Validation was best at step {} ({:.4g}) and has risen to {:.4g} while the training "
                              "loss went on falling.",
                              validation.steps[course->best_at], course->best, course->last),
       .causes = std::move(causes),
       .advice = std::move(advice),
       .evidence = evidence_of("validation loss", validation)});
}

// The last evaluation that was better than all before by more than one part in a hundred of what was won.
std::size_t last_gain(const ValidationCourse& course) {
  const std::vector<double>& values = course.validation.values;
  const double least = std::max(course.noise, 0.01 * std::fabs(values.front() - course.best));
  std::size_t last = 0;
  double best = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (!(values[i] < best - least)) continue;
    best = values[i];
    last = i;
  }
  return last;
}

void look_for_overtraining(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kPatience = 10;
  constexpr double kStill = 0.02;  // of what training won
  const auto course = validation_course(run);
  if (!course || course->validation.size() < kPatience) {
    judgement.cannot(fmt::format("needs losses of training and of {} evaluations or more; there are {}", kPatience,
                                 evaluation_count(run)));
    return;
  }
  if (is_overfit(*course)) return;  // training goes on: Overfit tells
  const Series& validation = course->validation;
  const std::size_t gained = last_gain(*course);
  const std::size_t since = validation.size() - 1 - gained;
  const double won = course->training.values.front() - course->training_now;
  const bool is_still = std::fabs(course->training_now - course->training_then) < kStill * std::fabs(won);
  if (since < kPatience || since < validation.size() / 2 || !(won > 0) || !is_still) return;
  const bool is_worse = course->rise() > std::max(3 * course->noise, 0.1 * std::fabs(course->best)) &&
                        course->rise() > 0.1 * won && course->best_at + 3 < validation.size();
  judgement.add(
      {.severity = is_worse ? Severity::kWarning : Severity::kInfo,
       .first_step = validation.steps[gained],
       .last_step = validation.steps.back(),
       .mode = run.is_boosting ? run.training_mode() : Mode::kEval,
       .tensors = loss_names(run),
       .value = static_cast<double>(since),
       .threshold = static_cast<double>(kPatience),
       .message = is_worse ? fmt::format("Nothing is learned since step {}, and validation has risen from {:.4g} to "
                                         "{:.4g}.",
                                         validation.steps[gained], course->best, course->last)
                           : fmt::format("Neither loss has improved since step {}: the last {} evaluations were no "
                                         "better ({:.4g}).",
                                         validation.steps[gained], since, course->last),
       .causes = {"the model has learned what it can from this data"},
       .advice = {"stop at the best validation loss", "lower the learning rate once validation stands still"},
       .evidence = evidence_of("validation loss", validation)});
}

// ---- SuspiciousValidation

struct Answers {
  double right = 0, total = 0;
  double share() const noexcept { return right / total; }
  double variance() const noexcept { return std::max(share() * (1 - share()), 0.5 / total) / total; }
};

// Of one mode, in the last third of the run.
Answers answers_of(const RunRecord& run, const History& predictions, Mode mode) {
  Answers answers;
  for (const ClassPairs& pairs : predictions.class_pairs) {
    if (run.steps[pairs.point].step.mode != mode || pairs.point < run.steps.size() * 2 / 3) continue;
    for (std::size_t row = 0; row < pairs.classes; ++row) {
      for (std::size_t column = 0; column < pairs.classes; ++column) {
        const auto count = static_cast<double>(pairs.counts[row * pairs.classes + column]);
        answers.total += count;
        if (row == column) answers.right += count;
      }
    }
  }
  return answers;
}

// Batches of evaluations that a training step had before: of those that were saved.
void look_for_same_batches(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastSame = 3;
  for (const History* input : run.of_role(Role::kModelInput)) {
    std::size_t same = 0;
    std::size_t all = 0;
    std::optional<std::size_t> first;
    bool are_several = false;
    for (std::size_t i = 0; i < input->size(); ++i) {
      if (run.steps[input->points[i]].step.mode != Mode::kEval) continue;
      ++all;
      are_several |= first && compare_batches(*input, *first, *input, i) == Likeness::kDifferent;
      for (std::size_t k = 0; k < input->size(); ++k) {
        if (run.steps[input->points[k]].step.mode != run.training_mode()) continue;
        if (compare_batches(*input, i, *input, k) != Likeness::kEqual) continue;
        ++same;
        if (!first) first = i;
        break;
      }
    }
    if (same < kLeastSame || same < all || !first) continue;
    // A single batch, learned by heart and looked at again, is how many a training is tried out.
    judgement.add(
        {.severity = are_several ? Severity::kWarning : Severity::kInfo,
         .first_step = run.steps[input->points[*first]].global_step,
         .last_step = run.steps[input->points.back()].global_step,
         .mode = Mode::kEval,
         .tensors = {input->name},
         .value = static_cast<double>(same),
         .threshold = 0,
         .message = fmt::format("All {} evaluation batches that were saved are batches of the training.", same),
         .causes = {"the evaluation is given the training data"},
         .advice = {"evaluate on data that no training step has seen"}});
    return;
  }
}

bool changes_with_mode(const std::string& type) {
  return type.find("dropout") != std::string::npos || type.find("norm") != std::string::npos;
}

// Training inputs that are changed on purpose (augmentation, noise) have other numbers than those of evaluations.
bool are_inputs_alike(const RunRecord& run) {
  for (const History* input : run.of_role(Role::kModelInput)) {
    const double training = median(run.series(*input, Column::kStd, run.training_mode()).values);
    const double evaluation = median(run.series(*input, Column::kStd, Mode::kEval).values);
    if (!(std::fabs(training - evaluation) < 0.05 * training)) return false;
  }
  return !run.of_role(Role::kModelInput).empty();
}

// Whether a metric of boosting need not get better any more, and that after next to no trees.
bool is_perfect(std::string_view metric, double value, std::int64_t round) {
  if (metric.ends_with("logloss")) return value < 0.03 && round <= 10;
  if (round > 1) return false;
  if (metric.ends_with("error")) return value <= 0;
  return (metric.ends_with("auc") || metric.ends_with("aucpr")) && value >= 0.99999;
}

void look_at_first_rounds(const RunRecord& run, Judgement& judgement) {
  for (const History& metric : run.histories) {
    const bool is_validation = metric.role.role == Role::kValidationLoss ||
                               (metric.role.role == Role::kMetric && metric.name.find("train") == std::string::npos);
    for (std::size_t i = 0; is_validation && i < metric.size(); ++i) {
      const StepPoint& point = run.steps[metric.points[i]];
      if (!is_perfect(metric.name, metric.at(Column::kMean, i), point.step.number)) continue;
      judgement.add({.severity = Severity::kInfo,
                     .first_step = point.global_step,
                     .last_step = point.global_step,
                     .mode = run.training_mode(),
                     .tensors = {metric.name},
                     .value = metric.at(Column::kMean, i),
                     .message = fmt::format("{} is next to perfect ({:.2g}) after {} {}.", metric.name,
                                            metric.at(Column::kMean, i), point.step.number + 1,
                                            point.step.number == 0 ? "round" : "rounds"),
                     .causes = {"the problem is that easy", "a feature holds the answer",
                                "the evaluation data is part of the training data"},
                     .advice = {"save feature_importance, and check how the most important feature comes about",
                                "check that the data sets have no rows in common"}});
      return;
    }
  }
}

void look_for_suspicion(const RunRecord& run, Judgement& judgement) {
  constexpr double kGap = 0.05;
  constexpr double kLeastAnswers = 100;
  if (run.is_boosting) return look_at_first_rounds(run, judgement);
  if (std::ranges::none_of(run.steps, [](const StepPoint& point) { return point.step.mode == Mode::kEval; })) {
    judgement.cannot("needs evaluations (steps of mode EVAL)");
    return;
  }
  const auto is_evaluated = [&](std::uint32_t point) { return run.steps[point].step.mode == Mode::kEval; };
  const bool has_batches = std::ranges::any_of(run.of_role(Role::kModelInput), [&](const History* input) {
    return std::ranges::any_of(input->points, is_evaluated);
  });
  const bool has_answers = std::ranges::any_of(run.of_role(Role::kPredictions), [&](const History* predictions) {
    return std::ranges::any_of(predictions->class_pairs, is_evaluated, &ClassPairs::point);
  });
  if (!has_batches && !has_answers) {
    judgement.cannot("needs inputs of evaluations (their statistics), or predictions and labels of a classifier there");
    return;
  }
  look_for_same_batches(run, judgement);
  if (!judgement.verdicts().empty() || std::ranges::any_of(run.layer_classes, changes_with_mode)) return;
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    const Answers training = answers_of(run, *predictions, run.training_mode());
    const Answers evaluation = answers_of(run, *predictions, Mode::kEval);
    if (training.total < kLeastAnswers || evaluation.total < kLeastAnswers) continue;
    const double gap = evaluation.share() - training.share();
    const double deviation = std::sqrt(training.variance() + evaluation.variance());
    if (!(gap > kGap) || !(gap > 5 * deviation)) continue;
    judgement.add(
        {.severity = are_inputs_alike(run) ? Severity::kWarning : Severity::kInfo,
         .first_step = run.steps[run.steps.size() * 2 / 3].global_step,
         .last_step = run.steps.back().global_step,
         .mode = Mode::kEval,
         .tensors = {predictions->name},
         .value = gap,
         .threshold = kGap,
         .message = fmt::format("Evaluations get {:.1f} % right, training steps {:.1f} %, and the model is the same in "
                                "both modes.",
                                100 * evaluation.share(), 100 * training.share()),
         .causes = {"labels of the training data are wrong, or those of the evaluation leak into its inputs",
                    "the two data sets are prepared in different ways"},
         .advice = {"check the labels of the training data", "check how the evaluation data was chosen"}});
    return;
  }
}

constexpr std::string_view kExplained[] = {"Overtraining"};

}  // namespace

const Detector kCheckOverfit = {
    .name = "Overfit", .question = "Does validation follow training?", .depth = 7, .look = look_for_overfit};
const Detector kCheckOvertraining = {
    .name = "Overtraining", .question = "Does anything improve any more?", .depth = 7, .look = look_for_overtraining};
const Detector kCheckSuspiciousValidation = {.name = "SuspiciousValidation",
                                             .question = "Does validation go better than it can?",
                                             .depth = 0,
                                             .explains = kExplained,
                                             .look = look_for_suspicion};

}  // namespace tornasole::rules
