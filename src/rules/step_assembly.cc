#include "rules/step_assembly.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "reduce/derived.h"
#include "reduce/reduce.h"

namespace tornasole::rules {
namespace {

// The statistics that one value alone defines.
std::optional<Tensor> derive(std::string_view statistic, const TensorView& value) {
  const auto which = reduce::parse_statistic(statistic);
  if (!which) return std::nullopt;
  const auto made = [&]() -> Result<Tensor> {
    switch (*which) {
      case reduce::Statistic::kCounts: return reduce::counts(value);
      case reduce::Statistic::kUnitActivity: return reduce::unit_activity(value);
      case reduce::Statistic::kAcrossSamples: return reduce::across_samples(value);
      case reduce::Statistic::kQuantiles: return reduce::quantiles(value);
      case reduce::Statistic::kHash: return reduce::content_hash(value);
      case reduce::Statistic::kClasses: return reduce::class_counts(value);  // of labels; anything else has none
      case reduce::Statistic::kUnitRange:
      case reduce::Statistic::kUpdate:
      case reduce::Statistic::kCosinePrevious: break;
    }
    return Error{};
  }();
  return made.ok() ? std::optional(*made) : std::nullopt;
}

void take_value(const SweptValue& swept, const NamePlan& plan, StepTensor* tensor) {
  // Text has none that was made where it was read.
  const auto digest =
      swept.digest ? std::static_pointer_cast<ValueDigest>(swept.digest) : digest_value(*swept.value, plan);
  tensor->shape = digest->shape;
  tensor->dtype = digest->dtype;
  if (digest->stats) tensor->stats = *digest->stats;
  std::ranges::move(digest->derived, std::back_inserter(tensor->derived));
  if (plan.value) tensor->value = std::make_shared<const Tensor>(std::move(*swept.tensor));
}

void take_reduction(const SweptValue& swept, StepTensor* tensor) {
  const auto number = reduce::to_double(Tensor(*swept.value));
  if (!number) return;
  tensor->reductions.emplace_back(*swept.reduction, *number);
  if (const auto stat = stat_of(*swept.reduction)) tensor->stats.set(*stat, *number);
}

}  // namespace

std::shared_ptr<ValueDigest> digest_value(const TensorView& value, const NamePlan& plan) {
  auto digest = std::make_shared<ValueDigest>(ValueDigest{.shape = value.shape(), .dtype = value.dtype()});
  if (!plan.stats.empty() && value.dtype() != DType::kString) {
    if (auto numbers = stats(value, plan.stats); numbers.ok()) digest->stats = *numbers;
  }
  for (const std::string_view statistic : plan.derived) {
    if (auto derived = derive(statistic, value)) {
      digest->derived.emplace_back(statistic, std::make_shared<const Tensor>(std::move(*derived)));
    }
  }
  return digest;
}

StepTensor* StepAssembly::find_or_add(std::string_view name, const SweptValue& swept, const NamePlan* plan,
                                      bool first_worker_only) {
  std::vector<std::size_t>& places = by_name_[name];
  for (const std::size_t place : places) {
    Slot& slot = tensors_[place];
    if (slot.tensor.worker == swept.worker) return &slot.tensor;
  }
  if (first_worker_only && !places.empty()) return nullptr;
  places.push_back(tensors_.size());
  tensors_.push_back({{.name = name, .worker = swept.worker, .order = tensors_.size()}, plan});
  return &tensors_.back().tensor;
}

void StepAssembly::add(const SweptValue& swept, const NamePlan& plan, bool first_worker_only) {
  const bool is_statistic = !plan.owner.empty();
  if (is_statistic) {
    StepTensor* owner = find_or_add(plan.owner, swept, plan.owner_plan, first_worker_only);
    if (owner != nullptr && swept.value != nullptr) {
      owner->derived.emplace_back(plan.statistic, std::make_shared<const Tensor>(*swept.value));
    }
    if (plan.needs.empty()) return;
  }
  StepTensor* tensor = find_or_add(swept.name, swept, &plan, first_worker_only);
  if (tensor == nullptr) return;
  if (swept.error != nullptr) {
    if (!tensor->error) tensor->error = *swept.error;
  } else if (swept.reduction) {
    take_reduction(swept, tensor);
  } else {
    take_value(swept, plan, tensor);
  }
}

std::span<const std::vector<const StepTensor*>> StepAssembly::match() {
  for (const Slot& slot : tensors_) {
    for (const std::uint32_t need : slot.plan->needs) matches_[need].push_back(&slot.tensor);
  }
  return matches_;
}

void StepAssembly::clear() {
  tensors_.clear();
  by_name_.clear();
  for (auto& match : matches_) match.clear();
}

}  // namespace tornasole::rules
