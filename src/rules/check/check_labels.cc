// ClassImbalance: one class is much rarer than another, in all or in each batch. Confusion: a class that is never
// predicted.
//
// About classifiers alone: tokens of a language are as rare as they are. An untrained model predicts anything, so
// predictions are judged late, pooled over the last steps that were saved.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rules/check/detector.h"
#include "rules/check/optimizer_facts.h"

namespace tornasole::rules {
namespace {

constexpr double kImbalance = 10;
constexpr std::size_t kMostClasses = 100;
constexpr double kLeastSamples = 100;
constexpr double kSamplesPerClass = 20;

// Labels of a classifier: one per sample.
const History* class_labels(const RunRecord& run) {
  for (const History* labels : run.of_role(Role::kLabels)) {
    const std::size_t classes = labels->label_counts.size();
    if (classes >= 2 && classes <= kMostClasses && is_about_classes(labels->role.loss_class)) return labels;
  }
  return nullptr;
}

// What a loss is given, where a layer with weights computed it: scores of classes. Nothing for others: contrastive
// losses compare samples with each other, and the right answer may always be the first.
struct LayerScores {
  bool is_rearranged = false;  // between the layer and the loss: other units
};
std::optional<LayerScores> layer_scores(const RunRecord& run, const std::string& loss_class) {
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    if (predictions->role.loss_class != loss_class || predictions->size() == 0) continue;
    for (const History* output : run.of_role(Role::kLayerOutput)) {
      const std::string& type = output->role.layer_class;
      const bool has_weights = type.find("linear") != std::string::npos || type.find("dense") != std::string::npos;
      if (!has_weights) continue;
      const auto at = std::ranges::lower_bound(output->points, predictions->points.front());
      if (at == output->points.end() || *at != predictions->points.front()) continue;
      const auto row = static_cast<std::size_t>(at - output->points.begin());
      if (output->at(Column::kL2, row) != predictions->at(Column::kL2, 0)) continue;
      const double before = output->at(Column::kUnits, row);
      const double after = predictions->at(Column::kUnits, 0);
      // One score for each sample is often given without its second axis.
      const bool is_known = std::isfinite(before) && std::isfinite(after);
      return LayerScores{.is_rearranged = is_known && before != after && before != 1};
    }
  }
  return std::nullopt;
}

// A model of convolutions alone answers for every pixel.
bool answers_for_pixels(const RunRecord& run) {
  const auto has = [&](std::string_view kind) {
    return std::ranges::any_of(run.layer_classes,
                               [&](const std::string& type) { return type.find(kind) != std::string::npos; });
  };
  return has("conv") && !has("linear") && !has("dense");
}

// Whether labels are of samples: tokens and pixels have several for each sample, and are as rare as they are.
bool is_one_per_sample(const RunRecord& run, const History& labels) {
  constexpr std::size_t kPixelAxes = 3;
  if (answers_for_pixels(run) || (labels.shape && labels.shape->rank() >= kPixelAxes)) return false;
  for (const History* input : run.of_role(Role::kModelInput)) {
    for (std::size_t i = 0; i < input->size(); ++i) {
      const auto at = std::ranges::lower_bound(labels.points, input->points[i]);
      if (at == labels.points.end() || *at != input->points[i]) continue;
      const double count = labels.at(Column::kCount, static_cast<std::size_t>(at - labels.points.begin()));
      const double samples = input->at(Column::kSamples, i);
      if (samples > 1 && count > 1.5 * samples) return false;
    }
  }
  // Tells it, too, where a model takes its input by name, which is not saved: scores of tokens lie in another shape
  // before a loss, one token to a row, than as a layer computes them.
  const std::optional<LayerScores> scores = layer_scores(run, labels.role.loss_class);
  return !scores || !scores->is_rearranged;
}

bool reads_tokens(const RunRecord& run) {
  return std::ranges::any_of(run.layer_classes,
                             [](const std::string& type) { return type.find("embedding") != std::string::npos; });
}

// Labels of zero or one, one per sample: how often each came. Several per sample (tags, pixels) are rare on purpose.
std::vector<std::int64_t> binary_counts(const RunRecord& run, const History& labels) {
  if (answers_for_pixels(run)) return {};
  double zeros = 0;
  double ones = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (run.steps[labels.points[i]].step.mode != run.training_mode()) continue;
    const double count = labels.at(Column::kCount, i);
    const double sum = labels.at(Column::kMean, i) * count;
    const bool is_one_each = labels.at(Column::kUnits, i) == 1 || labels.at(Column::kUnits, i) == count;
    const bool is_binary = labels.at(Column::kMin, i) >= 0 && labels.at(Column::kMax, i) <= 1 &&
                           std::fabs(labels.at(Column::kZeros, i) + sum - count) < 1e-3 * count;
    if (!is_one_each || !is_binary) return {};
    zeros += labels.at(Column::kZeros, i);
    ones += sum;
  }
  // Labels that are all the same are no classes: they say which way a loss pulls, as in adversarial training.
  const std::vector<std::int64_t> counts = {std::llround(zeros), std::llround(ones)};
  return std::ranges::min(counts) > 0 ? counts : std::vector<std::int64_t>();
}

