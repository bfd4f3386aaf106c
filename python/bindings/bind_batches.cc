// The callbacks that Keras calls before and after every batch. They are types of their own, written against the C API
// of Python: a batch of which nothing is due is counted here, with no frame of Python.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/edits.h"
#include "bindings/python_hook.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// What the callbacks of one hook share: whether batches may begin without the front end. It opens the gate when it has
// nothing under way; a change of what it goes by (`edits.count`), a failure that switched capture off
// (`guard.disable_smdebug`) and a request to stop are its own to look at.
class BatchGate {
 public:
  BatchGate(nb::object hook, nb::object edits, nb::object guard)
      : hook_(std::move(hook)),
        edits_(std::move(edits)),
        guard_(std::move(guard)),
        engine_(nb::inst_ptr<PythonHook>(hook_)),
        counter_(nb::inst_ptr<Edits>(edits_)) {}

  void open() {
    seen_ = counter_->count;
    is_open_ = true;
  }
  void close() noexcept { is_open_ = false; }
  bool is_open() const noexcept { return is_open_; }
  bool lets_pass() const {
    return is_open_ && counter_->count == seen_ && nb::object(guard_.attr(names().disabled)).is(Py_False) &&
           (engine_->expects_idle_step() || !engine_->stop_requested());
  }
  // Whether anything can be saved in the step. What the log raises is the guard's to judge.
  bool begin_step(int mode) {
    if (engine_->begin_idle_step(mode)) return false;
    try {
      if (engine_->begin_step(mode)) return true;
      engine_->expect_idle_steps(mode);
      return false;
    } catch (nb::python_error& error) {
      guard_.attr("handle")(error.value(), "the beginning of a batch");
      return false;
    }
  }

 private:
  struct Names {
    nb::object disabled = nb::str("disable_smdebug");
  };
  static const Names& names() {
    static const auto* made = new Names;
    return *made;
  }

  nb::object hook_, edits_, guard_;
  PythonHook* engine_;      // of hook_
  Edits* counter_;          // of edits_
  std::int64_t seen_ = -1;  // the count of edits when it was opened
  bool is_open_ = false;
};

// A gate, and the methods of the hook that a callback calls. The hook holds its callbacks: the collector of Python has
// to see what they hold.
class GatedMethods {
 public:
  GatedMethods(nb::object gate, nb::object due, nb::object otherwise)
      : gate_(std::move(gate)), due_(std::move(due)), otherwise_(std::move(otherwise)) {}

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(gate_.ptr());
    Py_VISIT(due_.ptr());
    Py_VISIT(otherwise_.ptr());
    return 0;
  }
  void forget() {
    due_.reset();
    otherwise_.reset();
  }

 protected:
  BatchGate& gate() const { return *nb::inst_ptr<BatchGate>(gate_); }
  PyObject* call_due(PyObject* arguments, PyObject* keywords) const {
    return PyObject_Call(due_.ptr(), arguments, keywords);
  }
  PyObject* call_otherwise(PyObject* arguments, PyObject* keywords) const {
    return PyObject_Call(otherwise_.ptr(), arguments, keywords);
  }

 private:
  nb::object gate_, due_, otherwise_;
};

// Before a batch. `due(batch, logs)` goes on with a step that was begun, `otherwise(batch, logs)` begins it.
class BatchBegin : public GatedMethods {
 public:
  BatchBegin(nb::object gate, int mode, nb::object due, nb::object otherwise)
      : GatedMethods(std::move(gate), std::move(due), std::move(otherwise)), mode_(mode) {}

  PyObject* call(PyObject* arguments, PyObject* keywords) const {
    if (!gate().lets_pass()) return call_otherwise(arguments, keywords);
    if (!gate().begin_step(mode_)) Py_RETURN_NONE;
    gate().close();
    return call_due(arguments, keywords);
  }

 private:
  int mode_;
};

// After a batch: `otherwise(batch, logs)` unless there is nothing to end.
class BatchEnd : public GatedMethods {
 public:
  BatchEnd(nb::object gate, nb::object otherwise) : GatedMethods(std::move(gate), nb::object(), std::move(otherwise)) {}

  PyObject* call(PyObject* arguments, PyObject* keywords) const {
    if (gate().is_open()) Py_RETURN_NONE;
    return call_otherwise(arguments, keywords);
  }
};

template <typename Callback>
PyObject* call_batch_callback(PyObject* self, PyObject* arguments, PyObject* keywords) {
  try {
    return nb::inst_ptr<Callback>(self)->call(arguments, keywords);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

template <typename Callback>
int traverse_batch_callback(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Callback>(self)->traverse(visit, arg) : 0;
}
template <typename Callback>
int clear_batch_callback(PyObject* self) {
  nb::inst_ptr<Callback>(self)->forget();
  return 0;
}
template <typename Callback>
PyType_Slot* batch_slots() {
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_batch_callback<Callback>)},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse_batch_callback<Callback>)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_batch_callback<Callback>)},
                                {0, nullptr}};
  return slots;
}

}  // namespace

void bind_batches(nb::module_& module) {
  nb::class_<BatchGate>(module, "BatchGate", "Whether batches of which nothing is due begin without the front end.")
      .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("hook"), nb::arg("edits"), nb::arg("guard"))
      .def("open", &BatchGate::open)
      .def("close", &BatchGate::close)
      .def("is_open", &BatchGate::is_open);
  nb::class_<BatchBegin>(module, "BatchBegin", nb::type_slots(batch_slots<BatchBegin>()),
                         "Called before a batch: begins its step, and goes on with due if anything can be saved.")
      .def(nb::init<nb::object, int, nb::object, nb::object>(), nb::arg("gate"), nb::arg("mode"), nb::arg("due"),
           nb::arg("otherwise"));
  nb::class_<BatchEnd>(module, "BatchEnd", nb::type_slots(batch_slots<BatchEnd>()),
                       "Called after a batch: calls otherwise unless there is nothing to end.")
      .def(nb::init<nb::object, nb::object>(), nb::arg("gate"), nb::arg("otherwise"));
}

}  // namespace tornasole::python
