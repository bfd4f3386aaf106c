// The losses of a PyTorch program that builds no hook: its calls of losses and of backward(), as tornasole/run stands
// in for them. A program makes them at every step, so that what usually happens is done here, without Python: a loss
// that was called before is called again, it is finite, and the backward pass starts from it. The rest is Python's.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/python_hook.h"
#include "bindings/torch_callbacks.h"
#include "bindings/torch_steps.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// Interned, never destroyed.
struct Names {
  nb::object grad_fn = interned("grad_fn"), sequence = interned("_sequence_nr"), is_open = interned("_is_open"),
             disable_smdebug = interned("disable_smdebug"), keras = interned("keras");
};
const Names& names() {
  static const auto* made = new Names;
  return *made;
}

// The losses that were computed and not yet gone back from, by the nodes of the graph that made them. Nodes are known
// by their numbers: to keep them would keep all that their graphs hold.
class KnownLosses {
 public:
  // A loss as most are: one finite number in the memory of the processor. False, and nothing is noted, for others.
  bool note(nb::handle value) noexcept {
    try {
      if (!value.type().is(torch_types().tensor) || !is_finite_number(value)) return false;
      add(attribute(value, names().grad_fn));
      return true;
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  void add(const nb::object& node) {
    if (node.is_none()) return;
    if (losses_.size() == kMost) losses_.pop_front();
    losses_.push_back(key_of(node));
  }
  bool has(const nb::object& node) const {
    if (node.is_none() || losses_.empty()) return false;
    return std::ranges::find(losses_, key_of(node)) != losses_.end();
  }
  bool is_last(nb::handle value) const {
    if (losses_.empty()) return false;
    const nb::object node = attribute(value, names().grad_fn);
    return !node.is_none() && losses_.back() == key_of(node);
  }
  void clear() noexcept { losses_.clear(); }

  // A backward pass from the last loss, after a step as usual: nothing else is to be looked at.
  bool begin_backward(nb::handle value, StepState& state) {
    if (state.usual == nullptr || !state.is_pass_new || !is_last(value)) return false;
    state.is_pass_new = false;
    ++state.backward_passes;
    clear();
    return true;
  }

 private:
  static constexpr std::size_t kMost = 16;
  static constexpr std::uint64_t kNoNumber = std::numeric_limits<std::uint64_t>::max();

  struct Key {
    std::uint64_t number = kNoNumber;
    nb::object node;  // before PyTorch 2.1, where nodes have no numbers
    bool operator==(const Key& other) const { return number == other.number && node.is(other.node); }
  };
  static Key key_of(const nb::object& node) {
    const nb::object number = nb::steal(PyObject_CallMethodNoArgs(node.ptr(), names().sequence.ptr()));
    // Those that gather the gradient of a parameter have the greatest number of 64 bits, each of them.
    if (number.is_valid()) return {PyLong_AsUnsignedLongLongMask(number.ptr()), {}};
    PyErr_Clear();
    return {kNoNumber, node};
  }
  template <typename T>
  static T read_as(const TensorView& view) noexcept {
    T value;
    std::memcpy(&value, view.data(), sizeof value);
    return value;
  }
  static bool is_finite_number(nb::handle value) {
    const BorrowedArray array(value);
    const TensorView& view = array.view();
    if (view.element_count() != 1) return false;
    if (view.dtype() == DType::kFloat32) return std::isfinite(read_as<float>(view));
    return view.dtype() == DType::kFloat64 && std::isfinite(read_as<double>(view));
  }

  std::deque<Key> losses_;
};

// The calls that a thread is in.
struct Inside {
  bool is_loss = false;             // of a loss, or of a function that computes one
  PyObject* backward_of = nullptr;  // of backward(), of this value; it is compared, not used
};
thread_local Inside inside;

// A loss of torch.nn.functional that was recorded before: its value, and what it is given if `saves_inputs`.
class LossFunction {
 public:
  LossFunction(nb::object hook, const std::string& name, bool saves_inputs)
      : hook_(std::move(hook)),
        engine_(nb::inst_ptr<PythonHook>(hook_)),
        inputs_{TensorName(name + "_input_0"), TensorName(name + "_input_1")},
        value_(name),
        saves_inputs_(saves_inputs) {}

  // Each is false where a value is none that the engine takes as it is: such a call is Python's, and where it was found
  // out by trying, as with tensors of another device, so are all that follow.
  bool begin(nb::handle arguments) {
    if (is_given_up_) return false;
    const auto count = std::min<Py_ssize_t>(PyTuple_GET_SIZE(arguments.ptr()), std::ssize(inputs_));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!is_plain(PyTuple_GET_ITEM(arguments.ptr(), i))) return false;
    }
    return !saves_inputs_ || !engine_->anything_due() || tried([&] {
      for (Py_ssize_t i = 0; i < count; ++i) engine_->save(inputs_[i], PyTuple_GET_ITEM(arguments.ptr(), i));
    });
  }
  bool end(nb::handle value) {
    if (is_given_up_ || !is_plain(value)) return false;
    return !engine_->anything_due() || tried([&] { engine_->save_output(value_, value); });
  }

