// Steps of a PyTorch training that are like the one before, told to the engine without Python.
//
// A hook has one StepState. Python counts a change up wherever something is changed that a captured step depends on; a
// step that begins with everything as it was needs no look at anything else: see CalmStep. What such a step asks of
// optimizers is RateTap's.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/edits.h"
#include "bindings/python_hook.h"
#include "bindings/torch_callbacks.h"
#include "bindings/torch_model.h"
#include "bindings/torch_steps.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// Interned, never destroyed.
struct Names {
  nb::object training = interned("training"), state = interned("state"), param_groups = interned("param_groups"),
             lr = interned("lr");
};
const Names& names() {
  static const auto* made = new Names;
  return *made;
}

// After the root's forward pass: notes that the pass came to its end, and tells somebody while that is wanted.
class PassEnd {
 public:
  void call() {
    is_open_ = false;
    if (listener_.is_valid() && !listener_.is_none()) listener_();
  }
  void open() noexcept { is_open_ = is_used_; }
  bool is_open() const noexcept { return is_open_; }
  void set_listener(nb::object listener) { listener_ = std::move(listener); }
  void set_used(bool is_used) noexcept { is_used_ = is_used; }

 private:
  bool is_open_ = false;
  bool is_used_ = true;  // hangs on the root
  nb::object listener_;
};

// The learning rates of optimizers, at steps at which nothing else is wanted of them.
class RateTap {
 public:
  RateTap(nb::object hook, nb::object state)
      : owners_{std::move(hook), std::move(state)},
        engine_(nb::inst_ptr<PythonHook>(owners_[0])),
        state_(nb::inst_ptr<StepState>(owners_[1])) {}

  // `size`: of the state of which nobody wants anything.
  void add(nb::handle optimizer, Py_ssize_t size) { optimizers_.emplace_back(weak_reference(optimizer), size); }

  // False, and nothing is saved, if there is more to look at: an optimizer is gone, or keeps another state.
  bool save() {
    if (optimizers_.empty()) return false;
    std::vector<nb::object> alive;
    for (const auto& [known, size] : optimizers_) {
      nb::object optimizer = referent(known);
      if (optimizer.is_none() || PyObject_Size(attribute(optimizer, names().state).ptr()) != size) return false;
      alive.push_back(std::move(optimizer));
    }
    StepState::Rates rates;
    for (const nb::object& optimizer : alive) {
      const nb::object groups = attribute(optimizer, names().param_groups);
      for (nb::handle group : groups) rates.push_back(rate_of(group));
    }
    if (!state_->tell_rates(rates)) return true;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (i == names_.size()) names_.push_back("learning_rate/" + std::to_string(i));
      if (rates[i]) engine_->hook().save_scalar(names_[i], *rates[i]);
    }
    return true;
  }

 private:
  static std::optional<double> rate_of(nb::handle group) {
    const nb::object rate = nb::steal(PyObject_GetItem(group.ptr(), names().lr.ptr()));
    if (!rate.is_valid()) {
      PyErr_Clear();
      return std::nullopt;
    }
    const double value = PyFloat_AsDouble(rate.ptr());
    if (PyErr_Occurred() != nullptr) nb::raise_python_error();
    return value;
  }

  nb::object owners_[2];
  PythonHook* engine_;
  StepState* state_;
  std::vector<std::pair<nb::object, Py_ssize_t>> optimizers_;  // weak references, and how much state they keep
  std::vector<std::string> names_;                             // of rates
};

// Called after each step of each optimizer of the process: counts those of ours.
class StepCounter {
 public:
  // `ask(optimizer)` whether one that was never seen is ours; it makes it known.
  StepCounter(nb::object state, nb::object ask)
      : owner_(std::move(state)), state_(nb::inst_ptr<StepState>(owner_)), ask_(std::move(ask)) {}

  void call(nb::handle optimizer) {
    const Seen* seen = find(optimizer);
    if (seen == nullptr) {
      if (nb::cast<bool>(ask_(optimizer))) ++state_->optimizer_steps;
    } else if (seen->is_ours) {
      ++state_->optimizer_steps;
    }
  }
  void add(nb::handle optimizer, bool is_ours) {
    std::erase_if(seen_, [&](const Seen& one) { return one.is(optimizer) || one.is(nb::none()); });
    seen_.push_back({weak_reference(optimizer), is_ours});
  }
  std::optional<bool> is_ours(nb::handle optimizer) const {
    const Seen* seen = find(optimizer);
    return seen == nullptr ? std::nullopt : std::optional(seen->is_ours);
  }
  // Those that were seen and are no longer or not yet ours are asked about again.
  void forget_others() {
    std::erase_if(seen_, [](const Seen& one) { return !one.is_ours; });
  }
  nb::list all(bool ours) const {
    nb::list found;
    for (const Seen& one : seen_) {
      const nb::object optimizer = one.get();
      if (one.is_ours == ours && !optimizer.is_none()) found.append(optimizer);
    }
    return found;
  }

