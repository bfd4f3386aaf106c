// LearningRateSanity: how far one optimizer step moves the weights, relative to their size.
//
// Large steps are a verdict only if the loss suffers: Adam's first steps move small weights by several percent in
// every healthy run. Small ones only if the run as a whole gets nowhere: at the end of a schedule they are meant.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "rules/check/detector.h"
#include "rules/check/learning_rate_schedule.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"
#include "rules/check/output_facts.h"

namespace tornasole::rules {
namespace {

constexpr double kHigh = 0.1;
constexpr double kRuinous = 1.0;
constexpr double kGrown = 4;      // times the first size of the weights
constexpr double kThrown = 4;     // times the first loss
constexpr double kThrownOff = 2;  // likewise, where a step was ruinous
constexpr double kMuch = 0.75;    // of the first loss
constexpr double kHalf = 0.5;     // likewise
constexpr double kLow = 1e-6;
constexpr double kLeastJourney = 0.01;
constexpr double kShortJourney = 0.001;
constexpr std::size_t kLeastLosses = 20;

struct Steps {
  Series median;                   // over tensors, of the relative change by one optimizer step
  std::vector<double> sizes = {};  // likewise, of the size relative to the first one
  std::vector<std::string> tensors = {};
};

// Whether a weight is zero by construction, as branches and tables may be that start without a say.
bool starts_at_zero(const History& weight) {
  const auto known = std::ranges::find_if(
      weight.rows, [](const auto& row) { return !std::isnan(row[static_cast<std::size_t>(Column::kBefore)]); });
  return known != weight.rows.end() && (*known)[static_cast<std::size_t>(Column::kBefore)] == 0;
}

// What one optimizer step changes of a weight, as a share of it; NaN if that is not known.
double ratio_at(const History& weight, std::size_t row) {
  const double before = weight.at(Column::kBefore, row);
  const double update = weight.at(Column::kUpdate, row);
  if (!(before > 0) || !std::isfinite(update)) return NAN;
  return update / before / std::max(1.0, weight.at(Column::kGap, row));
}

// The row at which a weight is not stepped but made anew: as large as before and as far from it as two draws are from
// each other, while all its steps are small. Libraries do so once they tried out a batch.
std::optional<std::size_t> row_made_anew(const History& weight) {
  constexpr double kNear = 1.2, kFar = 1.6;  // around the root of 2
  constexpr double kSame = 0.05;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double ratio = ratio_at(weight, i);
    if (!(ratio > kHigh)) continue;
    if (found || ratio < kNear || ratio > kFar) return std::nullopt;
    found = i;
  }
  if (!found) return std::nullopt;
  const double before = weight.at(Column::kBefore, *found);
  for (std::size_t i = *found + 1; i < weight.size(); ++i) {
    const double after = weight.at(Column::kBefore, i);
    if (std::isfinite(after)) return std::abs(after / before - 1) < kSame ? found : std::nullopt;
  }
  return std::nullopt;
}

Steps relative_steps(const RunRecord& run) {
  std::vector<const History*> weights = trained_weights(run);
  // What starts at zero is small for long, and every step large beside it: others tell what steps are like.
  const auto is_from_zero = [](const History* weight) { return starts_at_zero(*weight); };
  if (!std::ranges::all_of(weights, is_from_zero)) std::erase_if(weights, is_from_zero);
  std::map<std::uint32_t, std::vector<double>> by_point, sizes;
  Steps steps;
  for (const History* weight : weights) {
    double first = 0;
    const std::optional<std::size_t> made_anew = row_made_anew(*weight);
    for (std::size_t i = 0; i < weight->size(); ++i) {
      const double ratio = ratio_at(*weight, i);
      if (std::isnan(ratio) || made_anew == i) continue;
      by_point[weight->points[i]].push_back(ratio);
      const double before = weight->at(Column::kBefore, i);
      if (first == 0) first = before;
      sizes[weight->points[i]].push_back(before / first);
    }
    if (first > 0) steps.tensors.push_back(weight->name);
  }
  for (auto& [point, ratios] : by_point) {
    steps.median.steps.push_back(run.steps[point].global_step);
    steps.median.optimizer_steps.push_back(run.steps[point].optimizer_step);
    steps.median.values.push_back(median(std::move(ratios)));
    steps.sizes.push_back(median(std::move(sizes[point])));
  }
  return steps;
}

// Each tree answers what is left to explain: more than all of it is taken back by the next one, and more than twice as
// much grows from round to round.
void look_at_shrinkage(const RunRecord& run, Judgement& judgement) {
  const Series losses = run.losses(run.training_mode());
  double rate = std::nan("");
  for (const char* name : {"eta", "learning_rate"}) {
    if (const auto found = run.hyperparameters.find(name); found != run.hyperparameters.end()) rate = found->second;
  }
  if (std::isnan(rate) || losses.size() < 3) {
    judgement.cannot("needs eta (collection hyperparameters) and the training loss at three rounds or more");
    return;
  }
  constexpr double kAll = 1;
  constexpr double kTwice = 2;
  // Of one whole answer, taken by all rounds together: the model is where it began.
  constexpr double kLeastTaken = 0.05;
  const auto rounds = static_cast<double>(losses.steps.back() + 1);
  const bool is_new = losses.steps.front() == 0;  // a model that is continued has taken more than that before
  if (is_new && rate >= 0 && rate * rounds < kLeastTaken) {
    judgement.add({.severity = Severity::kWarning,
                   .first_step = losses.steps.front(),
                   .last_step = losses.steps.back(),
                   .mode = run.training_mode(),
                   .tensors = {"hyperparameters/eta"},
                   .value = rate,
                   .threshold = kLeastTaken / rounds,
                   .message = fmt::format("eta is {:.3g}: {:.0f} rounds together take {:.2g} of what one tree "
                                          "answers. The learning rate is too low.",
                                          rate, rounds, rate * rounds),
                   .causes = {"the learning rate is too low"},
                   .advice = {"use an eta of 0.01 to 0.3"},
                   .evidence = evidence_of("loss", losses)});
    return;
  }
  std::size_t rises = 0;
  for (std::size_t i = 1; i < losses.size(); ++i) rises += losses.values[i] > losses.values[i - 1] ? 1U : 0U;
  const bool goes_up = 4 * rises >= losses.size() - 1;
  if (!(rate > kAll) || !(has_loss_suffered(run) || goes_up)) return;
  judgement.add(
      {.severity = rate > kTwice ? Severity::kError : Severity::kWarning,
       .first_step = losses.steps.front(),
       .last_step = losses.steps.back(),
       .mode = run.training_mode(),
       .tensors = {"hyperparameters/eta"},
       .value = rate,
       .threshold = kAll,
       .message = fmt::format("eta is {:.3g}: every tree goes further than the answer it was fitted to, and the "
                              "training loss is {:.3g} after {:.3g} at first.",
                              rate, losses.values.back(), losses.values.front()),
       .causes = {"the learning rate is too high"},
       .advice = {"use an eta of 0.3 or less"},
       .evidence = evidence_of("loss", losses)});
}

// Decay that takes off what a hundred steps have learned before the next hundred. It is to blame only where no step
// goes further than decay alone does: weights that a high rate threw far away decay as well.
bool look_at_decay(const RunRecord& run, const Steps& steps, bool is_lost, Judgement& judgement) {
  constexpr double kForgets = 0.01;
  constexpr double kHeld = 1.5;  // times the first size
  const double off = decay_of_a_step(run);
  const bool is_shrinking = steps.sizes.back() < 1 && *std::ranges::max_element(steps.sizes) < kHeld;
  if (!(off > kForgets) || !is_shrinking || !(is_lost || loss_left(run).value_or(0) > kHalf)) return false;
  judgement.add({.severity = is_lost ? Severity::kError : Severity::kWarning,
                 .first_step = steps.median.steps.front(),
                 .last_step = steps.median.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = steps.tensors,
                 .value = off,
                 .threshold = kForgets,
                 .message = fmt::format("Weight decay ({:g}) takes {:.2g} of the weights off at every step, and the "
                                        "loss {}: it is too strong.",
                                        run.weight_decay, off, is_lost ? "is no better at the end" : "falls by little"),
                 .causes = {"weight decay that outweighs the loss"},
                 .advice = {"divide weight decay by 10 until the loss falls",
                            "decay times learning rate should be far below 0.001"},
                 .evidence = evidence_of("relative change of the weights by a step", steps.median)});
  return true;
}

// Whether steps are too large, and what came of it, as the end of a sentence.
struct Excess {
  bool is_lost = false;    // no better than at first, or than a guess
  bool is_wild = false;    // every step large, or weights that were thrown away and grew, and little won
  bool is_thrown = false;  // far above its start before it fell
  bool is_any() const noexcept { return is_lost || is_wild || is_thrown; }
};
// Whether predictions, which differed from sample to sample, became the same for all after a large step.
bool has_collapsed(const RunRecord& run, const Steps& steps) {
  const OutputVariance output = output_variance(run);
  if (output.constant == nullptr || output.onset == 0) return false;
  const auto first = std::ranges::find_if(steps.median.values, [](double ratio) { return ratio > kHigh; });
  if (first == steps.median.values.end()) return false;
  const auto at = static_cast<std::size_t>(first - steps.median.values.begin());
  return steps.median.steps[at] <= output.variance.steps[output.onset];
}

// Whether it broke while it fell: what broke it is not that steps are large.
bool broke_while_falling(const RunRecord& run) {
  constexpr std::size_t kLast = 3;
  const Series losses = run.losses(run.training_mode());
  const auto broken = std::ranges::find_if(losses.values, [](double value) { return !std::isfinite(value); });
  if (broken == losses.values.end() || broken - losses.values.begin() < 2 * static_cast<std::ptrdiff_t>(kLast)) {
    return false;
  }
  return median({broken - static_cast<std::ptrdiff_t>(kLast), broken}) < kHalf * losses.values.front();
}

// Whether hardly a step was taken before it broke.
bool broke_at_once(const RunRecord& run) {
  constexpr std::ptrdiff_t kSteps = 3;
  const Series losses = run.losses(run.training_mode());
  const auto broken = std::ranges::find_if(losses.values, [](double value) { return !std::isfinite(value); });
  return broken != losses.values.end() && broken - losses.values.begin() <= kSteps;
}

Excess excess_of(const RunRecord& run, const Steps& steps) {
  const std::vector<double>& ratios = steps.median.values;
  const auto high = static_cast<std::size_t>(std::ranges::count_if(ratios, [](double r) { return r > kHigh; }));
  if (high == 0) return {};
  const bool is_ruinous = std::ranges::any_of(ratios, [](double ratio) { return ratio > kRuinous; });
  const bool is_grown = *std::ranges::max_element(steps.sizes) > kGrown;
  const bool is_large = high >= std::min<std::size_t>(3, ratios.size()) || is_ruinous || is_grown;
  if (!is_ruinous && !is_grown && broke_while_falling(run)) return {};
  const double left = loss_left(run).value_or(0);
  const double peak = loss_peak(run);
  Excess excess;
  // A step that throws the weights away may leave a model that comes back to guessing, below where it began; and where
  // every step is large, one that learns the little that such weights can.
  excess.is_thrown = (is_ruinous && peak > kThrownOff) || ((is_grown || 2 * high >= ratios.size()) && peak > kThrown);
  excess.is_lost = (is_large && has_loss_suffered(run)) || ((is_ruinous || is_grown) && is_loss_of_a_guess(run)) ||
                   (excess.is_thrown && left > kHalf) || has_collapsed(run, steps);
  excess.is_wild = is_ruinous && ((high == ratios.size() && left > kMuch) || (is_grown && left > kHalf));
  return excess;
}

std::string consequence_text(const RunRecord& run, const Excess& excess) {
  if (excess.is_lost) return "is no better for it";
  if (excess.is_wild) return "falls by little";
  return fmt::format("was thrown to {:.2g} times its start before it fell", loss_peak(run));
}

void blame_high_rate(const RunRecord& run, const Steps& steps, const Excess& excess, Judgement& judgement) {
  const std::vector<double>& ratios = steps.median.values;
  const auto first = std::ranges::find_if(ratios, [](double ratio) { return ratio > kHigh; }) - ratios.begin();
  const double largest = *std::ranges::max_element(ratios);
  judgement.add({.severity = excess.is_lost || excess.is_wild ? Severity::kError : Severity::kWarning,
                 .first_step = steps.median.steps[static_cast<std::size_t>(first)],
                 .last_step = steps.median.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = steps.tensors,
                 .value = largest,
                 .threshold = kHigh,
                 .message = fmt::format("One optimizer step changes the weights by up to {:.2g} of their size, and the "
                                        "loss {}: {}.",
                                        largest, consequence_text(run, excess), high_rate_text(run)),
                 .causes = {"the learning rate or the momentum is too high", "no warm-up", "gradients are not clipped"},
                 .advice = {"divide the learning rate by 10 until a step changes the weights by about 0.001",
                            "warm the learning rate up over the first steps"},
                 .evidence = evidence_of("relative change of the weights by a step", steps.median)});
}

// The root mean square of what one optimizer step changes an element by.
double step_of_element(const History& weight, std::size_t row) {
  return weight.at(Column::kUpdate, row) / std::sqrt(weight.at(Column::kCount, row)) /
         std::max(1.0, weight.at(Column::kGap, row));
}

// That of an element itself, in weights that do not start at zero: what becomes of those that do is measured by it.
double usual_element(const RunRecord& run) {
  std::vector<double> sizes;
  for (const History* weight : trained_weights(run)) {
    if (starts_at_zero(*weight)) continue;
    std::vector<double> own;
    for (std::size_t i = 0; i < weight->size(); ++i) {
      own.push_back(weight->at(Column::kBefore, i) / std::sqrt(weight->at(Column::kCount, i)));
    }
    sizes.push_back(median(std::move(own)));
  }
  return median(std::move(sizes));
}

// Whether gradients arrive, and even the weight that gets the largest ones stands still: then the rate is to blame, and
// not what happens to the gradients on their way.
bool are_gradients_wasted(const RunRecord& run) {
  constexpr double kNothing = 1e-7;
  constexpr double kStill = 1e-5;
  const double usual = usual_element(run);
  double largest = 0;
  double movement = 0;
  for (const History* weight : trained_weights(run)) {
    const History* gradient = run.find("gradient/" + weight->name);
    if (gradient == nullptr) continue;
    const bool is_from_zero = starts_at_zero(*weight);
    std::vector<double> sizes, ratios;
    for (std::size_t i = 0; i < gradient->size(); ++i) {
      sizes.push_back(gradient->at(Column::kL2, i) / std::sqrt(std::max(1.0, gradient->at(Column::kCount, i))));
    }
    for (std::size_t i = 0; i < weight->size(); ++i) {
      ratios.push_back(is_from_zero ? step_of_element(*weight, i) / usual : ratio_at(*weight, i));
    }
    const double size = median(std::move(sizes));
    if (!(size > largest)) continue;
    largest = size;
    movement = median(std::move(ratios));
  }
  return largest > kNothing && movement < kStill;
}

// Share of the gradients that is left when the optimizer sees them; NaN if it is not known, or a loss scaler shrinks
// them.
double share_of_gradients(const RunRecord& run) {
  const bool is_scaled =
      std::ranges::any_of(run.facts, [](const StepFacts& facts) { return facts.grad_scale.has_value(); });
  if (is_scaled) return NAN;
  std::vector<double> shares;
  for (const History* seen : run.of_role(Role::kOptimizerGradient)) {
    const History* pass = run.find("gradient/" + seen->role.parameter);
    for (std::size_t i = 0; pass != nullptr && i < seen->size(); ++i) {
      shares.push_back(seen->at(Column::kL2, i) / number_at(pass, seen->points[i], Column::kL2));
    }
  }
  return median(std::move(shares));
}

void look_at_small_steps(const RunRecord& run, const Steps& steps, Judgement& judgement) {
  const double usual = median(steps.median.values);
  const Series losses = run.losses(run.training_mode());
  std::int64_t last = -1;  // optimizer step of the run
  for (const StepPoint& point : run.steps) last = std::max(last, point.optimizer_step);
  const auto taken = static_cast<double>(last >= 0 ? last + 1 : run.steps.back().global_step + 1);
  // However small steps are, what counts is where they lead: weights that are all but where they began, and a loss that
  // does not fall.
  const double journey = usual * taken;
  const bool is_small = usual < kLow && journey < kLeastJourney && losses.size() >= 5;
  const bool is_stuck =
      losses.size() >= kLeastLosses && ((journey < kShortJourney && !is_loss_falling(run)) ||
                                        (journey < kLeastJourney && (is_loss_still(run) || stays_at_guess(run))));
  // What has been learned before leaves little to do.
  if (!(usual > 0) || !(is_small || is_stuck) || is_learned(run)) return;
  constexpr int kBehindGradients = 3;  // gradients that do not arrive make small steps too
  constexpr double kClipped = 0.1;
  const double share = share_of_gradients(run);
  const std::string blame =
      share < kClipped ? fmt::format("Gradients are clipped or scaled to {:.1g} of what the backward pass gives", share)
                       : "The learning rate is too low";
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = steps.median.steps.front(),
       .last_step = steps.median.steps.back(),
       .mode = run.training_mode(),
       .tensors = steps.tensors,
       .value = usual,
       .threshold = kLow,
       .message = fmt::format("An optimizer step changes the weights by {:.1g} of their size: {:.0f} steps move "
                              "them by less than {:.2g}. {}.",
                              usual, taken, std::max(usual * taken, 1e-12), blame),
       .causes = {"the learning rate is too low", "gradients are clipped or scaled to almost nothing"},
       .advice = {"multiply the learning rate by 10 until a step changes the weights by about 0.001",
                  "clip gradients to a few times their usual norm"},
       .evidence = evidence_of("relative change of the weights by a step", steps.median)},
      are_gradients_wasted(run) ? 0 : kBehindGradients);
}

void look(const RunRecord& run, Judgement& judgement) {
  if (run.is_boosting) return look_at_shrinkage(run, judgement);
  if (look_at_standstill(run, judgement)) return;
  const Steps steps = relative_steps(run);
  if (steps.median.size() < (broke_at_once(run) ? 1 : 2)) {
    judgement.cannot("needs the change of weights from one optimizer step to the next (statistic update, or weights)");
    return;
  }
  const Excess excess = excess_of(run, steps);
  if (look_at_decay(run, steps, excess.is_lost, judgement)) return;
  if (excess.is_any()) return blame_high_rate(run, steps, excess, judgement);
  if (look_at_schedule(run, judgement)) return;
  look_at_small_steps(run, steps, judgement);
}

}  // namespace

const Detector kCheckLearningRate = {.name = "LearningRateSanity",
                                     .question = "Are the steps of the optimizer of a sane size?",
                                     .depth = 2,
                                     .look = look};

}  // namespace tornasole::rules
