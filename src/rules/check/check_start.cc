// PoorWeightInitialization: weights that start where no training can begin well. InitialLoss: a loss that starts far
// above that of a guess.
//
// Branches, heads and biases that start at zero are healthy, and so is a scale that the training copes with: what is
// equal from unit to unit never is, and a scale is judged by what the loss does.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

// The deviation of a weight times the root of its fan-in: about 0.6 to 1.4 for the usual ways to start.
constexpr double kLargeGain = 5;
constexpr double kSmallGain = 0.03;
constexpr double kHugeGain = 20;
constexpr double kHugeLoss = 4;
constexpr double kMuchLeft = 0.5;  // of the first loss

struct Start {
  const History* weight = nullptr;
  std::int64_t step = 0;
  double gain = NAN;
  bool is_zero = false, is_constant = false, has_equal_units = false;
};

std::int64_t units_of(const RunRecord& run, const Shape& shape) { return shape[run.units_last ? shape.rank() - 1 : 0]; }

double fan_in(const RunRecord& run, const History& weight) {
  const Shape& shape = weight.shape ? *weight.shape : weight.role.shape;
  if (shape.rank() < 2) return NAN;
  const std::int64_t units = units_of(run, shape);
  return units <= 0 ? NAN : static_cast<double>(shape.element_count()) / static_cast<double>(units);
}

// Whether the first weights that are known tell how they started: before the first optimizer step, or after one that
// changed little as the next one did.
bool is_start_known(const RunRecord& run, const History& weight) {
  if (!run.weights_after_step) return true;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double update = weight.at(Column::kUpdate, i);
    if (!std::isnan(update)) return update < 0.3 * weight.at(Column::kBefore, i);
  }
  return false;
}

// Rows that are all the same do not differ from their mean: told by statistics where the value is not known.
bool has_equal_units(const RunRecord& run, const History& weight) {
  constexpr double kRounding = 1e-6;
  if (weight.at(Column::kEqualUnits, 0) > 0.5) return true;
  const Shape& shape = weight.shape ? *weight.shape : weight.role.shape;
  if (run.units_last || shape.rank() < 2 || shape[0] < 2) return false;
  return weight.at(Column::kSampleVariance, 0) < kRounding;
}

// Whether units that started equal have parted since: another parameter, or chance, made the difference.
bool have_parted(const RunRecord& run, const History& weight) {
  constexpr double kRounding = 1e-6;
  for (std::size_t i = weight.size(); i-- > 1;) {
    if (weight.at(Column::kStd, i) <= kRounding * std::fabs(weight.at(Column::kMean, i))) return false;
    if (const double equal = weight.at(Column::kEqualUnits, i); std::isfinite(equal)) return equal == 0;
    const double variance = weight.at(Column::kSampleVariance, i);
    if (!run.units_last && std::isfinite(variance)) return variance > kRounding;
  }
  return false;
}

// What a layer multiplies its inputs by, as frameworks name it. Others may scale or blur such a weight, and are equal
// for all units on purpose.
bool is_own_weight(const History& weight) {
  const std::string_view name(weight.name);
  const std::string_view last = name.substr(name.find_last_of("./") + 1);
  return last.ends_with("weight") || last.find("kernel") != std::string_view::npos ||
         last.find("weight_ih") != std::string_view::npos || last.find("weight_hh") != std::string_view::npos;
}

// One unit is equal to itself alone.
bool has_one_unit(const RunRecord& run, const History& weight) {
  const Shape& shape = weight.shape ? *weight.shape : weight.role.shape;
  return shape.rank() >= 2 && units_of(run, shape) == 1;
}

bool stays_zero(const RunRecord& run, const History& weight) {
  std::int64_t optimizer_steps = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (weight.at(Column::kMax, i) != 0 || weight.at(Column::kMin, i) != 0) return false;
    optimizer_steps = run.steps[weight.points[i]].optimizer_step;
  }
  return optimizer_steps >= 3;
}

