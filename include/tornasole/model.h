#pragma once

// What the values of a run cannot tell: the model a hook describes, and the facts of one step.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tornasole {

// Roles of tensors and modules that values cannot tell (docs/format.md, model description).
struct ModelDescription {
  struct Module {
    std::string path, type, parent;
    std::int64_t call_order = -1;
    bool training = true;
    std::string activation = {};  // the function a layer applies to what it computes, where it is part of it
  };
  struct Parameter {
    std::string name, module;
    std::vector<std::int64_t> shape = {};
    std::string dtype;
    bool requires_grad = true;
    std::vector<std::string> tied = {};
    std::string placement = {};  // how it lies on several processes, in the framework's words; empty if it does not
  };
  struct Loss {
    std::string name, type;
    std::vector<std::string> predictions = {}, labels = {};
  };
  struct Optimizer {
    std::string type;
    std::map<std::string, double> hyperparameters = {};
    std::vector<std::vector<std::string>> groups = {};
  };
  // What a tensor's values are expected to lie in, ends included; infinite where there is no limit.
  struct Bounds {
    double low = 0, high = 0;
  };
  std::vector<Module> modules = {};
  std::vector<Parameter> parameters = {};
  std::vector<Loss> losses = {};
  std::vector<std::string> inputs = {};
  std::vector<Optimizer> optimizers = {};
  std::map<std::string, Bounds> bounds = {};         // tensor -> bounds, for the statistic unit_range
  std::map<std::string, std::string> data = {};      // evaluation set -> role
  std::map<std::string, std::string> versions = {};  // library -> version
  std::string device = {};
};

// A model description as it was stored, with what the hook itself adds to it.
struct StoredModel {
  ModelDescription model = {};
  std::string framework = {};   // the name used in configuration, for example "pytorch"
  std::int64_t world_size = 1;  // how many processes train together
};

// Facts about one step, stored in its index file. Unset ones are left out.
struct StepFacts {
  std::optional<std::int64_t> optimizer_step = {};
  std::optional<bool> training = {};
  std::optional<bool> grad_enabled = {};
  std::optional<bool> backward_in_eval = {};
  std::optional<double> grad_scale = {};
};

}  // namespace tornasole