struct LabelCounts {
  const History* labels = nullptr;
  std::vector<std::int64_t> counts = {};  // by class
  double most = kImbalance;               // how many times the rarest class the most frequent one may have
};

// Trees split rare samples off where others would drown them, so that it takes more to do them harm. Every round has
// the same labels. One who weighs classes knows of them.
LabelCounts counted_by_boosting(const RunRecord& run) {
  constexpr double kImbalanceOfTrees = 100;
  const auto weight = run.hyperparameters.find("scale_pos_weight");
  if (weight != run.hyperparameters.end() && weight->second != 1) return {};
  const std::vector<const History*> labels = run.of_role(Role::kLabels);
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    if (labels.empty() || predictions->class_pairs.empty()) continue;
    const ClassPairs& pairs = predictions->class_pairs.back();
    if (pairs.classes < 2 || pairs.classes > kMostClasses) continue;
    LabelCounts counted{labels.front(), std::vector<std::int64_t>(pairs.classes), kImbalanceOfTrees};
    for (std::size_t i = 0; i < pairs.counts.size(); ++i) counted.counts[i / pairs.classes] += pairs.counts[i];
    // Labels that are all the same, and numbers of classes that nobody uses: TreeDepth tells what comes of the first.
    return std::ranges::min(counted.counts) > 0 ? counted : LabelCounts{};
  }
  return {};
}

LabelCounts counted_labels(const RunRecord& run) {
  if (run.is_boosting) return counted_by_boosting(run);
  if (const History* labels = class_labels(run)) return {labels, labels->label_counts};
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (is_contest(run)) break;
    if (labels->role.loss_class.find("bce") == std::string::npos && !labels->role.loss_class.starts_with("binary"))
      continue;
    std::vector<std::int64_t> counts = binary_counts(run, *labels);
    if (!counts.empty()) return {labels, std::move(counts)};
  }
  return {};
}

// How labels lie in the batches that trained: of all their variance, what lies between batches.
struct LabelOrder {
  std::size_t batches = 0;
  double total = 0, between = 0;
  double first = NAN;  // mean of the first batch
};
LabelOrder order_of(const RunRecord& run, const History& labels) {
  constexpr double kLeastBatch = 8;
  LabelOrder order;
  std::vector<double> means;
  double within = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (run.steps[labels.points[i]].step.mode != run.training_mode()) continue;
    const double deviation = labels.at(Column::kStd, i);
    if (!(labels.at(Column::kCount, i) >= kLeastBatch) || !std::isfinite(deviation)) return {};
    means.push_back(labels.at(Column::kMean, i));
    within += deviation * deviation;
  }
  if (means.empty()) return {};
  order.batches = means.size();
  order.first = means.front();
  const auto count = static_cast<double>(means.size());
  const double center = std::accumulate(means.begin(), means.end(), 0.0) / count;
  for (const double mean : means) order.between += (mean - center) * (mean - center) / count;
  order.total = order.between + within / count;
  return order;
}

// Batches that hold one class each: the data is sorted, or there is one class only. Shuffled batches hold next to all
// the variance there is.
bool look_at_order(const RunRecord& run, Judgement& judgement) {
  constexpr std::size_t kLeastBatches = 4;
  constexpr double kMostBetween = 0.8;
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (!is_about_classes(labels->role.loss_class) || labels->label_counts.size() > kMostClasses) continue;
    const LabelOrder order = order_of(run, *labels);
    if (order.batches < kLeastBatches) continue;
    const bool is_one = order.total == 0;
    const bool is_sorted = order.between > kMostBetween * order.total;
    if (!is_one && !is_sorted) continue;
    if (is_one && !layer_scores(run, labels->role.loss_class)) continue;
    judgement.add(
        {.severity = Severity::kWarning,
         .first_step = run.steps[labels->points.front()].global_step,
         .last_step = run.steps[labels->points.back()].global_step,
         .mode = run.training_mode(),
         .tensors = {labels->name},
         .value = is_one ? 1 : order.between / order.total,
         .threshold = kMostBetween,
         .message = is_one ? fmt::format("All labels of the {} batches that were saved are {:.0f}.", order.batches,
                                         order.first)
                           : fmt::format("Labels hardly differ within a batch, and much from batch to batch "
                                         "({:.0f} % of their variance): the data is sorted by class.",
                                         100 * order.between / order.total),
         .causes = {"the data is sorted by class and not shuffled", "labels were lost when the data was read"},
         .advice = {"shuffle the training data (shuffle=True)", "print the labels of a few batches"},
         .evidence = evidence_of("mean of " + labels->name, run.series(*labels, Column::kMean))});
    return true;
  }
  return false;
}