// Whether zeros may be what keeps a weight where it is: a gradient that arrives would move it, were it not for the
// optimizer; and where none was seen, other parameters show that there are some.
bool is_stuck_by_itself(const RunRecord& run, const History& weight) {
  const auto arrives = [&](const History* gradient) {
    for (std::size_t i = 0; gradient != nullptr && i < gradient->size(); ++i) {
      if (gradient->at(Column::kL2, i) > 0) return true;
    }
    return false;
  };
  if (arrives(run.find("gradient/" + weight.name))) return false;
  if (!run.of_role(Role::kGradient).empty()) return true;
  for (const Role role : {Role::kWeight, Role::kBias}) {
    const auto has_moved = [](const History* parameter) {
      for (std::size_t i = 1; i < parameter->size(); ++i) {
        if (parameter->at(Column::kUpdate, i) > 0 || parameter->at(Column::kL2, i) != parameter->at(Column::kL2, 0)) {
          return true;
        }
      }
      return false;
    };
    if (std::ranges::any_of(run.of_role(role), has_moved)) return true;
  }
  return false;
}

std::vector<Start> starts_of(const RunRecord& run) {
  std::vector<Start> starts;
  for (const History* weight : run.of_role(Role::kWeight)) {
    if (!weight->role.requires_grad || weight->size() == 0 || run.steps[weight->points[0]].optimizer_step > 0) continue;
    const double mean = weight->at(Column::kMean, 0);
    const double deviation = weight->at(Column::kStd, 0);
    if (std::isnan(mean) || std::isnan(deviation)) continue;
    Start start{.weight = weight, .step = run.steps[weight->points[0]].global_step};
    start.is_constant = deviation <= 1e-6 * std::fabs(mean);
    start.is_zero = start.is_constant && mean == 0;
    start.has_equal_units = has_equal_units(run, *weight);
    // Rows of an embedding are looked up, not added up.
    if (weight->role.layer_class.find("embedding") == std::string::npos)
      start.gain = is_start_known(run, *weight) ? deviation * std::sqrt(fan_in(run, *weight)) : NAN;
    starts.push_back(start);
  }
  return starts;
}

Verdict verdict_of(const RunRecord& run, const std::vector<const Start*>& found, std::string message) {
  std::vector<std::string> names;
  for (const Start* start : found) names.push_back(start->weight->name);
  const Series losses = run.losses(run.training_mode());
  return {.severity = Severity::kWarning,
          .first_step = found.front()->step,
          .last_step = found.front()->step,
          .mode = run.training_mode(),
          .tensors = std::move(names),
          .message = std::move(message),
          .evidence = evidence_of("loss", losses)};
}

std::vector<std::string> names_of(const std::vector<const Start*>& found) {
  std::vector<std::string> names;
  for (const Start* start : found) names.push_back(start->weight->name);
  return names;
}

bool look_for_symmetry(const RunRecord& run, const std::vector<Start>& starts, Judgement& judgement) {
  std::vector<const Start*> alike;
  std::vector<const Start*> zero;
  for (const Start& start : starts) {
    if (start.is_zero) zero.push_back(&start);
    const bool is_alike = (start.has_equal_units || start.is_constant) && !has_one_unit(run, *start.weight);
    if (start.is_zero || !is_alike) continue;
    if (is_own_weight(*start.weight) || !have_parted(run, *start.weight)) alike.push_back(&start);
  }
  // A layer may start at zero where others make it move: one that never does, while nothing is learned, is stuck.
  const bool is_all_zero = starts.size() > 1 && zero.size() == starts.size();
  const bool is_stuck = !is_loss_falling(run);
  std::erase_if(zero, [&](const Start* start) {
    return !is_all_zero && !(is_stuck && stays_zero(run, *start->weight) && is_stuck_by_itself(run, *start->weight));
  });
  const bool are_zero = !zero.empty();
  if (are_zero) alike = zero;
  if (alike.empty()) return false;
  Verdict verdict = verdict_of(run, alike,
                               fmt::format("{} {} with {}: the units of a layer compute the same and learn the same.",
                                           names_text(names_of(alike), 2), alike.size() == 1 ? "starts" : "start",
                                           are_zero ? "nothing but zeros" : "equal weights for every unit"));
  verdict.severity = Severity::kError;
  verdict.causes = {"weights were set to one number instead of being drawn at random"};
  verdict.advice = {"draw weights at random (He or Glorot scaling); only biases and last layers may start at zero"};
  judgement.add(std::move(verdict));
  return true;
}

