#include "trial/step_facts_column.h"

#include <optional>

namespace tornasole::trial {
namespace {

constexpr unsigned kHasOptimizerStep = 1U << 0U;
constexpr unsigned kHasGradScale = 1U << 1U;
// Two bits for each that is true or false: whether it is known, and what it is.
constexpr unsigned kTraining = 2;
constexpr unsigned kGradEnabled = 4;
constexpr unsigned kBackwardInEval = 6;

unsigned pack(std::optional<bool> truth, unsigned place) noexcept { return truth ? (*truth ? 3U : 1U) << place : 0U; }
std::optional<bool> unpack(unsigned known, unsigned place) noexcept {
  const unsigned bits = (known >> place) & 3U;
  return (bits & 1U) != 0 ? std::optional((bits & 2U) != 0) : std::nullopt;
}

template <typename T>
void put(std::vector<T>* column, std::size_t place, T value, std::size_t part_count) {
  if (column->empty()) column->reserve(part_count);
  if (column->size() <= place) column->resize(place + 1);
  (*column)[place] = value;
}

}  // namespace

void StepFactsColumn::set(std::uint32_t part, const StepFacts& facts, std::size_t part_count) {
  const unsigned known = (facts.optimizer_step ? kHasOptimizerStep : 0U) | (facts.grad_scale ? kHasGradScale : 0U) |
                         pack(facts.training, kTraining) | pack(facts.grad_enabled, kGradEnabled) |
                         pack(facts.backward_in_eval, kBackwardInEval);
  if (known == 0) return;
  put(&known_, part, static_cast<std::uint8_t>(known), part_count);
  if (facts.optimizer_step) put(&optimizer_steps_, part, *facts.optimizer_step, part_count);
  if (facts.grad_scale) put(&grad_scales_, part, *facts.grad_scale, part_count);
}

StepFacts StepFactsColumn::get(std::uint32_t part) const noexcept {
  StepFacts facts;
  if (!has_any(part)) return facts;
  const unsigned known = known_[part];
  if ((known & kHasOptimizerStep) != 0) facts.optimizer_step = optimizer_steps_[part];
  if ((known & kHasGradScale) != 0) facts.grad_scale = grad_scales_[part];
  facts.training = unpack(known, kTraining);
  facts.grad_enabled = unpack(known, kGradEnabled);
  facts.backward_in_eval = unpack(known, kBackwardInEval);
  return facts;
}

std::int64_t StepFactsColumn::size_bytes() const noexcept {
  return static_cast<std::int64_t>(known_.capacity() + optimizer_steps_.capacity() * sizeof(std::int64_t) +
                                   grad_scales_.capacity() * sizeof(double));
}

}  // namespace tornasole::trial