void look_at_labels(const RunRecord& run, Judgement& judgement) {
  if (look_at_order(run, judgement)) return;
  const auto [labels, counts, most] = counted_labels(run);
  if (labels == nullptr) {
    judgement.cannot("needs the labels of a loss over classes (statistic classes, or their values)");
    return;
  }
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  if (total < kLeastSamples || (reads_tokens(run) && counts.size() > 20) || !is_one_per_sample(run, *labels)) return;
  const auto largest = std::ranges::max_element(counts);
  const auto smallest = std::ranges::min_element(counts);
  // What a rare class could be by chance counts in its favour.
  const auto rare = static_cast<double>(*smallest);
  const double ratio = static_cast<double>(*largest) / (rare + 3 * std::sqrt(rare) + 1);
  if (!(ratio > most)) return;
  const auto& points = labels->points;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = run.steps[points.front()].global_step,
       .last_step = run.steps[points.back()].global_step,
       .mode = run.training_mode(),
       .tensors = {labels->name},
       .value = static_cast<double>(*largest) / std::max(1.0, rare),
       .threshold = most,
       .message = fmt::format("Class {} has {} of {:.0f} labels that were seen, class {} has {}.",
                              largest - counts.begin(), *largest, total, smallest - counts.begin(), *smallest),
       .causes = {"the data holds few samples of some classes", "the sampler leaves classes out"},
       .advice = {"weight the loss by class, or draw rare classes more often",
                  "judge the model class by class, not by its accuracy"}});
}

void look_at_pairs(const RunRecord& run, Judgement& judgement) {
  const History* scores = nullptr;
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    if (!predictions->class_pairs.empty() && predictions->class_pairs.back().classes <= kMostClasses)
      scores = predictions;
  }
  if (scores == nullptr || reads_tokens(run)) {
    judgement.cannot("needs predictions and labels of a classifier (statistic classes, or their values)");
    return;
  }
  if (is_contest(run)) {
    judgement.cannot("several optimizers: in a contest, one that tells right from wrong may well be fooled");
    return;
  }
  // The last third of the run.
  const std::uint32_t late = static_cast<std::uint32_t>(run.steps.size() * 2 / 3);
  std::size_t classes = 0;
  for (const ClassPairs& pairs : scores->class_pairs) classes = std::max(classes, pairs.classes);
  std::vector<std::int64_t> labelled(classes);
  std::vector<std::int64_t> predicted(classes);
  std::vector<std::int64_t> right(classes);
  std::optional<std::uint32_t> first;
  for (const ClassPairs& pairs : scores->class_pairs) {
    if (pairs.point < late) continue;
    if (!first) first = pairs.point;
    for (std::size_t row = 0; row < pairs.classes; ++row) {
      for (std::size_t column = 0; column < pairs.classes; ++column) {
        const std::int64_t count = pairs.counts[row * pairs.classes + column];
        labelled[row] += count;
        predicted[column] += count;
        if (row == column) right[row] += count;
      }
    }
  }
  const auto total = static_cast<double>(std::accumulate(labelled.begin(), labelled.end(), std::int64_t{0}));
  if (!first || total < std::max(kLeastSamples, kSamplesPerClass * static_cast<double>(classes))) {
    judgement.cannot("too few predictions were saved in the last third of the run");
    return;
  }
  std::vector<std::string> never;
  for (std::size_t k = 0; k < classes; ++k) {
    if (static_cast<double>(labelled[k]) >= kSamplesPerClass && predicted[k] == 0)
      never.push_back(fmt::format("{}", k));
  }
  if (never.empty()) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = run.steps[*first].global_step,
       .last_step = run.steps[scores->points.back()].global_step,
       .mode = run.training_mode(),
       .tensors = {scores->name},
       .value = static_cast<double>(never.size()),
       .threshold = 0,
       .message = fmt::format("Of {} classes, {} {} never predicted in the last {:.0f} samples: class {}.", classes,
                              never.size(), never.size() == 1 ? "is" : "are", total, names_text(never, 5)),
       .causes = {"the labels are unbalanced", "the model has collapsed to few answers",
                  "the learning rate is too high or too low to learn the class"},
       .advice = {"look at the labels of the class", "weight the loss by class"}});
}

constexpr std::string_view kExplained[] = {"InitialLoss", "ConstantOutput",    "LossSpike", "OscillatingLoss",
                                           "Confusion",   "LossNotDecreasing", "Plateau"};

}  // namespace

const Detector kCheckClassImbalance = {.name = "ClassImbalance",
                                       .question = "Are classes balanced?",
                                       .depth = 0,
                                       .explains = kExplained,
                                       .look = look_at_labels};
const Detector kCheckConfusion = {
    .name = "Confusion", .question = "Is every class predicted?", .depth = 7, .look = look_at_pairs};

}  // namespace tornasole::rules
