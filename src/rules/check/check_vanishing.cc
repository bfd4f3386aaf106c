// VanishingGradient: gradients of early layers have shrunk to nothing beside those of late ones, or all have.
//
// Small gradients near convergence, and of layers that adaptive optimizers train all the same, are healthy: a verdict
// needs layers whose weights hardly move, or a loss that does not fall. So are those of branches that begin with a
// factor of zero, as residual networks do: they come once the factor grows.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"
#include "rules/check/number_windows.h"
#include "rules/check/output_facts.h"

namespace tornasole::rules {
namespace {

constexpr double kNothing = 1e-7;
constexpr double kRatio = 1e-4;  // to the largest of the other layers
constexpr std::size_t kLeastPoints = 3;

// The root mean square of the elements that are not zero: rows of an embedding that were not used say nothing.
double size_at(const History& gradient, std::size_t row) {
  const double l2 = gradient.at(Column::kL2, row);
  const double count = gradient.at(Column::kCount, row);
  const double zeros = gradient.at(Column::kZeros, row);
  if (std::isfinite(l2) && count > 0) {
    const double used = std::isfinite(zeros) ? count - zeros : count;
    return used > 0 ? l2 / std::sqrt(used) : 0;
  }
  return gradient.at(Column::kAbsMean, row);
}

struct Layer {
  const History* gradient = nullptr;
  double size = 0;      // median over the first half of the run
  double late = 0;      // likewise over the second
  double movement = 0;  // median relative change of the weight by one step; NaN if unknown
};

double movement_of(const RunRecord& run, const std::string& parameter) {
  const History* weight = run.find(parameter);
  if (weight == nullptr) return std::nan("");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < weight->size(); ++i) {
    const double before = weight->at(Column::kBefore, i);
    if (before > 0)
      ratios.push_back(weight->at(Column::kUpdate, i) / before / std::max(1.0, weight->at(Column::kGap, i)));
  }
  return median(std::move(ratios));
}

std::vector<Layer> layers_of(const RunRecord& run) {
  std::vector<Layer> layers;
  for (const History* gradient : run.of_role(Role::kGradient)) {
    const bool is_flat =
        gradient->role.rank >= 0 ? gradient->role.rank < 2 : gradient->shape && gradient->shape->rank() < 2;
    if (is_flat || gradient->size() < kLeastPoints) continue;
    std::vector<double> early, late;
    for (std::size_t i = 0; i < gradient->size(); ++i) {
      (i < (gradient->size() + 1) / 2 ? early : late).push_back(size_at(*gradient, i));
    }
    layers.push_back(
        {gradient, median(std::move(early)), median(std::move(late)), movement_of(run, gradient->role.parameter)});
  }
  return layers;
}

void look(const RunRecord& run, Judgement& judgement) {
  const std::vector<Layer> layers = layers_of(run);
  if (layers.empty()) {
    judgement.cannot("needs gradients of weights at three steps or more (mean magnitude or l2)");
    return;
  }
  const double largest = std::ranges::max_element(layers, {}, &Layer::size)->size;
  if (!std::isfinite(largest)) return;
  const bool is_falling = is_loss_falling(run);
  const bool is_constant = output_variance(run).constant != nullptr;
  std::vector<const Layer*> vanished;
  for (const Layer& layer : layers) {
    const auto is_small = [&](double size) {
      return size < kNothing || (layers.size() > 2 && size < kRatio * largest);
    };
    // What moves as others do is being trained, whatever the size of its gradient, unless it comes to nothing: adaptive
    // optimizers move weights by noise, too.
    const bool is_still = !(layer.movement > 1e-5) || is_constant;
    const bool has_come = is_falling && !is_small(layer.late);
    if (is_small(layer.size) && is_still && !has_come) vanished.push_back(&layer);
  }
  if (vanished.empty()) return;
  if (is_falling && vanished.size() * 2 < layers.size()) return;  // the rest learns without them: FrozenLayers tells
  std::vector<std::string> names;
  for (const Layer* layer : vanished) names.push_back(layer->gradient->name);
  const History& worst = *(*std::ranges::min_element(vanished, {}, &Layer::size))->gradient;
  const double size = (*std::ranges::min_element(vanished, {}, &Layer::size))->size;
  const Series series = run.series(worst, std::isfinite(worst.at(Column::kL2, 0)) ? Column::kL2 : Column::kAbsMean);
  judgement.add(
      {.severity = is_falling ? Severity::kWarning : Severity::kError,
       .first_step = run.steps[worst.points.front()].global_step,
       .last_step = run.steps[worst.points.back()].global_step,
       .mode = run.training_mode(),
       .tensors = names,
       .value = size,
       .threshold = std::max(kNothing, kRatio * largest),
       .message = fmt::format("{} of {} weight gradients are next to nothing ({}: {:.1e}; the largest layer has "
                              "{:.1e}).",
                              vanished.size(), layers.size(), worst.name, size, largest),
       .causes = {"saturating activations (sigmoid, tanh) in a deep network",
                  "weights that start too small for the depth", "dead rectifiers", "a detached or scaled-down loss"},
       .advice = {"use rectifiers or normalisation between layers", "use residual connections",
                  "start weights by He or Glorot scaling"},
       .evidence = evidence_of("gradient " + worst.name, series)});
}

}  // namespace

const Detector kCheckVanishingGradient = {
    .name = "VanishingGradient", .question = "Do gradients reach all layers?", .depth = 4, .look = look};

}  // namespace tornasole::rules
