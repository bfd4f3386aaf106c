#include "rules/value_history.h"

namespace tornasole::rules {
namespace {

std::deque<PastValue> read_past(const StepView& step, const StepTensor& tensor, Mode mode,
                                const ValueHistory::Window& window) {
  std::deque<PastValue> values;
  const auto found = step.trial().tensor(tensor.name);
  if (!found) return values;
  const std::int64_t now = step_number(step, mode);
  for (const ModeStep past : found->prev_steps({mode, now}, window.count == 0 ? 0 : window.count + 1)) {
    if (past.number >= now || past.number < window.first_step.value_or(past.number)) continue;
    auto value = found->value(past, tensor.worker);
    if (value) values.push_back({past.number, std::make_shared<const Tensor>(std::move(*value))});
  }
  return values;
}

}  // namespace

std::int64_t step_number(const StepView& step, Mode mode) noexcept {
  return mode == Mode::kGlobal ? step.global_step().number : step.step().number;
}

std::deque<PastValue>& ValueHistory::before(const StepView& step, const StepTensor& tensor, Mode mode,
                                            const Window& window) {
  Kept& kept = kept_.of(tensor, mode);
  if (!kept.is_filled) {
    kept.values = read_past(step, tensor, mode, window);
    kept.is_filled = true;
  }
  const auto is_outside = [&] {
    return (window.count > 0 && kept.values.size() > window.count) ||
           (window.first_step && kept.values.front().step < *window.first_step);
  };
  while (!kept.values.empty() && is_outside()) kept.values.pop_front();
  return kept.values;
}

}  // namespace tornasole::rules