 private:
  static bool is_plain(nb::handle value) { return value.type().is(torch_types().tensor) && !is_in_transform(value); }
  template <typename Save>
  bool tried(const Save& save) {
    try {
      save();
    } catch (...) {
      PyErr_Clear();
      is_given_up_ = true;
    }
    return !is_given_up_;
  }

  nb::object hook_;
  PythonHook* engine_;  // of hook_
  TensorName inputs_[2];
  ModuleName value_;
  bool saves_inputs_;
  bool is_given_up_ = false;
};

// What happens at the calls that are stood in for: an enter_... before, and a leave_... after it where that was true.
class LossCalls {
 public:
  // Of `owner`, which lives as long as the process, the methods for what is not as usual: register_loss(module),
  // note_loss(value), begin_loss_function(name, arguments) -> bool, end_loss_function(name, value),
  // begin_backward(value), is_in_keras() -> bool; and failed(error), after which nothing is recorded.
  LossCalls(const nb::object& owner, nb::object guard)
      : register_loss_(owner.attr("register_loss")),
        note_loss_(owner.attr("note_loss")),
        begin_loss_function_(owner.attr("begin_loss_function")),
        end_loss_function_(owner.attr("end_loss_function")),
        begin_backward_(owner.attr("begin_backward")),
        is_in_keras_(owner.attr("is_in_keras")),
        failed_(owner.attr("failed")),
        guard_(std::move(guard)) {}

  // The hook that gets the losses from now on, and the state of its steps.
  void set_hook(nb::object hook, nb::object state) {
    hook_ = std::move(hook);
    state_ = std::move(state);
    last_loss_.reset();
    functions_.clear();
  }
  // Calls of this function need no Python any more, as long as the hook is the same.
  void know_function(nb::handle name, nb::object function) { functions_[name] = std::move(function); }
  void stop() noexcept { is_off_ = true; }
  bool is_off() const noexcept { return is_off_; }
  KnownLosses& known() noexcept { return known_; }
  std::int64_t passes() const noexcept { return passes_; }

  // A loss of torch.nn is called: registered before its first call, recorded by its own tap.
  bool enter_loss_module(nb::handle arguments) {
    if (inside.is_loss || !is_recording()) return false;
    inside.is_loss = true;
    safely([&] {
      const nb::handle module = first_of(arguments);
      if (last_loss_.is_valid() && referent(last_loss_).is(module)) return;
      register_loss_(module);
      last_loss_ = weak_reference(module);
    });
    return true;
  }
  void leave_loss_module(nb::handle value) {
    inside.is_loss = false;
    if (known_.note(value)) return;
    safely([&] { note_loss_(value); });
  }

  // A loss of torch.nn.functional: recorded under the function's name, unless another loss called it.
  bool enter_loss_function(nb::handle name, nb::handle arguments) {
    if (inside.is_loss || !is_recording()) return false;
    safely([&] {
      if (is_of_another_step(*nb::inst_ptr<StepState>(state_))) return;
      LossFunction* known = find_function(name);
      inside.is_loss =
          (known != nullptr && known->begin(arguments)) || nb::cast<bool>(begin_loss_function_(name, arguments));
    });
    return inside.is_loss;
  }
  void leave_loss_function(nb::handle name, nb::handle value) {
    leave_loss_module(value);
    safely([&] {
      LossFunction* known = find_function(name);
      if (known == nullptr || !known->end(value)) end_loss_function_(name, value);
    });
  }

  // A backward pass starts from the first argument. Subclasses of tensors call themselves once more.
  bool enter_backward(nb::handle arguments) {
    const nb::handle value = first_of(arguments);
    if (inside.backward_of == value.ptr() || is_in_keras()) return false;
    inside.backward_of = value.ptr();
    ++passes_;
    if (!is_recording()) return true;
    safely([&] {
      if (!known_.begin_backward(value, *nb::inst_ptr<StepState>(state_))) begin_backward_(value);
    });
    return true;
  }
  void leave_backward(nb::handle) noexcept { inside.backward_of = nullptr; }

