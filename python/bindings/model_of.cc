#include "bindings/model_of.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "bindings/python_errors.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

template <typename T>
void read(nb::handle dict, const char* key, T* value) {
  if (!PyDict_Check(dict.ptr())) {
    raise({ErrorCode::kInvalid, std::string("a dict with the key '") + key + "' is wanted", ErrorKind::kType});
  }
  const nb::handle found = PyDict_GetItemString(dict.ptr(), key);
  if (!found.is_valid() || found.is_none()) return;
  if (!nb::try_cast(found, *value)) {
    raise(
        {ErrorCode::kInvalid,
         std::string("'") + key + "' cannot be " + nb::cast<std::string>(nb::repr(found)) + ": another type is wanted",
         ErrorKind::kType});
  }
}

// The items of a list, each made by `make`.
template <typename T, typename Make>
void read_list(nb::handle dict, const char* key, std::vector<T>* items, const Make& make) {
  std::vector<nb::object> given;
  read(dict, key, &given);
  for (const nb::object& one : given) items->push_back(make(one));
}

ModelDescription::Module module_of(nb::handle dict) {
  ModelDescription::Module module;
  read(dict, "path", &module.path);
  read(dict, "type", &module.type);
  read(dict, "parent", &module.parent);
  read(dict, "call_order", &module.call_order);
  read(dict, "training", &module.training);
  return module;
}

ModelDescription::Parameter parameter_of(nb::handle dict) {
  ModelDescription::Parameter parameter;
  read(dict, "name", &parameter.name);
  read(dict, "module", &parameter.module);
  read(dict, "shape", &parameter.shape);
  read(dict, "dtype", &parameter.dtype);
  read(dict, "requires_grad", &parameter.requires_grad);
  read(dict, "tied", &parameter.tied);
  return parameter;
}

ModelDescription::Loss loss_of(nb::handle dict) {
  ModelDescription::Loss loss;
  read(dict, "name", &loss.name);
  read(dict, "type", &loss.type);
  read(dict, "predictions", &loss.predictions);
  read(dict, "labels", &loss.labels);
  return loss;
}

ModelDescription::Optimizer optimizer_of(nb::handle dict) {
  ModelDescription::Optimizer optimizer;
  read(dict, "type", &optimizer.type);
  read(dict, "hyperparameters", &optimizer.hyperparameters);
  read(dict, "groups", &optimizer.groups);
  return optimizer;
}

}  // namespace

StepFacts step_facts_of(nb::handle dict) {
  StepFacts facts;
  read(dict, "optimizer_step", &facts.optimizer_step);
  read(dict, "training", &facts.training);
  read(dict, "grad_enabled", &facts.grad_enabled);
  read(dict, "backward_in_eval", &facts.backward_in_eval);
  read(dict, "grad_scale", &facts.grad_scale);
  return facts;
}

ModelDescription model_of(nb::handle dict) {
  ModelDescription model;
  read_list(dict, "modules", &model.modules, module_of);
  read_list(dict, "parameters", &model.parameters, parameter_of);
  read_list(dict, "losses", &model.losses, loss_of);
  read(dict, "inputs", &model.inputs);
  read_list(dict, "optimizers", &model.optimizers, optimizer_of);
  std::map<std::string, std::vector<double>> bounds;
  read(dict, "bounds", &bounds);
  for (const auto& [name, ends] : bounds) {
    if (ends.size() != 2) {
      raise({ErrorCode::kInvalid, "the bounds of '" + name + "' are not two numbers, a low and a high one",
             ErrorKind::kValue});
    }
    model.bounds[name] = {ends[0], ends[1]};
  }
  read(dict, "data", &model.data);
  read(dict, "versions", &model.versions);
  read(dict, "device", &model.device);
  return model;
}

}  // namespace tornasole::python
