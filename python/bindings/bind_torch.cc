// The callbacks that PyTorch calls while a step is captured. They are types of their own, written against the C API of
// Python, since they run for every module and every parameter: no frame, no argument parsing, no wrapper.
//
// A callback is never pickled or copied with the module it hangs on: a copy gets a callable of the standard library
// that takes anything and does nothing.

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "bindings/bindings.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// What is needed of PyTorch; made once torch was imported, never destroyed.
struct TorchTypes {
  nb::object tensor;
  nb::object current_graph_task;  // none before PyTorch 2.1
};

const TorchTypes& torch_types() {
  static const TorchTypes* types = [] {
    const nb::module_ torch = nb::module_::import_("torch");
    auto* made = new TorchTypes{torch.attr("Tensor"), nb::none()};
    if (nb::hasattr(torch.attr("_C"), "_current_graph_task_id")) {
      made->current_graph_task = torch.attr("_C").attr("_current_graph_task_id");
    }
    return made;
  }();
  return *types;
}

bool is_tensor(nb::handle value) {
  return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(torch_types().tensor.ptr())) != 0;
}

// A forward pass inside a backward pass computes activations again that were seen already.
bool is_in_backward() {
  const nb::object& function = torch_types().current_graph_task;
  if (function.is_none()) return false;
  const nb::object id = nb::steal(PyObject_CallNoArgs(function.ptr()));
  if (!id.is_valid()) nb::raise_python_error();
  return PyLong_AsLong(id.ptr()) != -1;
}

// Where tensors go. `rescue(save, name, tensor, error)` gets those the engine cannot take as they are; it never raises.
class Sink {
 public:
  Sink(nb::object hook, nb::object rescue) : hook_(std::move(hook)), rescue_(std::move(rescue)) {}

  void give(const nb::object& method, nb::handle name, nb::handle tensor) const {
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
  ForwardTap(nb::object hook, nb::object name, nb::object rescue)
      : sink_(std::move(hook), std::move(rescue)), name_(std::move(name)) {}

  void call(nb::handle inputs, nb::handle outputs) {
    if (is_in_backward()) return;
    ++calls_;
    each_tensor(inputs, [&](nb::handle tensor) {
      ++inputs_;
      sink_.give(methods().save_input, name_, tensor);
    });
    each_tensor(outputs, [&](nb::handle tensor) {
      ++outputs_;
      sink_.give(methods().save_output, name_, tensor);
    });
  }
  nb::object name() const { return name_; }
  int calls() const noexcept { return calls_; }
  int inputs() const noexcept { return inputs_; }
  int outputs() const noexcept { return outputs_; }

 private:
  Sink sink_;
  nb::object name_;
  int calls_ = 0, inputs_ = 0, outputs_ = 0;  // since it was made
};

// A gradient, when the backward pass has it.
class GradientTap {
 public:
  GradientTap(nb::object hook, nb::object name, nb::object rescue)
      : sink_(std::move(hook), std::move(rescue)), name_(std::move(name)) {}
  void call(nb::handle gradient) const {
    if (is_tensor(gradient)) sink_.give(methods().save, name_, gradient);
  }
  nb::object name() const { return name_; }

 private:
  Sink sink_;
  nb::object name_;
};

// After the root's forward pass: notes that the pass came to its end, and tells somebody while that is wanted.
class PassEnd {
 public:
  void call() {
    is_open_ = false;
    if (listener_.is_valid() && !listener_.is_none()) listener_();
  }
  void open() noexcept { is_open_ = true; }
  bool is_open() const noexcept { return is_open_; }
  void set_listener(nb::object listener) { listener_ = std::move(listener); }

 private:
  bool is_open_ = false;
  nb::object listener_;
};

// A callback returns nothing and raises nothing: what went wrong is the rescue's to tell.
template <typename Run>
PyObject* answer(const Run& run) {
  try {
    run();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("a callback of tornasole");
  } catch (...) {
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

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
PyObject* call_pass_end(PyObject* self, PyObject*, PyObject*) {
  return answer([&] { nb::inst_ptr<PassEnd>(self)->call(); });
}
PyType_Slot end_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_pass_end)}, {0, nullptr}};
PyType_Slot forward_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_forward_tap)}, {0, nullptr}};
PyType_Slot gradient_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_gradient_tap)}, {0, nullptr}};

