// The callbacks that PyTorch calls while a step is captured. They are types of their own, written against the C API of
// Python, since they run for every module and every parameter: no frame, no argument parsing, no wrapper.
//
// A callback is never pickled or copied with the module it hangs on: a copy gets a callable of the standard library
// that takes anything and does nothing.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/python_hook.h"
#include "bindings/torch_callbacks.h"
#include "bindings/torch_model.h"
#include "bindings/torch_steps.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// Where tensors go. `rescue(save, name, tensor, error)` gets those the engine cannot take as they are; it never raises.
class Sink {
 public:
  Sink(nb::object hook, nb::object rescue)
      : hook_(std::move(hook)), rescue_(std::move(rescue)), engine_(nb::inst_ptr<PythonHook>(hook_)) {}

  // `save(engine)` does without Python; what it cannot do is done once more as any caller would, for the error to be
  // the one that any caller gets.
  template <typename Save>
  void give(const nb::object& method, nb::handle name, nb::handle tensor, const Save& save) const {
    try {
      save(*engine_);
      return;
    } catch (...) {
      PyErr_Clear();
    }
    PyObject* arguments[] = {hook_.ptr(), name.ptr(), tensor.ptr()};
    const nb::object done = nb::steal(PyObject_VectorcallMethod(method.ptr(), arguments, 3, nullptr));
    if (done.is_valid()) return;
    PyObject *type = nullptr, *error = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    const nb::object types[] = {nb::steal(type), nb::steal(trace)};
    const nb::object why = nb::steal(error);
    rescue_(hook_.attr(method), name, tensor, why);
  }

 private:
  nb::object hook_, rescue_;
  PythonHook* engine_;  // of hook_
};

struct Methods {
  nb::object save = nb::str("save"), save_input = nb::str("save_input"), save_output = nb::str("save_output");
};
const Methods& methods() {
  static const auto* names = new Methods;
  return *names;
}

// Every tensor of a value, depth first through tuples, lists and the values of dicts.
constexpr int kMaxDepth = 32;
template <typename Use>
void each_tensor(nb::handle value, const Use& use, int depth = 0) {
  if (is_tensor(value)) return use(value);
  if (depth >= kMaxDepth) return;
  if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
    const nb::object items = nb::steal(PySequence_Fast(value.ptr(), "a tuple or a list"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
      each_tensor(PySequence_Fast_GET_ITEM(items.ptr(), i), use, depth + 1);
    }
  } else if (PyDict_Check(value.ptr())) {
    const nb::object values = nb::steal(PyDict_Values(value.ptr()));
    each_tensor(values, use, depth + 1);
  }
}

// After a module's forward pass: its inputs, then its outputs.
class ForwardTap {
 public:
  // `state`: of the steps, for a loss whose values without gradients belong to a step only until an optimizer has used
  // it; none for others.
  ForwardTap(nb::object hook, nb::object name, nb::object rescue, nb::object state)
      : sink_(std::move(hook), std::move(rescue)),
        name_(std::move(name)),
        module_(nb::cast<std::string>(name_)),
        state_(std::move(state)) {}

  void call(nb::handle inputs, nb::handle outputs) {
    if (is_in_backward() || is_tracing()) return;
    if (!state_.is_none() && is_of_another_step(*nb::inst_ptr<StepState>(state_))) return;
    if (calls_++ == 0) first_call_ = next_call();
    each_tensor(inputs, [&](nb::handle tensor) {
      ++inputs_;
      sink_.give(methods().save_input, name_, tensor, [&](PythonHook& hook) { hook.offer_input(module_, tensor); });
    });
    each_tensor(outputs, [&](nb::handle tensor) {
      ++outputs_;
      sink_.give(methods().save_output, name_, tensor, [&](PythonHook& hook) { hook.offer_output(module_, tensor); });
    });
  }
  nb::object name() const { return name_; }
  int calls() const noexcept { return calls_; }
  int inputs() const noexcept { return inputs_; }
  int outputs() const noexcept { return outputs_; }
  std::int64_t first_call() const noexcept { return first_call_; }

 private:
  static std::int64_t next_call() noexcept {
    static std::atomic<std::int64_t> calls = 0;
    return calls.fetch_add(1, std::memory_order_relaxed);
  }

  Sink sink_;
  nb::object name_;
  ModuleName module_;
  nb::object state_;
  std::int64_t first_call_ = -1;              // its place among the first calls of all taps
  int calls_ = 0, inputs_ = 0, outputs_ = 0;  // since it was made
};

// One tensor under one name.
class TensorSink {
 public:
  TensorSink(nb::object hook, nb::object name, nb::object rescue)
      : sink_(std::move(hook), std::move(rescue)), name_(std::move(name)), tensor_name_(nb::cast<std::string>(name_)) {}
  void give(nb::handle tensor) {
    sink_.give(methods().save, name_, tensor, [&](PythonHook& hook) { hook.save(tensor_name_, tensor); });
  }
  nb::object name() const { return name_; }

 private:
  Sink sink_;
  nb::object name_;
  TensorName tensor_name_;
};

// A gradient, when the backward pass has it.
class GradientTap {
 public:
  GradientTap(nb::object hook, nb::object name, nb::object rescue)
      : sink_(std::move(hook), std::move(name), std::move(rescue)) {}
  void call(nb::handle gradient) {
    if (is_tensor(gradient)) sink_.give(gradient);
  }
  nb::object name() const { return sink_.name(); }

