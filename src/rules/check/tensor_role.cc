#include "rules/check/tensor_role.h"

#include <algorithm>
#include <optional>

namespace tornasole::rules {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

struct LayerTensor {
  std::string_view path;
  bool is_input = false;
};
// "<path>_input_<n>" or "<path>_output_<n>"; in Keras "<path>/inputs" or "<path>/outputs".
std::optional<LayerTensor> parse_layer_tensor(std::string_view name) {
  for (const auto& [suffix, is_input] : {std::pair<std::string_view, bool>("/inputs", true), {"/outputs", false}}) {
    if (name.ends_with(suffix)) return LayerTensor{name.substr(0, name.size() - suffix.size()), is_input};
  }
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size() || name[digits] != '_') return std::nullopt;
  const std::string_view head = name.substr(0, digits);
  if (head.ends_with("_input")) return LayerTensor{head.substr(0, head.size() - 6), true};
  if (head.ends_with("_output")) return LayerTensor{head.substr(0, head.size() - 7), false};
  return std::nullopt;
}

// What a name alone says of an activation, for runs without a description.
std::string class_in_name(std::string_view name) {
  const std::string text = lower(name);
  for (const char* one : {"leakyrelu", "relu", "tanh", "sigmoid", "softmax", "gelu", "silu", "batchnorm", "layernorm",
                          "dropout", "embedding", "conv", "dense", "linear"}) {
    if (text.find(one) != std::string::npos) return one;
  }
  return {};
}

// "dense/weights/dense/kernel:0" -> "dense/kernelGrad", as Keras names what belongs together.
std::optional<std::string> keras_gradient(std::string_view parameter) {
  constexpr std::string_view kWeights = "/weights/";
  const std::size_t at = parameter.find(kWeights);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view variable = parameter.substr(at + kWeights.size());
  return std::string(variable.substr(0, variable.rfind(':'))) + "Grad";
}

}  // namespace

RoleFinder::RoleFinder(const Trial& trial) {
  for (const auto& [name, collection] : trial.collections()) {
    if (name == "all" || name == "default") continue;
    auto names = trial.tensor_names({.collection = name});
    if (names.ok()) collections_[name].insert(names->begin(), names->end());
  }
  if (trial.models().empty()) return;
  model_ = trial.models().begin()->second.model;
  std::int64_t order = 0;
  for (const ModelDescription::Module& module : model_->modules) {
    layers_[module.path] = {lower(module.type), lower(module.activation),
                            module.call_order >= 0 ? module.call_order : order, module.call_order};
    ++order;
  }
  order = 0;
  for (const ModelDescription::Parameter& parameter : model_->parameters) {
    parameters_[parameter.name] = {&parameter, order++};
    if (const auto gradient = keras_gradient(parameter.name)) by_gradient_.emplace(*gradient, parameter.name);
  }
  for (const ModelDescription::Loss& loss : model_->losses) {
    const auto add = [&](const std::string& name, Role role) {
      of_losses_[name] = {.role = role, .loss_class = lower(loss.type)};
    };
    add(loss.name, Role::kLoss);
    for (const std::string& name : loss.labels) add(name, Role::kLabels);
    for (const std::string& name : loss.predictions) add(name, Role::kPredictions);
  }
  inputs_.insert(model_->inputs.begin(), model_->inputs.end());
  for (const auto& [set, role] : model_->data) {
    if (role == "train") training_data_ = lower(set);
  }
}

bool RoleFinder::is_in(std::string_view collection, std::string_view name) const {
  const auto found = collections_.find(collection);
  return found != collections_.end() && found->second.contains(name);
}

TensorRole RoleFinder::parameter_role(std::string_view parameter) const {
  TensorRole role{.role = Role::kWeight, .parameter = std::string(parameter)};
  const auto found = parameters_.find(parameter);
  if (found == parameters_.end()) {
    if (parameter.ends_with("bias") || is_in("biases", parameter)) role.role = Role::kBias;
    return role;
  }
  const ModelDescription::Parameter& facts = *found->second.parameter;
  role.layer = facts.module;
  role.order = found->second.order;
  role.rank = static_cast<std::int64_t>(facts.shape.size());
  role.shape = Shape(facts.shape);
  role.requires_grad = facts.requires_grad;
  role.is_shard = facts.placement.find("Shard") != std::string::npos;
  if (role.rank < 2) role.role = Role::kBias;
  if (const auto layer = layers_.find(facts.module); layer != layers_.end()) {
    role.layer_class = layer->second.type;
    role.call_order = layer->second.call_order;
  }
  return role;
}

