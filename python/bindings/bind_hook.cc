#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/any_array.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/dict_of.h"
#include "bindings/edits.h"
#include "bindings/log_queue.h"
#include "bindings/model_of.h"
#include "bindings/options_of.h"
#include "bindings/python_errors.h"
#include "bindings/python_hook.h"
#include "bindings/python_inprocess.h"
#include "tornasole/hook.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// Exactly one number: a number, an array of one element, or a list of one of these.
double scalar_of(nb::handle value, std::string_view name) {
  if (PyFloat_CheckExact(value.ptr())) return PyFloat_AS_DOUBLE(value.ptr());
  if ((PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) && nb::len(value) == 1) {
    return scalar_of(nb::object(value[0]), name);
  }
  if (PyNumber_Check(value.ptr()) != 0 && PyUnicode_Check(value.ptr()) == 0) {
    const nb::object number = nb::steal(PyNumber_Float(value.ptr()));
    if (number.is_valid()) return PyFloat_AS_DOUBLE(number.ptr());
    PyErr_Clear();
  }
  raise({ErrorCode::kInvalid,
         fmt::format("save_scalar: the value of '{}' is a {}; allowed: exactly one number", name,
                     nb::cast<std::string>(
                         nb::str(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()))).attr("__name__")))),
         ErrorKind::kType});
}

nb::dict report_dict(const CaptureReport& report) {
  nb::list collections;
  for (const CaptureReport::CollectionCoverage& coverage : report.collections) {
    collections.append(dict_of("name", coverage.name, "saved", coverage.saved, "matched", coverage.matched,
                               "saved_values", coverage.saved_values, "unmatched_patterns", coverage.unmatched_patterns,
                               "near_misses", coverage.near_misses));
  }
  return dict_of("due_steps", report.due_steps, "committed_steps", report.committed_steps, "dropped_steps",
                 report.dropped_steps, "dropped_values", report.dropped_values, "last_committed_step",
                 report.last_committed_step, "queue_peak_bytes", report.queue_peak_bytes, "wait_ms", report.wait_ms,
                 "errors", report.errors, "requests", report.requests, "collections", collections, "names_observed",
                 report.names_observed, "unclaimed_names", report.unclaimed_names, "bytes_written",
                 report.bytes_written, "largest_step_bytes", report.largest_step_bytes, "bytes_by_collection",
                 report.bytes_by_collection);
}

}  // namespace

void PythonHook::save_scalar(std::string_view name, nb::handle value, bool sm_metric, std::optional<double> timestamp) {
  hook().save_scalar(name, scalar_of(value, name), {.sm_metric = sm_metric, .timestamp = timestamp});
  settle();
}

PythonHook PythonHook::open(nb::handle options) {
  auto log = std::make_shared<LogQueue>();
  return opened(Hook::open(with_log(options, log)), log);
}

PythonHook PythonHook::open_file(const std::string& path, nb::handle options) {
  auto log = std::make_shared<LogQueue>();
  return opened(Hook::open_file(path, with_log(options, log)), log);
}

HookOptions PythonHook::with_log(nb::handle dict, const std::shared_ptr<LogQueue>& log) {
  HookOptions options = hook_options_of(dict);
  options.log = log_into(log);
  options.log_level = LogLevel::kInfo;
  options.abort_if_strict = false;
  return options;
}

PythonHook PythonHook::opened(Result<Hook> hook, const std::shared_ptr<LogQueue>& log) {
  log->drain();
  return {value_of(std::move(hook)), log};
}

bool PythonHook::make_due(const std::vector<std::string>& collections) {
  count_idle_steps();
  if (!step_) return false;
  const std::vector<std::string_view> names(collections.begin(), collections.end());
  step_->make_due(names);
  settle();
  return step_->anything_due();
}

void PythonHook::save_any(std::string_view name, nb::handle array) {
  if (!anything_due()) return;
  const AnyArray any(array);
  step_->save(name, any.view());
}

// Pairs of a name and an array, in turn; those that no collection wants are not looked at.
void PythonHook::save_many(nb::handle names, nb::handle arrays) {
  if (!anything_due()) return;
  nb::iterator array = nb::iter(arrays);
  for (const nb::handle name : nb::iter(names)) {
    if (array == nb::iterator::sentinel()) break;
    const auto text = nb::cast<std::string_view>(name);
    if (step_->wants(text)) save(text, *array);
    ++array;
  }
}

