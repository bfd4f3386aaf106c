#include "bindings/model_of.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>

#include "bindings/dict_of.h"
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

template <typename T, typename... Rest>
void read(nb::handle dict, const char* key, T* value, const Rest&... rest) {
  read(dict, key, value);
  read(dict, rest...);
}

// The items of a list, each made by `make`.
template <typename T, typename Make>
void read_list(nb::handle dict, const char* key, std::vector<T>* items, const Make& make) {
  std::vector<nb::object> given;
  read(dict, key, &given);
  for (const nb::object& one : given) items->push_back(make(one));
}

ModelDescription::Module module_of(nb::handle dict) {
  ModelDescription::Module made;
  read(dict, "path", &made.path, "type", &made.type, "parent", &made.parent, "call_order", &made.call_order, "training",
       &made.training, "activation", &made.activation);
  return made;
}

ModelDescription::Parameter parameter_of(nb::handle dict) {
  ModelDescription::Parameter made;
  read(dict, "name", &made.name, "module", &made.module, "shape", &made.shape, "dtype", &made.dtype, "requires_grad",
       &made.requires_grad, "tied", &made.tied, "placement", &made.placement);
  return made;
}

ModelDescription::Loss loss_of(nb::handle dict) {
  ModelDescription::Loss made;
  read(dict, "name", &made.name, "type", &made.type, "predictions", &made.predictions, "labels", &made.labels);
  return made;
}

ModelDescription::Optimizer optimizer_of(nb::handle dict) {
  ModelDescription::Optimizer made;
  read(dict, "type", &made.type, "hyperparameters", &made.hyperparameters, "groups", &made.groups);
  return made;
}

}  // namespace

StepFacts step_facts_of(nb::handle dict) {
  StepFacts made;
  read(dict, "optimizer_step", &made.optimizer_step, "training", &made.training, "grad_enabled", &made.grad_enabled,
       "backward_in_eval", &made.backward_in_eval, "grad_scale", &made.grad_scale);
  return made;
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

namespace {

nb::str text(const std::string& value) { return nb::str(value.data(), value.size()); }

template <typename T>
void write(nb::dict* dict, const char* key, const std::optional<T>& value) {
  if (value) (*dict)[key] = *value;
}

nb::dict module_dict(const ModelDescription::Module& module) {
  const nb::object order = module.call_order < 0 ? nb::object(nb::none()) : nb::object(nb::int_(module.call_order));
  return dict_of("class", module.type, "parent", module.parent, "call_order", order, "training", module.training,
                 "activation", module.activation);
}

nb::dict parameter_dict(const ModelDescription::Parameter& parameter) {
  return dict_of("module", parameter.module, "shape", parameter.shape, "dtype", parameter.dtype, "requires_grad",
                 parameter.requires_grad, "tied", parameter.tied, "placement", parameter.placement);
}

nb::dict loss_dict(const ModelDescription::Loss& loss) {
  return dict_of("name", loss.name, "class", loss.type, "predictions", loss.predictions, "labels", loss.labels);
}

nb::dict optimizer_dict(const ModelDescription::Optimizer& optimizer) {
  return dict_of("class", optimizer.type, "hyperparameters", optimizer.hyperparameters, "groups", optimizer.groups);
}

}  // namespace

nb::dict to_dict(const StepFacts& facts) {
  nb::dict dict;
  write(&dict, "optimizer_step", facts.optimizer_step);
  write(&dict, "training", facts.training);
  write(&dict, "grad_enabled", facts.grad_enabled);
  write(&dict, "backward_in_eval", facts.backward_in_eval);
  write(&dict, "grad_scale", facts.grad_scale);
  return dict;
}

nb::dict to_dict(const StoredModel& stored) {
  const ModelDescription& model = stored.model;
  nb::dict modules;
  for (const auto& module : model.modules) modules[text(module.path)] = module_dict(module);
  nb::dict parameters;
  for (const auto& parameter : model.parameters) parameters[text(parameter.name)] = parameter_dict(parameter);
  nb::list losses;
  for (const auto& loss : model.losses) losses.append(loss_dict(loss));
  nb::list optimizers;
  for (const auto& optimizer : model.optimizers) optimizers.append(optimizer_dict(optimizer));
  nb::dict bounds;
  for (const auto& [tensor, limits] : model.bounds) bounds[text(tensor)] = nb::make_tuple(limits.low, limits.high);
  return dict_of("modules", modules, "parameters", parameters, "losses", losses, "inputs", model.inputs, "optimizers",
                 optimizers, "bounds", bounds, "data", model.data, "framework", stored.framework, "versions",
                 model.versions, "device", model.device, "world_size", stored.world_size);
}

}  // namespace tornasole::python