TensorRole RoleFinder::layer_role(std::string_view name) const {
  const auto tensor = parse_layer_tensor(name);
  if (!tensor) return {};
  TensorRole role{.role = tensor->is_input ? Role::kLayerInput : Role::kLayerOutput,
                  .layer = std::string(tensor->path)};
  if (const auto layer = layers_.find(tensor->path); layer != layers_.end()) {
    // What a layer gives is what its activation makes of it.
    const bool has_activation = !tensor->is_input && !layer->second.activation.empty();
    role.layer_class = has_activation ? layer->second.activation : layer->second.type;
    role.order = layer->second.order;
    return role;
  }
  // <path>.<function>()_<n>: a function called inside a layer.
  if (const std::size_t call = tensor->path.rfind("()"); call != std::string_view::npos) {
    const std::size_t dot = tensor->path.rfind('.', call);
    const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
    role.layer_class = lower(tensor->path.substr(begin, call - begin));
    if (const auto layer = layers_.find(tensor->path.substr(0, begin > 0 ? begin - 1 : 0)); layer != layers_.end()) {
      role.order = layer->second.order;
    }
    return role;
  }
  role.layer_class = class_in_name(tensor->path);
  return role;
}

// Boosting evaluates all its data sets at every step: "<data set>-<metric>".
bool RoleFinder::is_of_training_data(std::string_view name) const {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos || !layers_.empty()) return true;
  const std::string set = lower(name.substr(0, dash));
  return training_data_.empty() ? set.find("train") != std::string::npos : set == training_data_;
}

// Without a description: "<loss>_input_0" are predictions and "<loss>_input_1" labels, where the name is that of a
// loss.
TensorRole RoleFinder::loss_role(std::string_view name) const {
  if (const auto known = of_losses_.find(name); known != of_losses_.end()) return known->second;
  const auto tensor = parse_layer_tensor(name);
  const std::string type = tensor ? lower(tensor->path) : std::string();
  const bool is_loss_name = type.ends_with("loss") || type.ends_with("cross_entropy");
  if (is_in("losses", name) && !is_of_training_data(name)) return {.role = Role::kValidationLoss};
  if (is_in("losses", name)) return {.role = Role::kLoss, .loss_class = is_loss_name ? type : std::string()};
  if (model_ || !is_loss_name || !tensor->is_input) return {};
  const bool is_first = name.ends_with("_0");
  if (!is_first && !name.ends_with("_1")) return {};
  return {.role = is_first ? Role::kPredictions : Role::kLabels, .loss_class = type};
}

TensorRole RoleFinder::role_of(std::string_view name) const {
  if (name.starts_with("derived/")) return {};
  for (const auto& [prefix, kind] : {std::pair("gradient/", Role::kGradient), std::pair("gradients/", Role::kGradient),
                                     std::pair("optimizer_gradient/", Role::kOptimizerGradient),
                                     std::pair("scalar/gradient_before/", Role::kGradientBefore)}) {
    if (const auto parameter = after(name, prefix)) {
      const auto known = by_gradient_.find(*parameter);
      TensorRole role = parameter_role(known == by_gradient_.end() ? *parameter : known->second);
      role.role = kind;
      return role;
    }
  }
  if (const auto state = after(name, "optimizer_state/")) {
    const std::size_t slash = state->find('/');
    TensorRole role = parameter_role(slash == std::string_view::npos ? *state : state->substr(slash + 1));
    role.role = Role::kOptimizerState;
    return role;
  }
  if (name.starts_with("scalar/learning_rate")) return {.role = Role::kLearningRate};
  if (name == "scalar/loss_sign") return {.role = Role::kLossSign};
  if (name.starts_with("feature_importance/total_gain/")) return {.role = Role::kImportance};
  if (name.starts_with("hyperparameters/")) return {.role = Role::kHyperparameter};
  if (name == "trees/ID" || name == "trees/Yes" || name == "trees/No") return {.role = Role::kTreeTable};
  if (name == "scalar/grad_norm") return {.role = Role::kGradNorm};
  if (parameters_.contains(name)) return parameter_role(name);
  if (inputs_.contains(name)) return {.role = Role::kModelInput};
  if (TensorRole role = loss_role(name); role.role != Role::kOther) return role;
  if (name == "labels" || is_in("labels", name)) return {.role = Role::kLabels};
  if (is_in("inputs", name)) return {.role = Role::kModelInput};
  if (is_in("metrics", name)) return {.role = Role::kMetric};
  if (name == "predictions" || is_in("predictions", name)) {
    TensorRole role = layer_role(name);
    role.role = Role::kPredictions;
    return role;
  }
  if (!model_) {
    if (is_in("gradients", name)) return {.role = Role::kGradient, .parameter = std::string(name)};
    if (is_in("weights", name)) return parameter_role(name);
    if (is_in("biases", name)) return {.role = Role::kBias, .parameter = std::string(name)};
  }
  return layer_role(name);
}

}  // namespace tornasole::rules
