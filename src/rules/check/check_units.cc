// DeadRelu: rectifiers that no sample switches on. SaturatedActivation: bounded activations where they are flat.
// ConstantOutput: predictions that do not depend on the sample.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "rules/check/detector.h"
#include "rules/check/number_windows.h"
#include "rules/check/output_facts.h"

namespace tornasole::rules {
namespace {

constexpr double kDeadShare = 0.5;
constexpr double kFlat = 0.85;
constexpr std::size_t kLeastPoints = 3;
constexpr double kLeastSamples = 8;
constexpr double kManySamples = 64;
constexpr double kAllDead = 0.9;

bool is_rectifier(const TensorRole& role) {
  const std::string& type = role.layer_class;
  return type == "relu" || type == "relu6" || type == "relu_";
}

// The share of the units that none of these steps saw above zero.
double dead_share(std::span<const std::vector<float>> steps) {
  const std::size_t units = steps.back().size();
  std::size_t dead = 0;
  for (std::size_t unit = 0; unit < units; ++unit) {
    const bool is_dead = std::ranges::all_of(
        steps, [&](const std::vector<float>& step) { return unit < step.size() && step[unit] == 0; });
    dead += is_dead ? 1U : 0U;
  }
  return static_cast<double>(dead) / static_cast<double>(units);
}

// Whether parameters of the layer hold NaN or infinity: a rectifier may make zeros of those.
bool has_bad_parameters(const RunRecord& run, const std::string& layer) {
  const auto is_bad = [&](const History* parameter) {
    if (parameter->role.layer != layer) return false;
    for (std::size_t i = 0; i < parameter->size(); ++i) {
      if (parameter->at(Column::kNan, i) > 0 || parameter->at(Column::kInf, i) > 0) return true;
    }
    return false;
  };
  return !layer.empty() && (std::ranges::any_of(run.of_role(Role::kWeight), is_bad) ||
                            std::ranges::any_of(run.of_role(Role::kBias), is_bad));
}

// The share of the units that are on at each step; of a layer whose units nobody looked at one by one: 1 if any is.
Series activity_of(const RunRecord& run, const History& output) {
  Series active = run.series(output, Column::kActiveUnits);
  if (!active.empty()) return active;
  active = run.series(output, Column::kMax);
  for (double& value : active.values) value = value == 0 ? 0 : 1;
  return active;
}

bool is_all_off(const Series& active) {
  const std::span<const double> late = std::span(active.values).last(std::max(kLeastPoints, active.size() / 2));
  return std::ranges::all_of(late, [](double share) { return share == 0; });
}

void look_for_dead(const RunRecord& run, Judgement& judgement) {
  bool has_any = false;
  std::vector<std::pair<double, const History*>> dead;
  for (const History* output : run.of_role(Role::kLayerOutput)) {
    if (!is_rectifier(output->role)) continue;
    if (output->unit_activity.size() < kLeastPoints) {
      const Series active = activity_of(run, *output);
      if (active.size() < kLeastPoints) continue;
      has_any = true;
      if (is_all_off(active) && !has_bad_parameters(run, output->role.layer)) dead.emplace_back(1, output);
      continue;
    }
    has_any = true;
    const double samples = most_samples(*output);
    const std::span<const std::vector<float>> steps(output->unit_activity);
    const bool is_enough = samples == 0 || samples * static_cast<double>(steps.size()) >= kLeastSamples;
    double share = dead_share(steps);
    // Units die on the way: a layer that is all off in the later half is dead, whatever it was before.
    const std::size_t later = std::max(kLeastPoints, steps.size() / 2);
    const double late_share = dead_share(steps.last(later));
    if (samples * static_cast<double>(later) >= kManySamples && late_share > kAllDead) share = late_share;
    if (is_enough && share > kDeadShare && !has_bad_parameters(run, output->role.layer)) {
      dead.emplace_back(share, output);
    }
  }
  if (!has_any) {
    judgement.cannot("needs outputs of rectifiers at three steps or more (statistic unit_activity)");
    return;
  }
  if (dead.empty()) return;
  std::ranges::sort(dead, std::greater<>(), &std::pair<double, const History*>::first);
  std::vector<std::string> names;
  for (const auto& [share, output] : dead) names.push_back(output->name);
  const History& worst = *dead.front().second;
  const Series active = activity_of(run, worst);
  // From where on most units are off.
  std::size_t onset = active.size() - 1;
  while (onset > 0 && active.values[onset - 1] < 1 - kDeadShare) --onset;
  judgement.add(
      {.severity = dead.front().first > kAllDead ? Severity::kError : Severity::kWarning,
       .first_step = active.steps[onset],
       .last_step = active.steps.back(),
       .mode = run.training_mode(),
       .tensors = names,
       .value = dead.front().first,
       .threshold = kDeadShare,
       .message = fmt::format("{:.0f} % of the rectifiers of {} are off for every sample{}.", 100 * dead.front().first,
                              worst.role.layer.empty() ? worst.name : worst.role.layer,
                              dead.size() > 1 ? fmt::format(", and most of {} more layers", dead.size() - 1) : ""),
       .causes = {"a learning rate that threw the biases far below zero", "weights or biases that start too negative",
                  "inputs that are not centred"},
       .advice = {"lower the learning rate", "use leaky rectifiers", "start biases at zero"},
       .evidence = evidence_of("share of active units of " + worst.name, active)});
}

// Whether most of the loss went after this step: what happened there does not keep the model from learning.
bool is_learning_after(const RunRecord& run, std::int64_t step) {
  constexpr double kLittle = 0.1;
  constexpr std::size_t kWindow = 5;
  const Series losses = run.losses(run.training_mode());
  const auto onset = static_cast<std::size_t>(std::ranges::lower_bound(losses.steps, step) - losses.steps.begin());
  if (onset < kWindow || onset + kWindow > losses.size()) return false;
  const std::span<const double> values = losses.values;
  const auto middle = [](std::span<const double> part) { return median({part.begin(), part.end()}); };
  return middle(values.last(kWindow)) < kLittle * middle(values.subspan(onset - kWindow, kWindow));
}

void look_for_flat(const RunRecord& run, Judgement& judgement) {
  bool has_any = false;
  std::int64_t last_order = -1;
  for (const History* output : run.of_role(Role::kLayerOutput)) last_order = std::max(last_order, output->role.order);
  std::vector<std::pair<double, const History*>> flat;
  for (const History* output : run.of_role(Role::kLayerOutput)) {
    const Series shares = run.series(*output, Column::kSaturated);
    if (shares.size() < kLeastPoints) continue;
    has_any = true;
    // The last activation of a classifier is flat because it is sure.
    if (last_order >= 0 && output->role.order >= last_order) continue;
    if (const double share = median(shares.values); share > kFlat) flat.emplace_back(share, output);
  }
  if (!has_any) {
    judgement.cannot("needs outputs of tanh or sigmoid layers at three steps or more (mean, l2 and statistic counts)");
    return;
  }
  if (flat.empty()) return;
  std::ranges::sort(flat, std::greater<>(), &std::pair<double, const History*>::first);
  std::vector<std::string> names;
  for (const auto& [share, tensor] : flat) names.push_back(tensor->name);
  const History& worst = *flat.front().second;
  const Series shares = run.series(worst, Column::kSaturated);
  const auto onset = std::ranges::find_if(shares.values, [](double share) { return share > kFlat; });
  const std::int64_t since = shares.steps[static_cast<std::size_t>(onset - shares.values.begin())];
  if (is_learning_after(run, since)) return;
  judgement.add(
      {.severity = Severity::kWarning,
       .first_step = since,
       .last_step = shares.steps.back(),
       .mode = run.training_mode(),
       .tensors = names,
       .value = flat.front().first,
       .threshold = kFlat,
       .message = fmt::format("{} lies where {} is flat: {:.1f} % of the gradient passes on average.", worst.name,
                              worst.role.layer_class, 100 * (1 - flat.front().first)),
       .causes = {"weights that start too large", "inputs that are not scaled", "a learning rate that is too high"},
       .advice = {"scale inputs to mean 0 and deviation 1", "start weights by Glorot scaling",
                  "normalise before the activation"},
       .evidence = evidence_of("flatness of " + worst.name, shares)});
}

// Whether all that was seen lies in the first half of the run, and one of the losses fell by much afterwards.
bool is_over_since(const RunRecord& run, std::int64_t step) {
  constexpr double kMost = 0.7;
  constexpr std::size_t kWindow = 5;
  return std::ranges::any_of(run.training_losses(), [&](const History* loss) {
    const Series losses = run.series(*loss, Column::kMean, run.training_mode());
    const auto seen = static_cast<std::size_t>(std::ranges::lower_bound(losses.steps, step) - losses.steps.begin());
    if (seen < kWindow || 2 * seen > losses.size() || losses.size() < 4 * kWindow) return false;
    const std::span<const double> values = losses.values;
    return mean(values.last(kWindow)) < kMost * mean(values.subspan(seen - kWindow, kWindow));
  });
}

void look_for_constant(const RunRecord& run, Judgement& judgement) {
  const OutputVariance found = output_variance(run);
  if (!found.is_known) {
    judgement.cannot("needs the model's outputs at three steps or more (statistic across_samples)");
    return;
  }
  if (found.constant == nullptr) return;
  if (is_over_since(run, found.variance.steps.back())) return;
  const std::string& name = found.constant->name;
  const std::vector<double>& values = found.variance.values;
  const std::vector<double> late(values.begin() + static_cast<std::ptrdiff_t>(found.onset), values.end());
  judgement.add(
      {.severity = Severity::kError,
       .first_step = found.variance.steps[found.onset],
       .last_step = found.variance.steps.back(),
       .mode = run.training_mode(),
       .tensors = {name},
       .value = median(late),
       .threshold = kConstantOutput,
       .message = fmt::format("{} is the same for every sample of a batch.", name),
       .causes = run.is_boosting
                     ? std::vector<std::string>{"no tree has a branch", "features or labels are all alike"}
                     : std::vector<std::string>{"the network has collapsed: dead or saturated units before the output",
                                                "inputs are all alike", "weights of the last layer are zero"},
       .advice = run.is_boosting
                     ? std::vector<std::string>{"look at the trees, the labels and the features"}
                     : std::vector<std::string>{"look at the first layer whose output does not vary over samples",
                                                "lower the learning rate"},
       .evidence = evidence_of("relative variance over samples of " + name, found.variance)});
}

}  // namespace

const Detector kCheckDeadRelu = {
    .name = "DeadRelu", .question = "Do rectifiers switch on?", .depth = 3, .look = look_for_dead};
const Detector kCheckSaturation = {.name = "SaturatedActivation",
                                   .question = "Do bounded activations pass gradients?",
                                   .depth = 3,
                                   .look = look_for_flat};
const Detector kCheckConstantOutput = {.name = "ConstantOutput",
                                       .question = "Do predictions depend on the sample?",
                                       .depth = 6,
                                       .look = look_for_constant};

}  // namespace tornasole::rules