void PythonHook::save_tensor(std::string_view name, nb::handle array, const std::vector<std::string>& collections) {
  const AnyArray any(array);
  const std::vector<std::string_view> names(collections.begin(), collections.end());
  hook().save_tensor(name, any.view(), std::span<const std::string_view>(names));
  settle();
}

void PythonHook::prepare() {
  const Status prepared = hook().prepare();
  settle();
  check(prepared);
}

void PythonHook::close() {
  count_idle_steps();
  step_.reset();
  {
    const nb::gil_scoped_release unlocked;
    static_cast<void>(hook_.close());  // what failed is in the report
  }
  settle();
}

void PythonHook::fail(const std::string& reason) {
  count_idle_steps();
  if (step_) step_->end_partial();
  step_.reset();
  {
    const nb::gil_scoped_release unlocked;
    static_cast<void>(hook_.fail(reason));
  }
  settle();
}

void PythonHook::count_idle_steps_now() noexcept {
  idle_left_ = 0;
  for (int left = std::exchange(idle_begun_, 0); left > 0; --left) {
    step_.reset();
    step_.emplace(hook_.begin_step(static_cast<Mode>(idle_mode_)));
  }
}

void PythonHook::settle_slowly() {
  if (!log_->is_empty()) log_->drain();
  if (!is_strict_) return;
  if (const auto error = hook_.first_error()) {
    is_strict_ = false;
    raise(*error);
  }
}

