#pragma once

// What callbacks that PyTorch calls have in common.

#include <nanobind/nanobind.h>

namespace tornasole::python {

// What is needed of PyTorch; made once torch was imported, never destroyed.
struct TorchTypes {
  nanobind::object tensor;
  nanobind::object current_graph_task;  // none before PyTorch 2.1
  nanobind::object is_grad_enabled;
  nanobind::object is_in_transform;  // none before PyTorch 2.0
  nanobind::object is_tracing;
};

inline const TorchTypes& torch_types() {
  static const TorchTypes* types = [] {
    const auto torch = nanobind::module_::import_("torch");
    auto* made = new TorchTypes{torch.attr("Tensor"), nanobind::none(), torch.attr("is_grad_enabled"), nanobind::none(),
                                torch.attr("_C").attr("_is_tracing")};
    if (nanobind::hasattr(torch.attr("_C"), "_current_graph_task_id")) {
      made->current_graph_task = torch.attr("_C").attr("_current_graph_task_id");
    }
    const nanobind::object transforms = nanobind::getattr(torch.attr("_C"), "_functorch", nanobind::none());
    made->is_in_transform = nanobind::getattr(transforms, "is_functorch_wrapped_tensor", nanobind::none());
    return made;
  }();
  return *types;
}

// A new reference, as functions of Python's C API give them; null is an error of Python's.
inline nanobind::object checked(PyObject* made) {
  if (made == nullptr) nanobind::raise_python_error();
  return nanobind::steal(made);
}

inline nanobind::object interned(const char* text) { return checked(PyUnicode_InternFromString(text)); }

inline nanobind::object attribute(nanobind::handle object, const nanobind::object& name) {
  return checked(PyObject_GetAttr(object.ptr(), name.ptr()));
}

inline nanobind::object weak_reference(nanobind::handle object) {
  return checked(PyWeakref_NewRef(object.ptr(), nullptr));
}
// What a weak reference points to; none if that is gone.
inline nanobind::object referent(const nanobind::object& weak) { return checked(PyObject_CallNoArgs(weak.ptr())); }

inline bool is_tensor(nanobind::handle value) {
  return PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(torch_types().tensor.ptr())) != 0;
}

// A forward pass inside a backward pass computes activations again that were seen already.
inline bool is_in_backward() {
  const nanobind::object& function = torch_types().current_graph_task;
  if (function.is_none()) return false;
  return PyLong_AsLong(checked(PyObject_CallNoArgs(function.ptr())).ptr()) != -1;
}

// Whether a tensor stands for values inside torch.func.vmap and the like, where it has none of its own.
inline bool is_in_transform(nanobind::handle tensor) {
  const nanobind::object& function = torch_types().is_in_transform;
  return !function.is_none() && checked(PyObject_CallOneArg(function.ptr(), tensor.ptr())).ptr() == Py_True;
}

// torch.jit.trace writes down what is done with tensors.
inline bool is_tracing() { return checked(PyObject_CallNoArgs(torch_types().is_tracing.ptr())).ptr() == Py_True; }

inline bool is_grad_enabled() {
  return checked(PyObject_CallNoArgs(torch_types().is_grad_enabled.ptr())).ptr() == Py_True;
}

// A callback returns nothing and raises nothing: what went wrong is the rescue's to tell.
template <typename Run>
PyObject* answer(const Run& run) {
  try {
    run();
  } catch (nanobind::python_error& error) {
    error.discard_as_unraisable("a callback of tornasole");
  } catch (...) {
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

// contextlib.nullcontext().__exit__ takes any arguments and does nothing.
inline nanobind::tuple nothing_reduced(nanobind::handle) {
  const nanobind::object getter = nanobind::module_::import_("builtins").attr("getattr");
  const nanobind::object context = nanobind::module_::import_("contextlib").attr("nullcontext")();
  return nanobind::make_tuple(getter, nanobind::make_tuple(context, "__exit__"));
}

}  // namespace tornasole::python