// contextlib.nullcontext().__exit__ takes any arguments and does nothing.
nb::tuple nothing_reduced(nb::handle) {
  const nb::object getter = nb::module_::import_("builtins").attr("getattr");
  const nb::object context = nb::module_::import_("contextlib").attr("nullcontext")();
  return nb::make_tuple(getter, nb::make_tuple(context, "__exit__"));
}

// One call for all parameters of a step.
void save_many(nb::object hook, const nb::list& names, const nb::list& tensors, nb::object rescue) {
  const Sink sink(std::move(hook), std::move(rescue));
  const Py_ssize_t count = std::min(PyList_GET_SIZE(names.ptr()), PyList_GET_SIZE(tensors.ptr()));
  for (Py_ssize_t i = 0; i < count; ++i) {
    sink.give(methods().save, PyList_GET_ITEM(names.ptr(), i), PyList_GET_ITEM(tensors.ptr(), i));
  }
}

// Whether every parameter is still where it was found, (dict of the module, key, parameter, requires_grad) each, and
// the dicts have as many members as then, (dict, size) each.
bool is_unchanged(const nb::list& entries, const nb::list& sizes) {
  for (nb::handle entry : sizes) {
    if (PyDict_GET_SIZE(PyTuple_GET_ITEM(entry.ptr(), 0)) != PyLong_AsSsize_t(PyTuple_GET_ITEM(entry.ptr(), 1))) {
      return false;
    }
  }
  static const auto* requires_grad = new nb::object(nb::str("requires_grad"));
  for (nb::handle entry : entries) {
    PyObject* found = PyDict_GetItemWithError(PyTuple_GET_ITEM(entry.ptr(), 0), PyTuple_GET_ITEM(entry.ptr(), 1));
    if (found == nullptr || found != PyTuple_GET_ITEM(entry.ptr(), 2)) return false;
    const nb::object flag = nb::steal(PyObject_GetAttr(found, requires_grad->ptr()));
    if (!flag.is_valid()) nb::raise_python_error();
    if (flag.ptr() != PyTuple_GET_ITEM(entry.ptr(), 3)) return false;
  }
  return true;
}

}  // namespace

void bind_torch(nb::module_& module) {
  nb::class_<ForwardTap>(module, "ForwardTap", nb::type_slots(forward_slots),
                         "Called after a module's forward pass: gives its inputs and outputs to the hook.")
      .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("hook"), nb::arg("name"), nb::arg("rescue"))
      .def_prop_ro("name", &ForwardTap::name)
      .def_prop_ro("calls", &ForwardTap::calls)
      .def_prop_ro("inputs", &ForwardTap::inputs)
      .def_prop_ro("outputs", &ForwardTap::outputs)
      .def("__reduce__", &nothing_reduced);
  nb::class_<GradientTap>(module, "GradientTap", nb::type_slots(gradient_slots),
                          "Called with a parameter's gradient in the backward pass: gives it to the hook.")
      .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("hook"), nb::arg("name"), nb::arg("rescue"))
      .def_prop_ro("name", &GradientTap::name)
      .def("__reduce__", &nothing_reduced);
  module.def("save_many", &save_many, nb::arg("hook"), nb::arg("names"), nb::arg("tensors"), nb::arg("rescue"),
             "Gives tensors to the hook under their names.");
  nb::class_<PassEnd>(module, "PassEnd", nb::type_slots(end_slots),
                      "Called after the root's forward pass: knows whether a pass is open, and calls its listener.")
      .def(nb::init<>())
      .def("open", &PassEnd::open)
      .def("is_open", &PassEnd::is_open)
      .def("set_listener", &PassEnd::set_listener, nb::arg("listener").none())
      .def("__reduce__", &nothing_reduced);
  module.def(
      "is_unchanged", &is_unchanged, nb::arg("entries"), nb::arg("sizes"),
      "Whether parameters are where they were found: (dict, key, parameter, requires_grad) and (dict, size) each.");
  module.def("is_in_backward", &is_in_backward, "Whether a backward pass of PyTorch runs on this thread.");
}

}  // namespace tornasole::python
