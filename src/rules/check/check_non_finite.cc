// ExplodingTensor: something is NaN or infinite. NonFiniteProvenance: where that began.
//
// Masks hold infinities on purpose, and a loss scaler meets overflow on purpose: what neither the loss nor a weight nor
// a gradient of an unscaled pass shows is no verdict.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"

namespace tornasole::rules {
namespace {

bool is_bad(const History& history, std::size_t row) {
  return history.at(Column::kNan, row) > 0 || history.at(Column::kInf, row) > 0;
}

// Whether a bad value here means that the training is broken.
bool is_vital(const RunRecord& run, const History& history, std::size_t row) {
  switch (history.role.role) {
    case Role::kLoss:
    case Role::kWeight:
    case Role::kBias:
    case Role::kOptimizerGradient:
    case Role::kOptimizerState: return true;
    case Role::kGradient: return !run.facts[history.points[row]].grad_scale.has_value();
    default: return false;
  }
}

std::string_view origin_of(const TensorRole& role) {
  switch (role.role) {
    case Role::kModelInput: return "input";
    case Role::kLabels: return "labels";
    case Role::kWeight:
    case Role::kBias: return "weight";
    case Role::kLayerInput:
    case Role::kLayerOutput:
    case Role::kPredictions: return "forward";
    case Role::kLoss: return "loss";
    case Role::kGradient:
    case Role::kOptimizerGradient: return "backward";
    case Role::kOptimizerState: return "optimizer";
    default: return "unknown";
  }
}

// In this order an origin is believed: what comes first in the computation.
int rank_of(std::string_view origin) {
  constexpr std::string_view kOrder[] = {"input", "labels",   "weight",    "forward",
                                         "loss",  "backward", "optimizer", "unknown"};
  return static_cast<int>(std::ranges::find(kOrder, origin) - std::begin(kOrder));
}

std::vector<std::string> causes_of(std::string_view origin) {
  if (origin == "input") return {"the data holds NaN or infinity"};
  if (origin == "labels") return {"the labels hold NaN or infinity"};
  if (origin == "weight") {
    return {
        "the optimizer step before broke the weight: a learning rate that is too high, or a gradient that was not "
        "finite"};
  }
  if (origin == "forward") {
    return {"overflow: values grew beyond what the number format holds", "a logarithm, root or division of zero"};
  }
  if (origin == "loss") return {"a logarithm of zero in the loss", "predictions that overflow in an exponential"};
  if (origin == "backward")
    return {"a derivative that is infinite (a root at zero, a norm of zero)", "overflow in half precision"};
  return {"values beyond what the number format holds"};
}

std::vector<std::string> advice_for(std::string_view origin) {
  if (origin == "input" || origin == "labels") {
    return {"find the samples: torch.isfinite or numpy.isfinite over the data set, and leave them out or fill them",
            "look at the scaling of the data: a column without spread divides by zero"};
  }
  return {"look at the tensor at the steps before: tornasole first-bad", "lower the learning rate, clip gradients"};
}

struct Bad {
  const History* history;
  std::size_t row;
};

void look(const RunRecord& run, Judgement& judgement) {
  bool is_known = false;
  std::optional<std::uint32_t> first;
  for (const History& history : run.histories) {
    for (std::size_t i = 0; i < history.size(); ++i) {
      is_known = is_known || std::isfinite(history.at(Column::kNan, i)) || history.role.role == Role::kLoss;
      if (is_bad(history, i) && is_vital(run, history, i)) {
        first = std::min(first.value_or(history.points[i]), history.points[i]);
        break;
      }
    }
  }
  if (!is_known) {
    judgement.cannot("needs values, or statistics of them");
    return;
  }
  if (!first) return;
  std::vector<Bad> bad;
  for (const History& history : run.histories) {
    const auto at = std::ranges::lower_bound(history.points, *first);
    if (at == history.points.end() || *at != *first) continue;
    const auto row = static_cast<std::size_t>(at - history.points.begin());
    if (is_bad(history, row)) bad.push_back({&history, row});
  }
  // Histories are in the order of saving, so of equal origins the first is the one where it began.
  const auto origin =
      std::ranges::min_element(bad, {}, [](const Bad& one) { return rank_of(origin_of(one.history->role)); });
  const std::string_view kind = origin_of(origin->history->role);
  std::vector<std::string> names = {origin->history->name};
  for (const Bad& one : bad) {
    if (one.history != origin->history) names.push_back(one.history->name);
  }
  const std::int64_t step = run.steps[*first].global_step;
  const std::int64_t last = run.steps.back().global_step;
  Series largest;
  for (std::size_t i = 0; i <= origin->row; ++i) {
    const double value =
        std::max(std::fabs(origin->history->at(Column::kMax, i)), std::fabs(origin->history->at(Column::kMin, i)));
    if (!std::isfinite(value)) continue;
    largest.steps.push_back(run.steps[origin->history->points[i]].global_step);
    largest.values.push_back(value);
  }
  std::string growth;
  if (!largest.empty()) growth = fmt::format("; the largest magnitude before was {:.3g}", largest.values.back());
  judgement.add({.rule = "NonFiniteProvenance",
                 .severity = Severity::kError,
                 .first_step = step,
                 .last_step = last,
                 .mode = run.steps[*first].step.mode,
                 .tensors = {origin->history->name},
                 .value = origin->history->at(Column::kNan, origin->row),
                 .threshold = 0,
                 .message = fmt::format("NaN or infinity begins at step {} in {} ({}){}.", step, origin->history->name,
                                        kind, growth),
                 .causes = causes_of(kind),
                 .advice = advice_for(kind),
                 .evidence = evidence_of("largest magnitude of " + origin->history->name, largest)},
                /*deeper=*/-1);
  judgement.add({.severity = Severity::kError,
                 .first_step = step,
                 .last_step = last,
                 .mode = run.steps[*first].step.mode,
                 .tensors = names,
                 .value = static_cast<double>(bad.size()),
                 .threshold = 0,
                 .message = fmt::format("{} tensors hold NaN or infinity at step {}: {}.", bad.size(), step,
                                        names_text(names, 3)),
                 .causes = causes_of(kind),
                 .advice = {"see NonFiniteProvenance"}});
}

}  // namespace

const Detector kCheckNonFinite = {
    .name = "ExplodingTensor", .question = "Is everything finite?", .depth = 5, .is_event = true, .look = look};

}  // namespace tornasole::rules
