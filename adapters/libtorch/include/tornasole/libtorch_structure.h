#pragma once

// What a model consists of, under the names of a trial: modules, parameters, buffers.

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tornasole/libtorch_view.h"
#include "tornasole/model.h"

namespace tornasole::libtorch {

// "torch::nn::LinearImpl" -> "Linear": the unqualified name of a module's type without Impl.
inline std::string type_name(std::string_view full) {
  std::string_view name = full.substr(0, full.find('<'));
  if (const std::size_t colon = name.rfind("::"); colon != std::string_view::npos) name.remove_prefix(colon + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.remove_suffix(4);
  return std::string(name);
}

struct ModelStructure {
  struct Parameter {
    std::string name;    // Net_fc1.weight
    std::string module;  // fc1; the root's own name for its parameters
    std::string key;     // weight
    at::Tensor tensor;
    std::vector<std::string> tied = {};  // other names of the same tensor
  };
  struct Module {
    std::string path;  // fc1; the root's name for itself
    std::string type, parent;
    const torch::nn::Module* module = nullptr;
  };

  ModelStructure(const torch::nn::Module& module, std::string root_name) : root(std::move(root_name)) {
    add(module, "", "");
    seen_.clear();
  }

  ModelDescription describe() const {
    ModelDescription model;
    for (const Module& one : modules) {
      model.modules.push_back(
          {.path = one.path, .type = one.type, .parent = one.parent, .training = one.module->is_training()});
    }
    for (const Parameter& one : parameters) {
      const auto dtype = dtype_of(one.tensor.scalar_type());
      model.parameters.push_back({.name = one.name,
                                  .module = one.module,
                                  .shape = one.tensor.sizes().vec(),
                                  .dtype = dtype ? std::string(dtype_name(*dtype)) : "unknown",
                                  .requires_grad = one.tensor.requires_grad(),
                                  .tied = one.tied});
      if (model.device.empty()) model.device = one.tensor.device().str();
    }
    model.inputs = {root + "_input_0"};
    model.versions["torch"] = TORCH_VERSION;
    return model;
  }

  std::string root;
  std::vector<Module> modules;
  std::vector<Parameter> parameters;  // each tensor once, under its first name
  std::vector<Parameter> buffers;

 private:
  // Not named_modules: that needs the root to belong to a shared_ptr.
  void add(const torch::nn::Module& module, const std::string& dotted, const std::string& parent) {
    if (!seen_.emplace(&module, 0).second) return;
    const std::string path = dotted.empty() ? root : dotted;
    modules.push_back({path, type_name(module.name()), parent, &module});
    const std::string prefix = root + "_" + (dotted.empty() ? "" : dotted + ".");
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      if (!item.value().defined()) continue;
      const auto [known, is_new] = seen_.emplace(item.value().unsafeGetTensorImpl(), parameters.size());
      if (is_new) {
        parameters.push_back({prefix + item.key(), path, item.key(), item.value()});
      } else {
        parameters[known->second].tied.push_back(prefix + item.key());
      }
    }
    for (const auto& item : module.named_buffers(/*recurse=*/false)) {
      if (item.value().defined()) buffers.push_back({prefix + item.key(), path, item.key(), item.value()});
    }
    for (const auto& item : module.named_children()) {
      add(*item.value(), dotted.empty() ? item.key() : dotted + "." + item.key(), path);
    }
  }

  std::unordered_map<const void*, std::size_t> seen_;  // modules, and parameters with their place
};

}  // namespace tornasole::libtorch
