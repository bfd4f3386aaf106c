// SilentOptimizer: gradients flow, but no weight ever changes. FrozenLayers: some change, others never do.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/optimizer_facts.h"

namespace tornasole::rules {
namespace {

constexpr std::int64_t kPatience = 4;

// Whether something flows back to a weight.
bool has_gradient(const RunRecord& run, const std::string& parameter) {
  for (const char* prefix : {"gradient/", "optimizer_gradient/"}) {
    const History* gradient = run.find(prefix + parameter);
    for (std::size_t i = 0; gradient != nullptr && i < gradient->size(); ++i) {
      if (gradient->at(Column::kL2, i) > 0 || gradient->at(Column::kAbsMean, i) > 0) return true;
    }
  }
  return false;
}

// Whether statistics say that a weight is not at one row what it is at another.
bool differs(const History& weight, std::size_t row, std::size_t other) {
  return std::ranges::any_of(std::array{Column::kMean, Column::kL2, Column::kStd}, [&](Column column) {
    const double one = weight.at(column, row);
    const double two = weight.at(column, other);
    return std::isfinite(one) && std::isfinite(two) && one != two;
  });
}

bool has_moved(const History* weight) {
  for (std::size_t i = 1; i < weight->size(); ++i) {
    if (differs(*weight, 0, i)) return true;
  }
  return false;
}

// After how many optimizer steps a weight was looked at, and how often it had changed. Where nobody measured the change
// by one of them, its statistics tell whether it is what it was some steps before.
struct Changes {
  std::int64_t known = 0, real = 0;
};
Changes changes_of(const RunRecord& run, const History& weight) {
  Changes changes;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const auto taken = [&](std::size_t row) { return run.steps[weight.points[row]].optimizer_step; };
    if (const double update = weight.at(Column::kUpdate, i); !std::isnan(update)) {
      // Steps that nobody counted may have been evaluations.
      changes.known += taken(i) >= 0 ? std::llround(std::max(1.0, weight.at(Column::kGap, i))) : 1;
      changes.real += update != 0 ? 1 : 0;
    } else if (i > 0 && taken(i - 1) >= 0 && taken(i) > taken(i - 1) && std::isfinite(weight.at(Column::kL2, i))) {
      changes.known += taken(i) - taken(i - 1);
      changes.real += differs(weight, i, i - 1) ? 1 : 0;
    }
  }
  return changes;
}

// The changes of a weight, or its size where nobody measured those.
Evidence course_of(const RunRecord& run, const History& weight) {
  const Series updates = run.series(weight, Column::kUpdate);
  if (!updates.empty()) return evidence_of("change of " + weight.name, updates);
  return evidence_of("size of " + weight.name, run.series(weight, Column::kL2));
}

// Training steps with a backward pass, and optimizer steps between the first and the last of them.
void look_at_counter(const RunRecord& run, Judgement& judgement) {
  std::vector<const StepPoint*> points;
  for (const StepPoint& point : run.steps) {
    if (point.step.mode == run.training_mode() && point.optimizer_step >= 0) points.push_back(&point);
  }
  constexpr std::size_t kLeastSteps = 10;
  if (points.size() < kLeastSteps || points.back()->optimizer_step > points.front()->optimizer_step) return;
  if (std::ranges::any_of(trained_weights(run), has_moved)) return;  // by an optimizer that we do not know
  if (std::ranges::none_of(trained_weights(run), [&](const History* w) { return has_gradient(run, w->name); })) return;
  judgement.add(
      {.severity = Severity::kError,
       .first_step = points.front()->global_step,
       .last_step = points.back()->global_step,
       .mode = run.training_mode(),
       .value = 0,
       .threshold = 1,
       .message = fmt::format("{} training steps computed gradients and the optimizer took no step.", points.size()),
       .causes = {"optimizer.step() is never called",
                  "the optimizer is one that is not attached to this model or process",
                  "gradients are accumulated over more steps than the run has"},
       .advice = {"call optimizer.step() after backward()"}});
}

// Optimizer steps between the first and the last time that a weight was saved in a pass with gradients.
std::int64_t steps_taken(const RunRecord& run, const History& weight) {
  std::optional<std::int64_t> first;
  std::int64_t last = -1;
  for (const std::uint32_t point : weight.points) {
    if (!run.facts[point].grad_enabled.value_or(true) || run.steps[point].optimizer_step < 0) continue;
    if (!first) first = run.steps[point].optimizer_step;
    last = run.steps[point].optimizer_step;
  }
  return first ? last - *first : 0;
}

// The loss falls all the same: other modules learn, of which nothing was saved.
void blame_cut_part(const RunRecord& run, const std::vector<std::string>& names,
                    const std::vector<std::uint32_t>& points, std::int64_t taken, Judgement& judgement) {
  judgement.add(
      {.rule = "FrozenLayers",
       .severity = Severity::kWarning,
       .first_step = run.steps[points.front()].global_step,
       .last_step = run.steps[points.back()].global_step,
       .mode = run.training_mode(),
       .tensors = names,
       .value = static_cast<double>(names.size()),
       .threshold = 0,
       .message = fmt::format("{} never changed in {} optimizer steps, and no gradient reaches {}, while the "
                              "loss falls by what others learn.",
                              names_text(names, 2), taken, names.size() == 1 ? "it" : "them"),
       .causes = {"the output of this part is cut off from the loss: detach(), .data, item(), NumPy or "
                  "no_grad() behind it"},
       .advice = {"set requires_grad to False for what is frozen on purpose", "give what follows the output itself"}});
}

// The optimizer steps, has the weights, and nothing flows back to any of them. Gradients that are saved and zero are
// another matter: VanishingGradient tells.
void look_for_cut(const RunRecord& run, const std::vector<const History*>& weights, Judgement& judgement) {
  const bool is_optimized =
      std::ranges::any_of(weights, [&](const History* weight) { return run.optimized.contains(weight->name); });
  if (!is_optimized || !run.of_role(Role::kGradient).empty() || !run.of_role(Role::kOptimizerGradient).empty()) return;
  const std::int64_t taken = steps_taken(run, *weights.front());
  if (run.of_role(Role::kLoss).empty() || taken < kPatience) return;
  if (std::ranges::any_of(weights, has_moved)) return;
  std::vector<std::string> names;
  for (const History* weight : weights) names.push_back(weight->name);
  const std::vector<std::uint32_t>& points = weights.front()->points;
  if (is_loss_falling(run)) return blame_cut_part(run, names, points, taken, judgement);
  judgement.add(
      {.severity = Severity::kError,
       .first_step = run.steps[points.front()].global_step,
       .last_step = run.steps[points.back()].global_step,
       .mode = run.training_mode(),
       .tensors = names,
       .value = 0,
       .message = fmt::format("The optimizer took {} steps, and no weight changed: no gradient reaches any of "
                              "them.",
                              taken),
       .causes = {"the loss is cut off from the model: detach(), .data, item(), NumPy, no_grad() or argmax() "
                  "between the two"},
       .advice = {"compute the loss from the model's output itself"}});
}

// Nothing of the model is to be trained, and no optimizer has any of it, or has biases alone. What does train then is
// something else, such as an image that a frozen model judges: its loss falls.
bool look_for_all_frozen(const RunRecord& run, Judgement& judgement) {
  const std::vector<const History*> all = run.of_role(Role::kWeight);
  const Series losses = run.losses(run.training_mode());
  const bool is_meant_to_train =
      !run.optimized.empty() || (run.optimizers > 0 && run.optimizers == run.optimizers_of_others);
  if (all.empty() || !trained_weights(run).empty() || !is_meant_to_train || !is_loss_still(run)) return false;
  std::vector<std::string> names;
  for (const History* weight : all) names.push_back(weight->name);
  judgement.add(
      {.severity = Severity::kError,
       .first_step = losses.steps.front(),
       .last_step = losses.steps.back(),
       .mode = run.training_mode(),
       .tensors = names,
       .value = 0,
       .message =
           run.optimized.empty()
               ? fmt::format("The optimizer has nothing to train: all {} weights of the model are frozen.", all.size())
               : fmt::format(
                     "All {} weights of the model are frozen, and the loss stands still: the optimizer has {} of "
                     "other kinds, such as {}.",
                     all.size(), run.optimized.size(), *run.optimized.begin()),
       .causes = {"all layers were frozen (trainable = False, requires_grad_(False)), and none set free again "
                  "before the optimizer was made"},
       .advice = {"set the layers free that are to learn, and compile the model anew"},
       .evidence = evidence_of("loss", losses)});
  return true;
}

void look_for_silence(const RunRecord& run, Judgement& judgement) {
  if (look_for_all_frozen(run, judgement)) return;
  const std::vector<const History*> weights = trained_weights(run);
  std::size_t judged = 0;
  std::vector<std::string> names;
  const History* shown = nullptr;
  for (const History* weight : weights) {
    const Changes changes = changes_of(run, *weight);
    if (changes.real > 0) return;
    if (changes.known < kPatience) continue;
    ++judged;
    shown = weight;
    names.push_back(weight->name);
  }
  if (judged == 0) {
    look_at_counter(run, judgement);
    if (judgement.verdicts().empty() && !weights.empty()) look_for_cut(run, weights, judgement);
    if (judgement.verdicts().empty() && weights.empty())
      judgement.cannot("needs the weights, or their statistic update");
    return;
  }
  if (std::ranges::none_of(names, [&](const std::string& name) { return has_gradient(run, name); })) {
    return look_for_cut(run, weights, judgement);
  }
  judgement.add(
      {.severity = Severity::kError,
       .first_step = run.steps[shown->points.front()].global_step,
       .last_step = run.steps[shown->points.back()].global_step,
       .mode = run.training_mode(),
       .tensors = names,
       .value = 0,
       .message = fmt::format("No weight changed in {} optimizer steps although there are gradients.",
                              changes_of(run, *shown).known),
       .causes = {"the optimizer was given other parameters than those of the model (made before the model was "
                  "moved, copied or wrapped)",
                  "the learning rate is 0", "optimizer.step() is skipped"},
       .advice = {"make the optimizer from model.parameters() after the model has its final form",
                  "look at scalar/learning_rate"},
       .evidence = course_of(run, *shown)});
}

// When the layer of a weight runs, among all that is saved of a step; nothing if it is not known. Where no output was
// saved, the order of calls tells.
std::optional<std::size_t> place_of(const RunRecord& run, const History& weight) {
  if (weight.role.layer.empty()) return std::nullopt;
  if (run.of_role(Role::kLayerOutput).empty()) {
    if (weight.role.call_order < 0) return std::nullopt;
    return static_cast<std::size_t>(weight.role.call_order);
  }
  const auto output = std::ranges::find_if(run.histories, [&](const History& history) {
    return history.role.role == Role::kLayerOutput && history.role.layer == weight.role.layer;
  });
  if (output == run.histories.end()) return std::nullopt;
  return static_cast<std::size_t>(output - run.histories.begin());
}

// Whether the layer a weight belongs to runs, and a layer that learns runs after it. One that runs last and that
// nothing flows back to has an output that nobody uses, such as the pooler of a model of language.
bool should_learn(const RunRecord& run, const History& weight) {
  const auto own = place_of(run, weight);
  return own && std::ranges::any_of(trained_weights(run), [&](const History* other) {
           const auto later = place_of(run, *other);
           return later && *later > *own && has_gradient(run, other->name);
         });
}

// Whether a part of a block gets no gradient, while a part that runs before it in the same block does: the block gives
// an answer of which the last one of its kind is not used, such as what is left for a block that does not come. What a
// detached output cuts off has nothing that learns before it.
bool is_answer_unused(const RunRecord& run, const History& weight) {
  const auto own = place_of(run, weight);
  std::string_view block = weight.role.layer;
  while (own) {
    const std::size_t dot = block.find_last_of('.');
    if (dot == std::string_view::npos) return false;
    block = block.substr(0, dot);
    bool is_any = false;
    for (const History* other : trained_weights(run)) {
      const std::string_view layer = other->role.layer;
      const bool is_part = layer.starts_with(block) && layer.size() > block.size() && layer[block.size()] == '.';
      if (!is_part || !has_gradient(run, other->name)) continue;
      is_any = true;
      if (place_of(run, *other).value_or(*own) < *own) return true;
    }
    if (is_any) return false;
  }
  return false;
}

std::string gradient_of(const RunRecord& run, const History& weight) {
  if (has_gradient(run, weight.name)) return "non-zero";
  const bool is_saved =
      run.find("gradient/" + weight.name) != nullptr || run.find("optimizer_gradient/" + weight.name) != nullptr;
  return is_saved ? "zero" : "absent";
}

// Nobody means to train it here: no optimizer has it and no loss reaches it. A target network, an average of weights.
bool is_set_apart(const RunRecord& run, const History& weight) {
  return !run.optimized.empty() && !run.optimized.contains(weight.name) && gradient_of(run, weight) == "absent";
}

// Its turn may have come after it was last looked at, as that of a critic that is trained after its actor.
bool is_seen_early_only(const RunRecord& run, const History& weight) {
  const std::int64_t seen = run.steps[weight.points.back()].optimizer_step;
  return seen >= 0 && 2 * seen < run.steps.back().optimizer_step;
}

void look_for_frozen(const RunRecord& run, Judgement& judgement) {
  bool is_any_changed = false;
  std::vector<const History*> frozen;
  for (const History* weight : trained_weights(run)) {
    const Changes changes = changes_of(run, *weight);
    if (changes.real > 0) {
      is_any_changed = true;
    } else if (changes.known >= kPatience && !is_set_apart(run, *weight)) {
      frozen.push_back(weight);
    }
  }
  if (run.of_role(Role::kWeight).empty()) {
    judgement.cannot("needs the weights, or their statistic update");
    return;
  }
  if (!is_any_changed || frozen.empty()) return;
  std::vector<std::string> names;
  std::string gradients;
  bool is_left_out = false;
  bool is_cut_off = false;
  for (const History* weight : frozen) {
    names.push_back(weight->name);
    is_cut_off = is_cut_off || (run.optimized.contains(weight->name) && should_learn(run, *weight) &&
                                !is_answer_unused(run, *weight));
    if (gradients.empty()) gradients = gradient_of(run, *weight);
    is_left_out = is_left_out || (!run.optimized.empty() && !run.optimized.contains(weight->name));
  }
  const History& shown = *frozen.front();
  // Without a gradient a layer may simply not be used, which is the user's business; one that runs before others that
  // learn, and that an optimizer is to train, is cut off from the loss.
  const bool is_unused = gradients == "absent" && !is_left_out && !is_cut_off;
  if (is_unused && is_seen_early_only(run, shown)) return;
  const Severity severity = is_unused ? Severity::kInfo : Severity::kWarning;
  std::vector<std::string> causes;
  if (is_left_out) causes.emplace_back("the optimizer does not have these parameters");
  if (gradients == "zero")
    causes.emplace_back("nothing flows back to them: dead or saturated units, a detached branch");
  if (gradients == "absent") causes.emplace_back("the layer is not used, or its output is detached from the loss");
  if (gradients == "non-zero" && !is_left_out) causes.emplace_back("their learning rate is 0");
  judgement.add({.severity = severity,
                 .first_step = run.steps[shown.points.front()].global_step,
                 .last_step = run.steps[shown.points.back()].global_step,
                 .mode = run.training_mode(),
                 .tensors = names,
                 .value = static_cast<double>(frozen.size()),
                 .threshold = 0,
                 .message = fmt::format("{} never changed in {} optimizer steps while other weights did; gradient: {}.",
                                        names_text(names, 2), changes_of(run, shown).known, gradients),
                 .causes = causes,
                 .advice = {"set requires_grad to False for what is frozen on purpose",
                            "give the optimizer all parameters that should be trained"},
                 .evidence = course_of(run, shown)});
}

}  // namespace

const Detector kCheckSilentOptimizer = {.name = "SilentOptimizer",
                                        .question = "Does the optimizer change the weights?",
                                        .depth = 1,
                                        .look = look_for_silence};
const Detector kCheckFrozenLayers = {.name = "FrozenLayers",
                                     .question = "Do all layers that should be trained change?",
                                     .depth = 4,
                                     .look = look_for_frozen};

}  // namespace tornasole::rules