// Whether the loss begins far above that of a guess: of the labels, or of as many classes as any layer has units.
bool starts_high(const RunRecord& run) {
  const Series losses = run.losses(run.training_mode());
  std::optional<double> guess = trivial_loss(run);
  if (!guess && is_about_classes(run.loss_class())) {
    for (const History* weight : run.of_role(Role::kWeight)) {
      const Shape& shape = weight->shape ? *weight->shape : weight->role.shape;
      if (shape.rank() < 2 || units_of(run, shape) < 1) continue;
      guess = std::max(guess.value_or(0), std::log(static_cast<double>(units_of(run, shape))));
    }
  }
  return guess && !losses.empty() && losses.values.front() > kHugeLoss * *guess + 1;
}

// Layers each of which makes its inputs a little too large make them huge together.
bool look_at_chain(const RunRecord& run, const std::vector<Start>& starts, Judgement& judgement) {
  constexpr double kGain = 2;
  constexpr std::size_t kLeast = 4;
  constexpr double kBeyond = 1e3;  // times the loss of a guess
  std::vector<const Start*> chain;
  double product = 1;
  for (const Start& start : starts) {
    if (!(start.gain > kGain)) continue;
    chain.push_back(&start);
    product *= start.gain;
  }
  const Series losses = run.losses(run.training_mode());
  const double guess = trivial_loss(run).value_or(NAN);
  if (chain.size() < kLeast || losses.empty() || !(losses.values.front() > kBeyond * guess)) return false;
  Verdict verdict = verdict_of(
      run, chain,
      fmt::format("{} start too large: {} layers make what they are given about {:.2g} times as large together, and "
                  "the loss begins at {:.3g} where a constant answer costs {:.3g}.",
                  names_text(names_of(chain), 2), chain.size(), product, losses.values.front(), guess));
  verdict.value = product;
  verdict.threshold = kBeyond;
  verdict.causes = {"weights are drawn with a deviation that does not fit the number of inputs"};
  verdict.advice = {"draw weights with a deviation of about one over the root of the number of inputs",
                    "normalise between layers"};
  judgement.add(std::move(verdict));
  return true;
}

void look_at_scale(const RunRecord& run, const std::vector<Start>& starts, Judgement& judgement) {
  std::vector<const Start*> large;
  std::vector<const Start*> small;
  for (const Start& start : starts) {
    if (start.gain > kLargeGain) large.push_back(&start);
    if (!start.is_zero && start.gain < kSmallGain) small.push_back(&start);
  }
  if (large.empty() && look_at_chain(run, starts, judgement)) return;
  const bool is_high = starts_high(run);
  const bool is_harmed = has_loss_suffered(run) || !is_loss_falling(run);
  const auto worst_of_large = std::ranges::max_element(large, {}, &Start::gain);
  // Beyond all measure, a loss that falls by some only shows what the other layers learn.
  const bool is_held = !large.empty() && (*worst_of_large)->gain > kHugeGain && loss_left(run).value_or(0) > kMuchLeft;
  if (!large.empty() && (is_harmed || is_high || is_held)) {
    const Start& worst = **worst_of_large;
    Verdict verdict = verdict_of(
        run, large,
        fmt::format("{} {} far too large: the outputs of {} are about {:.2g} times their "
                    "inputs{}.",
                    names_text(names_of(large), 2), large.size() == 1 ? "starts" : "start", worst.weight->name,
                    worst.gain, is_high ? ", and the loss begins far above that of a guess" : ""));
    verdict.value = worst.gain;
    verdict.threshold = kLargeGain;
    verdict.causes = {"weights are drawn with a deviation that does not fit the number of inputs"};
    verdict.advice = {"draw weights with a deviation of about one over the root of the number of inputs"};
    judgement.add(std::move(verdict));
    return;
  }
  // One small layer is a choice; a chain of them lets nothing through.
  if (small.size() >= 2 && small.size() * 2 >= starts.size() && is_harmed) {
    const Start& worst = **std::ranges::min_element(small, {}, &Start::gain);
    Verdict verdict = verdict_of(
        run, small,
        fmt::format("{} start far too small: each passes on {:.2g} of its input or less, and the loss does not fall.",
                    names_text(names_of(small), 2), kSmallGain));
    verdict.value = worst.gain;
    verdict.threshold = kSmallGain;
    verdict.causes = {"weights are drawn with a deviation that does not fit the number of inputs"};
    verdict.advice = {"draw weights with a deviation of about one over the root of the number of inputs",
                      "normalise between layers"};
    judgement.add(std::move(verdict));
  }
}