 private:
  // What goes wrong here ends the recording, never the program. An interrupt is the program's.
  template <typename Run>
  void safely(const Run& run) {
    try {
      run();
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) {
        inside = {};
        throw;
      }
      is_off_ = true;
      failed_(error.value());
    } catch (const std::exception& error) {
      is_off_ = true;
      failed_(nb::handle(PyExc_RuntimeError)(error.what()));
    }
  }
  bool is_recording() {
    bool is_true = false;
    if (!hook_.is_valid() || is_off_) return false;
    safely([&] {
      is_true = attribute(hook_, names().is_open).ptr() == Py_True &&
                attribute(guard_, names().disable_smdebug).ptr() == Py_False;
    });
    return is_true;
  }
  // Asked only where there is Keras.
  bool is_in_keras() {
    bool is_true = false;
    if (PyDict_GetItem(PyImport_GetModuleDict(), names().keras.ptr()) == nullptr) return false;
    safely([&] { is_true = nb::cast<bool>(is_in_keras_()); });
    return is_true;
  }
  // Of a tuple with at least one, as a method that was called has them.
  static nb::handle first_of(nb::handle arguments) noexcept {
    return PyTuple_Check(arguments.ptr()) && PyTuple_GET_SIZE(arguments.ptr()) > 0
               ? nb::handle(PyTuple_GET_ITEM(arguments.ptr(), 0))
               : nb::handle(Py_None);
  }

  LossFunction* find_function(nb::handle name) const {
    PyObject* known = PyDict_GetItemWithError(functions_.ptr(), name.ptr());
    return known == nullptr ? nullptr : nb::inst_ptr<LossFunction>(known);
  }

  nb::object register_loss_, note_loss_, begin_loss_function_, end_loss_function_, begin_backward_, is_in_keras_,
      failed_;
  nb::object guard_;
  nb::object hook_, state_;
  nb::object last_loss_;  // that was called and is registered; a weak reference
  nb::dict functions_;    // LossFunction by name
  KnownLosses known_;     // since the last backward pass
  std::int64_t passes_ = 0;
  bool is_off_ = false;
};

}  // namespace

void bind_torch_losses(nb::module_& module) {
  nb::class_<KnownLosses>(module, "KnownLosses", "The losses that were computed and not yet gone back from.")
      .def("add", &KnownLosses::add, nb::arg("node").none())
      .def("has", &KnownLosses::has, nb::arg("node").none())
      .def("is_last", &KnownLosses::is_last, nb::arg("value"))
      .def("clear", &KnownLosses::clear);
  nb::class_<LossFunction>(module, "LossFunction", "A loss of torch.nn.functional that was recorded before.")
      .def(nb::init<nb::object, const std::string&, bool>(), nb::arg("hook"), nb::arg("name"), nb::arg("saves_inputs"));
  nb::class_<LossCalls>(module, "LossCalls", "What happens at the calls of losses and of backward().")
      .def(nb::init<const nb::object&, nb::object>(), nb::arg("owner"), nb::arg("guard"))
      .def("set_hook", &LossCalls::set_hook, nb::arg("hook"), nb::arg("state"), "The hook that gets the losses.")
      .def("know_function", &LossCalls::know_function, nb::arg("name"), nb::arg("function"),
           "Calls of this function need no Python any more, as long as the hook is the same.")
      .def("stop", &LossCalls::stop, "Nothing is recorded from now on.")
      .def_prop_ro("is_off", &LossCalls::is_off)
      .def_prop_ro("known", &LossCalls::known, nb::rv_policy::reference_internal, "Since the last backward pass.")
      .def_prop_ro("passes", &LossCalls::passes, "Backward passes so far.")
      .def("enter_loss_module", &LossCalls::enter_loss_module, nb::arg("arguments"))
      .def("leave_loss_module", &LossCalls::leave_loss_module, nb::arg("value").none())
      .def("enter_loss_function", &LossCalls::enter_loss_function, nb::arg("name"), nb::arg("arguments"))
      .def("leave_loss_function", &LossCalls::leave_loss_function, nb::arg("name"), nb::arg("value").none())
      .def("enter_backward", &LossCalls::enter_backward, nb::arg("arguments"))
      .def("leave_backward", &LossCalls::leave_backward, nb::arg("value").none());
}

}  // namespace tornasole::python