 private:
  struct Seen {
    nb::object known;  // a weak reference
    bool is_ours = false;
    nb::object get() const { return referent(known); }
    bool is(nb::handle optimizer) const { return get().is(optimizer); }
  };
  const Seen* find(nb::handle optimizer) const {
    const auto found = std::ranges::find_if(seen_, [&](const Seen& one) { return one.is(optimizer); });
    return found == seen_.end() ? nullptr : &*found;
  }

  nb::object owner_;
  StepState* state_;
  nb::object ask_;
  std::vector<Seen> seen_;
};

// Begins the step of a forward pass: by itself, while steps are like the one before.
class CalmStep {
 public:
  // What begin() says instead of a due_set.
  static constexpr std::int64_t kNothingToDo = -1;  // all is done, or a backward pass runs
  static constexpr std::int64_t kNotCalm = -2;      // nothing has begun

  CalmStep(nb::object hook, nb::object pass, nb::object state, nb::object edits)
      : owners_{std::move(hook), std::move(pass), std::move(state), std::move(edits)},
        engine_(nb::inst_ptr<PythonHook>(owners_[0])),
        pass_(nb::inst_ptr<PassEnd>(owners_[1])),
        state_(nb::inst_ptr<StepState>(owners_[2])),
        edits_(nb::inst_ptr<Edits>(owners_[3])) {}

  ~CalmStep() {
    if (state_->usual == this) state_->usual = nullptr;
  }
  CalmStep(const CalmStep&) = delete;
  CalmStep& operator=(const CalmStep&) = delete;

  // From now on a step like the one that is open is calm: while it wants the same (0: nothing), and nothing was
  // changed. `train_mode`: steps have it while the module is in training; None if the mode is the hook's. `rates` if
  // wanted; `model` if something of it is.
  void arm(std::int64_t due_set, std::int64_t seen_edits, std::optional<int> train_mode, nb::object rates,
           nb::object model) {
    due_set_ = due_set;
    changes_ = state_->changes;
    seen_edits_ = seen_edits;
    train_mode_ = train_mode;
    rates_ = std::move(rates);
    model_ = std::move(model);
  }
  void disarm() {
    due_set_ = -1;
    model_ = nb::none();  // it holds parameters
  }
  bool is_armed() const noexcept { return due_set_ >= 0 && state_->changes == changes_; }
  std::int64_t due_set() const noexcept { return due_set_; }

  // The due_set of the step if that differs, the step before was not as usual or the model changed; else kNothingToDo.
  std::int64_t begin_calm(nb::handle module) {
    if (!is_armed() || edits_->count != seen_edits_ || state_->copies != 0) return kNotCalm;
    const bool is_training = attribute(module, names().training).ptr() == Py_True;
    if (train_mode_ && (!is_training || state_->untold_steps <= 0)) return kNotCalm;
    if (is_in_backward()) return kNothingToDo;
    state_->untold_steps -= train_mode_ ? 1 : 0;
    const bool has_gradients = is_grad_enabled();
    const std::int64_t due_set = begin_step(train_mode_, is_training, has_gradients);
    if (due_set == 0 && due_set_ == 0) return kNothingToDo;
    if (due_set != due_set_ || state_->usual != this || !is_training || !has_gradients) return due_set;
    const nb::object known = model_;  // whoever changes it meanwhile disarms
    const auto* model = known.is_none() ? nullptr : nb::inst_ptr<KnownModel>(known);
    if (model != nullptr && !model->is_unchanged()) return due_set;
    state_->is_pass_new = true;
    if (!rates_.is_none() && !nb::inst_ptr<RateTap>(rates_)->save()) return due_set;
    if (model != nullptr) model->save_parameters();
    return kNothingToDo;
  }

  // The due_set of a step that begins, 0 if nothing is due, kNothingToDo if a backward pass runs.
  std::int64_t begin(std::optional<int> mode, bool is_training) {
    if (is_in_backward()) return kNothingToDo;
    return begin_step(mode, is_training, is_grad_enabled());
  }

  // Whether the open step is like others.
  void set_usual(bool is_usual) noexcept {
    state_->usual = is_usual ? this : nullptr;
    state_->is_pass_new = is_usual;
  }

 private:
  // Whether steps like the open one are calm.
  bool is_of_set() const noexcept {
    return is_armed() && static_cast<std::int64_t>(engine_->due_set()) == due_set_ && due_set_ > 0;
  }

  std::int64_t begin_step(std::optional<int> mode, bool is_training, bool has_gradients) {
    if (pass_->is_open()) {  // the last forward pass never came to its end
      pass_->call();
      engine_->end_step(/*is_partial=*/true);
    }
    const StepFacts usual = {
        .optimizer_step = state_->known_steps(), .training = is_training, .grad_enabled = has_gradients};
    state_->begin_step(has_gradients);
    if (is_of_set() && engine_->repeat_step(mode, usual)) {
      pass_->open();
      return due_set_;
    }
    if (!engine_->begin_step(mode)) return 0;
    if (is_of_set()) {
      engine_->hook().set_facts(usual);
      pass_->open();
    }
    return static_cast<std::int64_t>(engine_->due_set());
  }