namespace {

void bind_steps(nb::class_<PythonHook>& hook) {
  hook.def("begin_step", &PythonHook::begin_step, nb::arg("mode") = nb::none(),
           "Begins the next step, ending the open one; True if anything can be saved in it.")
      .def("begin_step_at", &PythonHook::begin_step_at, nb::arg("mode"), nb::arg("global_step"))
      .def("end_step", &PythonHook::end_step, nb::arg("partial") = false)
      .def("anything_due", &PythonHook::anything_due)
      .def("due_set", &PythonHook::due_set, "The same for two steps that want the same tensors; 0 if nothing is due.")
      .def("make_due", &PythonHook::make_due,
           "These collections are due in the open step, whatever their schedules say; True if anything is.")
      .def("set_facts", [](PythonHook& self, nb::handle facts) { self.hook().set_facts(step_facts_of(facts)); })
      .def("set_usual_facts", &PythonHook::set_usual_facts, nb::arg("optimizer_step").none(), nb::arg("training"),
           nb::arg("grad_enabled"), "The facts that every step has, without a dict.")
      .def("describe_model", [](PythonHook& self, nb::handle model) { self.hook().describe_model(model_of(model)); })
      .def("wants", &PythonHook::wants, "Whether the tensor would be saved in the open step.")
      .def("save", &PythonHook::save<std::string_view>)
      .def("save_any", &PythonHook::save_any, "Saves an array of numbers or of NumPy's texts in the open step.")
      .def("save_input", &PythonHook::save_input<std::string_view>)
      .def("save_output", &PythonHook::save_output<std::string_view>)
      .def("save_many", &PythonHook::save_many)
      .def("save_tensor", &PythonHook::save_tensor)
      .def("save_scalar", &PythonHook::save_scalar, nb::arg("name"), nb::arg("value").none(),
           nb::arg("sm_metric") = false, nb::arg("timestamp") = nb::none())
      .def("set_mode", &PythonHook::set_mode)
      .def("prepare", &PythonHook::prepare)
      .def("save_graph",
           [](PythonHook& self, nb::bytes graph) { self.hook().save_graph({graph.c_str(), graph.size()}); })
      .def("save_summary",
           [](PythonHook& self, nb::bytes summary) { self.hook().save_summary({summary.c_str(), summary.size()}); })
      .def("dump_flight_recorder", [](PythonHook& self) { self.hook().dump_flight_recorder(); })
      .def("close", &PythonHook::close)
      .def("fail", &PythonHook::fail, nb::arg("reason"))
      .def("settle", &PythonHook::settle);
}

void bind_collections(nb::class_<PythonHook>& hook) {
  hook.def("collection_names", [](PythonHook& self) { return self.hook().collection_names(); })
      .def("collection_config",
           [](PythonHook& self, std::string_view name) {
             return to_python(value_of(self.hook().collection_config(name)));
           })
      .def("tensor_names", [](PythonHook& self, std::string_view name) { return self.hook().tensor_names(name); })
      .def("set_collection",
           [](PythonHook& self, nb::handle config) { check(self.hook().set_collection(collection_config_of(config))); })
      .def("reset_collections", [](PythonHook& self) { check(self.hook().reset_collections()); })
      .def(
          "export_collections", [](PythonHook& self) { self.hook().export_collections(); },
          "Writes the collections now, if they changed.")
      .def("enter_tape", [](PythonHook& self) { self.hook().enter_tape(); })
      .def("include_collection", [](PythonHook& self, std::string_view name) { self.hook().include_collection(name); })
      .def("set_save_config",
           [](PythonHook& self, nb::handle config) { check(self.hook().set_save_config(save_config_of(config))); })
      .def("set_reduction_config",
           [](PythonHook& self, nb::handle config) {
             check(self.hook().set_reduction_config(reduction_config_of(config)));
           })
      .def("saved_collections", [](PythonHook& self) { return self.hook().saved_collections(); })
      .def("due_collections", [](PythonHook& self) { return self.hook().due_collections(); })
      .def("should_save", [](PythonHook& self, std::string_view tensor, std::string_view collection) {
        return self.hook().should_save(tensor, collection);
      });
}

void bind_state(nb::class_<PythonHook>& hook) {
  hook.def_prop_ro("mode", [](PythonHook& self) { return static_cast<int>(self.hook().mode()); })
      .def_prop_ro("step", [](PythonHook& self) { return self.hook().step(); })
      .def("mode_step", [](PythonHook& self, int mode) { return self.hook().mode_step(static_cast<Mode>(mode)); })
      .def_prop_ro("last_saved_step", [](PythonHook& self) { return self.hook().last_saved_step(); })
      .def_prop_ro("out_dir", [](PythonHook& self) { return self.hook().out_dir(); })
      .def_prop_ro("worker", [](PythonHook& self) { return self.hook().worker(); })
      .def_prop_ro("training_run", [](PythonHook& self) { return self.hook().training_run(); })
      .def("non_finite_tensors", [](PythonHook& self) { return self.hook().non_finite_tensors(); })
      .def(
          "start_rules",
          [](PythonHook& self, const nb::list& rules, double poll_s, std::int64_t detail_steps, nb::object on_met,
             const std::string& profile) {
            return start_rules(&self.shared_hook(), rules, poll_s, detail_steps, std::move(on_met), profile);
          },
          nb::keep_alive<0, 1>(), nb::arg("rules"), nb::arg("poll_s"), nb::arg("detail_steps"),
          nb::arg("on_met").none(), nb::arg("profile"))
      .def_prop_ro("stop_requested", [](PythonHook& self) { return self.hook().stop_requested(); })
      .def("set_worker",
           [](PythonHook& self, std::int64_t rank, std::int64_t size) { check(self.hook().set_worker(rank, size)); })
      .def("go_on_in_child", [](PythonHook& self) { return self.hook().go_on_in_child(); })
      .def("options", [](PythonHook& self) { return to_python(self.hook().options()); })
      .def("report", [](PythonHook& self) { return report_dict(self.hook().report()); });
}

}  // namespace

void bind_hook(nb::module_& module) {
  nb::class_<Edits>(module, "Edits", "Counts changes to objects that configure hooks.")
      .def(nb::init<>())
      .def_ro("count", &Edits::count)
      .def("note", [](Edits& edits) { ++edits.count; }, "Something was changed, or handed out to be changed.");
  nb::class_<PythonHook> hook(module, "Hook");
  hook.def_static("open", &PythonHook::open, nb::arg("options"))
      .def_static("open_file", &PythonHook::open_file, nb::arg("path"), nb::arg("options"));
  bind_steps(hook);
  bind_collections(hook);
  bind_state(hook);
}

}  // namespace tornasole::python