 private:
  TensorSink sink_;
};

// Parameters, given to the hook one after the other at the start of each step.
class TensorList {
 public:
  TensorList(nb::object hook, nb::object rescue) : hook_(std::move(hook)), rescue_(std::move(rescue)) {}
  void add(nb::object name, nb::object tensor) {
    tensors_.emplace_back(TensorSink(hook_, std::move(name), rescue_), std::move(tensor));
  }
  void save() {
    for (auto& [sink, tensor] : tensors_) sink.give(tensor);
  }
  std::size_t size() const noexcept { return tensors_.size(); }

 private:
  nb::object hook_, rescue_;
  std::vector<std::pair<TensorSink, nb::object>> tensors_;
};

PyObject* call_forward_tap(PyObject* self, PyObject* arguments, PyObject*) {
  return answer([&] {
    if (PyTuple_GET_SIZE(arguments) != 3) return;
    nb::inst_ptr<ForwardTap>(self)->call(PyTuple_GET_ITEM(arguments, 1), PyTuple_GET_ITEM(arguments, 2));
  });
}
PyObject* call_gradient_tap(PyObject* self, PyObject* arguments, PyObject*) {
  return answer([&] {
    if (PyTuple_GET_SIZE(arguments) != 1) return;
    nb::inst_ptr<GradientTap>(self)->call(PyTuple_GET_ITEM(arguments, 0));
  });
}
PyType_Slot forward_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_forward_tap)}, {0, nullptr}};
PyType_Slot gradient_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_gradient_tap)}, {0, nullptr}};

}  // namespace

KnownModel::KnownModel(nb::list places, nb::list sizes, nb::object parameters)
    : places_(std::move(places)), sizes_(std::move(sizes)), parameters_(std::move(parameters)) {}

bool KnownModel::is_unchanged() const {
  for (nb::handle entry : sizes_) {
    if (PyDict_GET_SIZE(PyTuple_GET_ITEM(entry.ptr(), 0)) != PyLong_AsSsize_t(PyTuple_GET_ITEM(entry.ptr(), 1))) {
      return false;
    }
  }
  static const auto* requires_grad = new nb::object(nb::str("requires_grad"));
  for (nb::handle entry : places_) {
    PyObject* found = PyDict_GetItemWithError(PyTuple_GET_ITEM(entry.ptr(), 0), PyTuple_GET_ITEM(entry.ptr(), 1));
    if (found == nullptr || found != PyTuple_GET_ITEM(entry.ptr(), 2)) return false;
    PyObject* known_flag = PyTuple_GET_ITEM(entry.ptr(), 3);
    if (known_flag == Py_None) continue;
    const nb::object flag = nb::steal(PyObject_GetAttr(found, requires_grad->ptr()));
    if (!flag.is_valid()) nb::raise_python_error();
    if (flag.ptr() != known_flag) return false;
  }
  return true;
}

void KnownModel::save_parameters() const {
  if (!parameters_.is_none()) nb::inst_ptr<TensorList>(parameters_)->save();
}

void bind_torch(nb::module_& module) {
  nb::class_<ForwardTap>(module, "ForwardTap", nb::type_slots(forward_slots),
                         "Called after a module's forward pass: gives its inputs and outputs to the hook.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object>(), nb::arg("hook"), nb::arg("name"),
           nb::arg("rescue"), nb::arg("state").none() = nb::none())
      .def_prop_ro("name", &ForwardTap::name)
      .def_prop_ro("calls", &ForwardTap::calls)
      .def_prop_ro("inputs", &ForwardTap::inputs)
      .def_prop_ro("outputs", &ForwardTap::outputs)
      .def_prop_ro("first_call", &ForwardTap::first_call, "Its place among the first calls of all taps; -1: never.")
      .def("__reduce__", &nothing_reduced);
  nb::class_<GradientTap>(module, "GradientTap", nb::type_slots(gradient_slots),
                          "Called with a parameter's gradient in the backward pass: gives it to the hook.")
      .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("hook"), nb::arg("name"), nb::arg("rescue"))
      .def_prop_ro("name", &GradientTap::name)
      .def("__reduce__", &nothing_reduced);
  nb::class_<TensorList>(module, "TensorList", "Tensors that are given to the hook at each step, under their names.")
      .def(nb::init<nb::object, nb::object>(), nb::arg("hook"), nb::arg("rescue"))
      .def("add", &TensorList::add, nb::arg("name"), nb::arg("tensor"))
      .def("save", &TensorList::save)
      .def("__len__", &TensorList::size);
  nb::class_<KnownModel>(module, "KnownModel", "A model as it was found, and what is saved as its steps begin.")
      .def(nb::init<nb::list, nb::list, nb::object>(), nb::arg("places"), nb::arg("sizes"),
           nb::arg("parameters").none(),
           "`places`: (dict, key, parameter, requires_grad) or (dict, key, part, None) each; `sizes`: (dict, members) "
           "each; `parameters`: a TensorList, or None.")
      .def("is_unchanged", &KnownModel::is_unchanged, "Whether parameters and parts are where they were found.");
}

}  // namespace tornasole::python