  nb::object owners_[4];
  PythonHook* engine_;
  PassEnd* pass_;
  StepState* state_;
  Edits* edits_;
  nb::object rates_ = nb::none(), model_ = nb::none();
  std::int64_t due_set_ = -1, changes_ = -1, seen_edits_ = -1;
  std::optional<int> train_mode_;
};

PyObject* call_pass_end(PyObject* self, PyObject*, PyObject*) {
  return answer([&] { nb::inst_ptr<PassEnd>(self)->call(); });
}
PyObject* call_step_counter(PyObject* self, PyObject* arguments, PyObject*) {
  return answer([&] {
    if (PyTuple_GET_SIZE(arguments) > 0) nb::inst_ptr<StepCounter>(self)->call(PyTuple_GET_ITEM(arguments, 0));
  });
}
PyType_Slot counter_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_step_counter)}, {0, nullptr}};
PyType_Slot end_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_pass_end)}, {0, nullptr}};

}  // namespace

void bind_torch_steps(nb::module_& module) {
  nb::class_<StepState>(module, "StepState", "What the steps of one hook depend on.")
      .def(nb::init<>())
      .def_rw("changes", &StepState::changes, "Of anything that a captured step depends on.")
      .def_rw("copies", &StepState::copies, "From other devices, under way.")
      .def_rw("untold_steps", &StepState::untold_steps, "Steps of which a preset need not be told, from now on.")
      .def_rw("optimizer_steps", &StepState::optimizer_steps, "Taken so far.")
      .def_rw("counts_steps", &StepState::counts_steps, "Whether optimizer_steps are all that were taken.")
      .def_prop_ro("known_steps", &StepState::known_steps, "optimizer_steps, or None.")
      .def_rw("backward_passes", &StepState::backward_passes, "That were told of.")
      .def("tell_rates", &StepState::tell_rates, nb::arg("rates"), "Whether these learning rates are to be saved.")
      .def("is_left", &StepState::is_left, "Whether the program trains something else, of which no step knows.")
      .def("forget_usual", [](StepState& state) { state.usual = nullptr; }, "The open step is not like others.");
  nb::class_<PassEnd>(module, "PassEnd", nb::type_slots(end_slots),
                      "Called after the root's forward pass: knows whether a pass is open, and calls its listener.")
      .def(nb::init<>())
      .def("open", &PassEnd::open)
      .def("is_open", &PassEnd::is_open)
      .def("set_listener", &PassEnd::set_listener, nb::arg("listener").none())
      .def("set_used", &PassEnd::set_used, nb::arg("is_used"))
      .def("__reduce__", &nothing_reduced);
  nb::class_<RateTap>(module, "RateTap", "Saves learning rates.")
      .def(nb::init<nb::object, nb::object>(), nb::arg("hook"), nb::arg("state"))
      .def("add", &RateTap::add, nb::arg("optimizer"), nb::arg("size"))
      .def("save", &RateTap::save, "False if there is more to look at.");
  nb::class_<StepCounter>(module, "StepCounter", nb::type_slots(counter_slots),
                          "Called after each step of each optimizer: counts those of ours.")
      .def(nb::init<nb::object, nb::object>(), nb::arg("state"), nb::arg("ask"))
      .def("add", &StepCounter::add, nb::arg("optimizer"), nb::arg("is_ours"))
      .def("is_ours", &StepCounter::is_ours, nb::arg("optimizer"), "None for one that was never seen.")
      .def("forget_others", &StepCounter::forget_others, "Those that are not ours are asked about again.")
      .def("all", &StepCounter::all, nb::arg("ours"), "Those that are alive, in the order in which they were seen.");
  nb::class_<CalmStep>(module, "CalmStep", "Begins steps; alone, while they are like the one before.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object>(), nb::arg("hook"), nb::arg("pass_end"),
           nb::arg("state"), nb::arg("edits"))
      .def("arm", &CalmStep::arm, nb::arg("due_set"), nb::arg("seen_edits"), nb::arg("train_mode").none(),
           nb::arg("rates").none(), nb::arg("model").none(), "Steps like the open one are calm from now on.")
      .def("disarm", &CalmStep::disarm)
      .def("is_armed", &CalmStep::is_armed)
      .def_prop_ro("due_set", &CalmStep::due_set, "Of calm steps; -1: there are none.")
      .def("begin_calm", &CalmStep::begin_calm, nb::arg("module"),
           "-1: all is done. -2: nothing, the step is not calm. Else the due_set of the step that has begun.")
      .def("begin", &CalmStep::begin, nb::arg("mode").none(), nb::arg("is_training"),
           "The due_set of the step that has begun; 0 if nothing is due, -1 if a backward pass runs.")
      .def("set_usual", &CalmStep::set_usual, nb::arg("is_usual"));
  module.def("is_in_backward", &is_in_backward, "Whether a backward pass of PyTorch runs on this thread.");
}

}  // namespace tornasole::python
