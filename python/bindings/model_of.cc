#include "bindings/model_of.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/python_errors.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// The fields of one dict, taken one by one; those left at the end are not known.
class Fields {
 public:
  Fields(nb::handle dict, const char* what) : dict_(nb::cast<nb::dict>(dict)), what_(what) {}

  template <typename Value>
  Fields& take(const char* name, Value* out) {
    return take(name, [out](nb::handle value) { return nb::try_cast(value, *out); });
  }
  template <typename Item>
  Fields& take_list(const char* name, std::vector<Item>* out, Item (*item_of)(nb::handle)) {
    return take(name, [&](nb::handle value) {
      for (const nb::handle item : nb::iter(value)) out->push_back(item_of(item));
      return true;
    });
  }
  void finish() const {
    if (taken_ == nb::len(dict_)) return;
    raise({ErrorCode::kInvalid,
           fmt::format("{}: {} of {} keys are not known; known: {}", what_, nb::len(dict_) - taken_, nb::len(dict_),
                       known_),
           ErrorKind::kType});
  }

  template <typename Take>
    requires std::invocable<Take, nb::handle>
  Fields& take(const char* name, const Take& take_value) {
    known_ += (known_.empty() ? "" : ", ") + std::string(name);
    if (!dict_.contains(name)) return *this;
    ++taken_;
    const nb::object value = dict_[name];
    if (value.is_none() || take_value(value)) return *this;
    raise({ErrorCode::kInvalid, fmt::format("{}: {} cannot be {}", what_, name, nb::cast<std::string>(nb::repr(value))),
           ErrorKind::kType});
  }

 private:
  nb::dict dict_;
  const char* what_;
  std::size_t taken_ = 0;
  std::string known_;
};

ModelDescription::Module module_of(nb::handle dict) {
  ModelDescription::Module module;
  Fields(dict, "a module")
      .take("path", &module.path)
      .take("type", &module.type)
      .take("parent", &module.parent)
      .take("call_order", &module.call_order)
      .take("training", &module.training)
      .finish();
  return module;
}

ModelDescription::Parameter parameter_of(nb::handle dict) {
  ModelDescription::Parameter parameter;
  Fields(dict, "a parameter")
      .take("name", &parameter.name)
      .take("module", &parameter.module)
      .take("shape", &parameter.shape)
      .take("dtype", &parameter.dtype)
      .take("requires_grad", &parameter.requires_grad)
      .take("tied", &parameter.tied)
      .finish();
  return parameter;
}

ModelDescription::Loss loss_of(nb::handle dict) {
  ModelDescription::Loss loss;
  Fields(dict, "a loss")
      .take("name", &loss.name)
      .take("type", &loss.type)
      .take("predictions", &loss.predictions)
      .take("labels", &loss.labels)
      .finish();
  return loss;
}

ModelDescription::Optimizer optimizer_of(nb::handle dict) {
  ModelDescription::Optimizer optimizer;
  Fields(dict, "an optimizer")
      .take("type", &optimizer.type)
      .take("hyperparameters", &optimizer.hyperparameters)
      .take("groups", &optimizer.groups)
      .finish();
  return optimizer;
}

}  // namespace

ModelDescription model_of(nb::handle dict) {
  ModelDescription model;
  std::map<std::string, std::vector<double>> bounds;
  Fields(dict, "a model")
      .take_list("modules", &model.modules, module_of)
      .take_list("parameters", &model.parameters, parameter_of)
      .take_list("losses", &model.losses, loss_of)
      .take("inputs", &model.inputs)
      .take_list("optimizers", &model.optimizers, optimizer_of)
      .take("bounds", &bounds)
      .take("data", &model.data)
      .take("versions", &model.versions)
      .take("device", &model.device)
      .finish();
  for (const auto& [tensor, ends] : bounds) {
    if (ends.size() == 2) model.bounds[tensor] = {ends[0], ends[1]};
  }
  return model;
}

StepFacts facts_of(nb::handle dict) {
  StepFacts facts;
  Fields(dict, "the facts of a step")
      .take("optimizer_step", &facts.optimizer_step)
      .take("training", &facts.training)
      .take("grad_enabled", &facts.grad_enabled)
      .take("backward_in_eval", &facts.backward_in_eval)
      .take("grad_scale", &facts.grad_scale)
      .finish();
  return facts;
}

}  // namespace tornasole::python