void look_at_weights(const RunRecord& run, Judgement& judgement) {
  const std::vector<Start> starts = starts_of(run);
  if (starts.empty()) {
    judgement.cannot("needs the weights, or their mean and deviation, before the first optimizer step");
    return;
  }
  if (!look_for_symmetry(run, starts, judgement)) look_at_scale(run, starts, judgement);
}

// Of the labels that came, and of the scores where they are known.
double most_classes(const RunRecord& run) {
  double most = 1;
  for (const History* labels : run.of_role(Role::kLabels)) {
    most = std::max(most, static_cast<double>(labels->label_counts.size()));
  }
  return most;
}

void look_at_first_loss(const RunRecord& run, Judgement& judgement) {
  const Series losses = run.losses(run.training_mode());
  const std::optional<double> trivial = trivial_loss(run);
  if (!trivial || losses.empty() || !is_about_classes(run.loss_class())) {
    judgement.cannot("needs one loss over classes and its labels (statistic classes)");
    return;
  }
  if (run.steps.front().optimizer_step > 0) {
    judgement.cannot("the first steps of the training were not saved");
    return;
  }
  const double loss = losses.values.front();
  // An untrained model gives all classes even chances, however often each comes.
  const double guess = std::max(*trivial, std::log(most_classes(run)));
  const double limit = kHugeLoss * guess + 1;
  // Layers that are frozen have learned before, and may have learned other answers.
  const auto weights = run.of_role(Role::kWeight);
  const bool is_trained = std::ranges::any_of(weights, [](const History* w) { return !w->role.requires_grad; });
  if (!(loss > limit) || is_trained) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = losses.steps.front(),
       .last_step = losses.steps.front(),
       .mode = run.training_mode(),
       .tensors = {run.of_role(Role::kLoss).front()->name},
       .value = loss,
       .threshold = limit,
       .message = fmt::format("The loss begins at {:.3g}; guessing costs {:.3g}: the untrained model is sure "
                              "of wrong answers.",
                              loss, guess),
       .causes = {"weights of the last layer start too large", "inputs are not scaled",
                  "a sum over samples is used where a mean is meant"},
       .advice = {"scale inputs", "start the last layer small: the first loss should be near that of a guess"},
       .evidence = evidence_of("loss", losses)});
}

// A first loss that is too high is seldom more than the first sign of something else.
constexpr std::string_view kExplained[] = {"LossNotDecreasing"};

}  // namespace

const Detector kCheckPoorStart = {.name = "PoorWeightInitialization",
                                  .question = "Do weights start where training can begin?",
                                  .depth = 0,
                                  .look = look_at_weights};
const Detector kCheckInitialLoss = {.name = "InitialLoss",
                                    .question = "Does the loss start near that of a guess?",
                                    .depth = 1,
                                    .explains = kExplained,
                                    .look = look_at_first_loss};

}  // namespace tornasole::rules
