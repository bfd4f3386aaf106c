#pragma once

// What an optimizer of libtorch keeps: its state by parameter, its learning rates, its settings.

#include <torch/optim.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tornasole/libtorch_structure.h"
#include "tornasole/model.h"

namespace tornasole::libtorch {

namespace detail {

// The key was a text before libtorch 2.
template <typename Optimizer>
const torch::optim::OptimizerParamState* state_of(const Optimizer& optimizer, const at::Tensor& parameter) {
  const auto& states = optimizer.state();
  using Key = typename std::decay_t<decltype(states)>::key_type;
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream key;
    key << static_cast<const void*>(parameter.unsafeGetTensorImpl());
    const auto found = states.find(key.str());
    return found == states.end() ? nullptr : found->second.get();
  } else {
    const auto found = states.find(parameter.unsafeGetTensorImpl());
    return found == states.end() ? nullptr : found->second.get();
  }
}

using SaveState = std::function<void(const char* key, const at::Tensor& value)>;

// PyTorch keeps the number of steps as a float.
inline void save_step(std::int64_t step, const SaveState& save) {
  save("step", at::scalar_tensor(static_cast<double>(step), at::kFloat));
}

}  // namespace detail

// Calls `save` with each tensor an optimizer keeps for a parameter, under PyTorch's keys. Nothing before its first
// step, and for an optimizer that is not one of libtorch's with a state for each parameter.
inline void for_each_state(const torch::optim::Optimizer& optimizer, const at::Tensor& parameter,
                           const detail::SaveState& save) {
  const torch::optim::OptimizerParamState* state = detail::state_of(optimizer, parameter);
  const auto save_if = [&](const char* key, const at::Tensor& value) {
    if (value.defined()) save(key, value);
  };
  const auto save_adam = [&](const auto& adam) {
    detail::save_step(adam.step(), save);
    save_if("exp_avg", adam.exp_avg());
    save_if("exp_avg_sq", adam.exp_avg_sq());
    save_if("max_exp_avg_sq", adam.max_exp_avg_sq());
  };
  if (const auto* adam = dynamic_cast<const torch::optim::AdamParamState*>(state)) {
    save_adam(*adam);
  } else if (const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(state)) {
    save_adam(*adamw);
  } else if (const auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(state)) {
    save_if("momentum_buffer", sgd->momentum_buffer());
  } else if (const auto* rms = dynamic_cast<const torch::optim::RMSpropParamState*>(state)) {
    detail::save_step(rms->step(), save);
    save_if("square_avg", rms->square_avg());
    save_if("momentum_buffer", rms->momentum_buffer());
    save_if("grad_avg", rms->grad_avg());
  } else if (const auto* adagrad = dynamic_cast<const torch::optim::AdagradParamState*>(state)) {
    detail::save_step(adagrad->step(), save);
    save_if("sum", adagrad->sum());
  }
}

// Of one group; nothing where the optimizer has none.
inline std::optional<double> learning_rate(const torch::optim::OptimizerParamGroup& group) {
  if (!group.has_options()) return std::nullopt;
  try {
    return group.options().get_lr();
  } catch (const std::exception&) {  // an optimizer of somebody's own that does not say
    return std::nullopt;
  }
}

inline std::map<std::string, double> hyperparameters(const torch::optim::OptimizerOptions& options) {
  using namespace torch::optim;
  if (const auto* sgd = dynamic_cast<const SGDOptions*>(&options)) {
    return {{"lr", sgd->lr()},
            {"momentum", sgd->momentum()},
            {"dampening", sgd->dampening()},
            {"weight_decay", sgd->weight_decay()}};
  }
  if (const auto* adam = dynamic_cast<const AdamOptions*>(&options)) {
    return {{"lr", adam->lr()}, {"eps", adam->eps()}, {"weight_decay", adam->weight_decay()}};
  }
  if (const auto* adamw = dynamic_cast<const AdamWOptions*>(&options)) {
    return {{"lr", adamw->lr()}, {"eps", adamw->eps()}, {"weight_decay", adamw->weight_decay()}};
  }
  if (const auto* rms = dynamic_cast<const RMSpropOptions*>(&options)) {
    return {{"lr", rms->lr()},
            {"alpha", rms->alpha()},
            {"eps", rms->eps()},
            {"weight_decay", rms->weight_decay()},
            {"momentum", rms->momentum()}};
  }
  if (const auto* adagrad = dynamic_cast<const AdagradOptions*>(&options)) {
    return {{"lr", adagrad->lr()},
            {"lr_decay", adagrad->lr_decay()},
            {"eps", adagrad->eps()},
            {"weight_decay", adagrad->weight_decay()},
            {"initial_accumulator_value", adagrad->initial_accumulator_value()}};
  }
  return {};
}

inline ModelDescription::Optimizer describe(const torch::optim::Optimizer& optimizer, const ModelStructure& structure) {
  ModelDescription::Optimizer described;
  described.type = type_name(c10::demangle(typeid(optimizer).name()));
  const auto& groups = optimizer.param_groups();
  if (!groups.empty() && groups[0].has_options()) described.hyperparameters = hyperparameters(groups[0].options());
  for (const auto& group : groups) {
    std::vector<std::string>& names = described.groups.emplace_back();
    for (const at::Tensor& parameter : group.params()) {
      for (const ModelStructure::Parameter& known : structure.parameters) {
        if (known.tensor.is_same(parameter)) names.push_back(known.name);
      }
    }
  }
  return described;
}

}  // namespace tornasole::libtorch
