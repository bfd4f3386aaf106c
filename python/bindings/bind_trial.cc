// Trial and TrialTensor as one class: tensors are asked for by name, so no object of Python outlives what it points to.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/dict_of.h"
#include "bindings/model_of.h"
#include "bindings/numbers.h"
#include "bindings/python_errors.h"
#include "bindings/shared_trial.h"
#include "tornasole/trial.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

ModeStep mode_step(std::int64_t step, int mode) { return {static_cast<Mode>(mode), step}; }

std::vector<std::int64_t> numbers(const std::vector<ModeStep>& steps) {
  std::vector<std::int64_t> result;
  result.reserve(steps.size());
  for (const ModeStep step : steps) result.push_back(step.number);
  return result;
}

StepFilter step_filter(bool show_incomplete) {
  return show_incomplete ? StepFilter::kIncludingIncomplete : StepFilter::kComplete;
}

nb::list to_list(std::span<const std::int64_t> values) {
  nb::list list;
  for (const std::int64_t value : values) list.append(value);
  return list;
}

const char* state_name(RunState state) {
  switch (state) {
    case RunState::kUnknown: return "unknown";
    case RunState::kRunning: return "running";
    case RunState::kEnded: return "ended";
    case RunState::kFailed: return "failed";
    case RunState::kPresumedDead: return "presumed dead";
  }
  return "unknown";
}

Reduction reduction_of(const std::string& name, bool of_absolute) {
  const std::optional<ReductionKind> kind = parse_reduction_kind(name);
  if (!kind) {
    std::string known;
    for (const ReductionKind one : kAllReductionKinds) {
      known += (known.empty() ? "" : ", ") + std::string(reduction_kind_name(one));
    }
    raise({ErrorCode::kInvalid, "no reduction is called '" + name + "'; there are " + known, ErrorKind::kValue});
  }
  return {*kind, of_absolute};
}

class PythonTrial : public SharedTrial {
 public:
  using SharedTrial::SharedTrial;

  // An answer that needs an event file; waits for one that is still to come.
  template <typename Read>
  auto read(const std::string& name, ModeStep step, const std::string& worker, const Read& read) {
    const auto ask_tensor = [&](const Trial& trial) -> decltype(read(*trial.tensor(name))) {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return read(*tensor);
    };
    auto answer = ask(ask_tensor);
    if (!answer && answer.error().code == ErrorCode::kNotYet &&
        answer.error().kind == ErrorKind::kTensorUnavailableForStep) {
      check(change([&](Trial& trial) { return trial.wait_for_file(name, step, worker); }));
      answer = ask(ask_tensor);
    }
    return value_of(std::move(answer));
  }

  nb::object value(const std::string& name, std::int64_t step, int mode, const std::string& worker) {
    const ModeStep at = mode_step(step, mode);
    return to_numpy(read(name, at, worker, [&](const TrialTensor& tensor) { return tensor.value(at, worker); }));
  }

  // The values, and what kept the first missing one from being read as an exception that is raised.
  nb::dict values(const std::string& name, int mode, const std::string& worker) {
    std::vector<std::pair<ModeStep, Error>> missing;
    auto values = value_of(ask([&](const Trial& trial) -> Result<std::map<std::int64_t, Tensor>> {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return tensor->values(static_cast<Mode>(mode), worker, &missing);
    }));
    for (const auto& [step, error] : missing) {
      if (error.code != ErrorCode::kNotYet) raise(error);
      values.emplace(step.number,
                     read(name, step, worker, [&](const TrialTensor& tensor) { return tensor.value(step, worker); }));
    }
    nb::dict result;
    for (auto& [step, value] : values) result[nb::int_(step)] = to_numpy(std::move(value));
    return result;
  }

  nb::list shape(const std::string& name, std::int64_t step, int mode, const std::string& worker) {
    const ModeStep at = mode_step(step, mode);
    return to_list(read(name, at, worker, [&](const TrialTensor& tensor) { return tensor.shape(at, worker); }).dims());
  }
  nb::dict shapes(const std::string& name, int mode, const std::string& worker) const {
    const auto shapes = value_of(ask([&](const Trial& trial) -> Result<std::map<std::int64_t, Shape>> {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return tensor->shapes(static_cast<Mode>(mode), worker);
    }));
    nb::dict result;
    for (const auto& [step, shape] : shapes) result[nb::int_(step)] = to_list(shape.dims());
    return result;
  }

  nb::object reduction_value(const std::string& name, std::int64_t step, const std::string& reduction, int mode,
                             const std::string& worker, bool of_absolute) {
    const ModeStep at = mode_step(step, mode);
    const Reduction wanted = reduction_of(reduction, of_absolute);
    return to_number(
        read(name, at, worker, [&](const TrialTensor& tensor) { return tensor.reduction_tensor(at, wanted, worker); }));
  }
  nb::dict reduction_values(const std::string& name, std::int64_t step, int mode, const std::string& worker) {
    const ModeStep at = mode_step(step, mode);
    auto values =
        read(name, at, worker, [&](const TrialTensor& tensor) { return tensor.reduction_values(at, worker); });
    nb::dict result;
    for (auto& [reduction, value] : values) {
      result[nb::make_tuple(std::string(reduction_kind_name(reduction.kind)), reduction.of_absolute)] =
          to_number(std::move(value));
    }
    return result;
  }

  std::vector<std::string> tensor_names(std::optional<std::int64_t> step, int mode,
                                        std::optional<std::vector<std::string>> regex,
                                        std::optional<std::string> collection) const {
    // A list of no patterns matches nothing; to the engine it would mean that none are given.
    if (regex && regex->empty()) return {};
    NameQuery query{.mode = static_cast<Mode>(mode), .collection = std::move(collection)};
    if (step) query.step = mode_step(*step, mode);
    if (regex) query.regex = std::move(*regex);
    return value_of(ask([&](const Trial& trial) { return trial.tensor_names(query); }));
  }

  std::vector<std::int64_t> tensor_steps(const std::string& name, int mode, bool show_incomplete) const {
    return numbers(value_of(ask([&](const Trial& trial) -> Result<std::vector<ModeStep>> {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return tensor->steps(static_cast<Mode>(mode), step_filter(show_incomplete));
    })));
  }
  std::vector<std::int64_t> prev_steps(const std::string& name, std::int64_t step, std::int64_t n, int mode) const {
    return numbers(value_of(ask([&](const Trial& trial) -> Result<std::vector<ModeStep>> {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return tensor->prev_steps(mode_step(step, mode), static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
    })));
  }
  std::vector<std::string> tensor_workers(const std::string& name, std::int64_t step, int mode) const {
    return value_of(ask([&](const Trial& trial) -> Result<std::vector<std::string>> {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return tensor->workers(mode_step(step, mode));
    }));
  }
  nb::object original_name(const std::string& name) const {
    const auto found = value_of(ask([&](const Trial& trial) -> Result<std::string> {
      auto tensor = trial.tensor(name);
      if (!tensor) return tensor.error();
      return tensor->original_name();
    }));
    return found.empty() ? nb::none() : nb::object(nb::str(found.c_str(), found.size()));
  }
  bool has_value(const std::string& name, std::int64_t step, int mode, const std::string& worker) const {
    return ask([&](const Trial& trial) {
      const auto tensor = trial.tensor(name);
      return tensor.ok() && tensor->has_value(mode_step(step, mode), worker);
    });
  }

  nb::list sweep(std::vector<std::string> names, int mode, bool values, bool reductions, bool show_incomplete,
                 std::optional<std::int64_t> first_step, std::optional<std::int64_t> end_step,
                 std::string worker) const;

  // Of the first worker that has one, unless a worker is given.
  nb::object model_description(const std::string& worker) const {
    const auto found = ask([&](const Trial& trial) -> std::optional<StoredModel> {
      const auto& models = trial.models();
      const auto at = worker.empty() ? models.begin() : models.find(worker);
      return at == models.end() ? std::nullopt : std::optional(at->second);
    });
    return found ? nb::object(to_dict(*found)) : nb::none();
  }
  nb::dict step_facts(std::int64_t step, int mode, const std::string& worker) const {
    return to_dict(ask([&](const Trial& trial) {
      const auto global = trial.global_step(mode_step(step, mode));
      return global ? trial.step_facts(*global, worker) : StepFacts();
    }));
  }

  nb::list group(const std::string& which, std::int64_t step, int mode) const {
    const ModeStep at = mode_step(step, mode);
    auto values = value_of(ask([&](const Trial& trial) {
      return which == "inputs" ? trial.inputs(at) : which == "labels" ? trial.labels(at) : trial.predictions(at);
    }));
    nb::list result;
    for (Tensor& value : values) result.append(to_numpy(std::move(value)));
    return result;
  }

  nb::dict collections() const {
    const auto collections = ask([](const Trial& trial) { return trial.collections(); });
    nb::dict result;
    for (const auto& [name, collection] : collections) {
      result[nb::str(name.c_str(), name.size())] = dict_of(
          "name", collection.name, "include_regex", collection.include_regex, "exclude_regex", collection.exclude_regex,
          "tensor_names", collection.tensor_names, "reduction_config", collection.reduction_config, "save_config",
          collection.save_config, "save_histogram", collection.save_histogram);
    }
    return result;
  }
  void set_collection(const std::string& name, std::vector<std::string> include_regex,
                      std::vector<std::string> exclude_regex, std::vector<std::string> tensor_names) {
    std::ranges::sort(tensor_names);
    check(change([&](Trial& trial) -> Status {
      TrialCollection& collection = trial.collection(name);
      collection.include_regex = std::move(include_regex);
      collection.exclude_regex = std::move(exclude_regex);
      collection.tensor_names = std::move(tensor_names);
      return {};
    }));
  }

  void wait_for_steps(const std::vector<std::int64_t>& steps, int mode) {
    std::vector<ModeStep> wanted;
    for (const std::int64_t step : steps) wanted.push_back(mode_step(step, mode));
    check(change([&](Trial& trial) { return trial.wait_for_steps(wanted); }));
  }
  void set_waiting(std::optional<double> timeout, double poll) {
    check(change([&](Trial& trial) { return trial.set_waiting(timeout, poll); }));
  }
  void refresh() {
    check(change([](Trial& trial) { return trial.refresh(); }));
  }
};

struct SweptRow {
  std::string name, worker;
  std::int64_t global_step = 0;
  ModeStep step;
  std::optional<Reduction> reduction;
  std::optional<Tensor> value;
  std::optional<Error> error;
};

nb::list PythonTrial::sweep(std::vector<std::string> names, int mode, bool values, bool reductions,
                            bool show_incomplete, std::optional<std::int64_t> first_step,
                            std::optional<std::int64_t> end_step, std::string worker) const {
  const SweepQuery query{.names = std::move(names),
                         .mode = static_cast<Mode>(mode),
                         .steps = step_filter(show_incomplete),
                         .first_step = first_step,
                         .end_step = end_step,
                         .worker = std::move(worker),
                         .values = values,
                         .reductions = reductions};
  std::vector<SweptRow> rows;
  check(ask([&](const Trial& trial) {
    return trial.sweep(query, [&](const SweptValue& swept) {
      SweptRow& row = rows.emplace_back();
      row.name = swept.name;
      row.worker = swept.worker;
      row.global_step = swept.global_step.number;
      row.step = swept.step;
      row.reduction = swept.reduction;
      if (swept.tensor != nullptr) row.value.emplace(std::move(*swept.tensor));
      if (swept.error != nullptr) row.error = *swept.error;
      return true;
    });
  }));
  nb::list result;
  for (SweptRow& row : rows) {
    nb::object reduction = nb::none();
    if (row.reduction) reduction = nb::str(reduction_name(*row.reduction).c_str());
    nb::object value = nb::none();
    if (row.value) value = row.reduction ? to_number(std::move(*row.value)) : to_numpy(std::move(*row.value));
    nb::object error = nb::none();
    if (row.error) error = nb::str(row.error->message.c_str());
    result.append(nb::make_tuple(row.name, row.global_step, static_cast<int>(row.step.mode), row.step.number,
                                 row.worker, reduction, value, error));
  }
  return result;
}

void open_trial(PythonTrial* self, const std::string& path, const std::string& name,
                std::optional<std::int64_t> first_step, std::optional<std::int64_t> end_step, bool fail_on_damage,
                bool check, bool cache, std::optional<double> timeout, double poll, nb::object tick) {
  const TrialOptions options{.path = path,
                             .name = name,
                             .first_step = first_step,
                             .end_step = end_step,
                             .on_damage = fail_on_damage ? OnDamage::kFail : OnDamage::kSkip,
                             .check = check,
                             .cache = cache,
                             .timeout_s = timeout,
                             .poll_s = poll};
  new (self) PythonTrial(options, std::move(tick));
}

}  // namespace

void bind_trial(nb::module_& module) {
  nb::class_<SharedTrial>(module, "SharedTrial");
  nb::class_<PythonTrial, SharedTrial>(module, "Trial")
      .def("__init__", &open_trial, nb::arg("path"), nb::arg("name") = "", nb::arg("first_step") = nb::none(),
           nb::arg("end_step") = nb::none(), nb::arg("fail_on_damage") = false, nb::arg("check") = false,
           nb::arg("cache") = false, nb::arg("timeout") = 300.0, nb::arg("poll") = 2.0, nb::arg("tick") = nb::none())
      .def("refresh", &PythonTrial::refresh)
      .def("wait_for_steps", &PythonTrial::wait_for_steps, nb::arg("steps"), nb::arg("mode"))
      .def("set_waiting", &PythonTrial::set_waiting, nb::arg("timeout").none(), nb::arg("poll"))
      .def_prop_ro("name", [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.name(); }); })
      .def_prop_ro("path", [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.path(); }); })
      .def("workers", [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.workers(); }); })
      .def_prop_ro("num_workers",
                   [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.num_workers(); }); })
      .def("modes",
           [](const PythonTrial& self) {
             std::vector<int> modes;
             for (const Mode mode : self.ask([](const Trial& t) { return t.modes(); })) {
               modes.push_back(static_cast<int>(mode));
             }
             return modes;
           })
      .def(
          "steps",
          [](const PythonTrial& self, int mode, bool show_incomplete) {
            return numbers(self.ask(
                [&](const Trial& t) { return t.steps(static_cast<Mode>(mode), step_filter(show_incomplete)); }));
          },
          nb::arg("mode"), nb::arg("show_incomplete") = false)
      .def("partial_steps",
           [](const PythonTrial& self, int mode) {
             return numbers(
                 self.ask([&](const Trial& t) { return t.steps(static_cast<Mode>(mode), StepFilter::kPartial); }));
           })
      .def("mode_step",
           [](const PythonTrial& self, std::int64_t step) -> nb::object {
             const auto found = self.ask([&](const Trial& t) { return t.mode_step({step}); });
             if (!found) return nb::none();
             return nb::make_tuple(static_cast<int>(found->mode), found->number);
           })
      .def("global_step",
           [](const PythonTrial& self, int mode, std::int64_t step) -> std::optional<std::int64_t> {
             const auto found = self.ask([&](const Trial& t) { return t.global_step(mode_step(step, mode)); });
             return found ? std::optional(found->number) : std::nullopt;
           })
      .def(
          "has_passed_step",
          [](const PythonTrial& self, std::int64_t step, int mode) {
            return static_cast<int>(self.ask([&](const Trial& t) { return t.has_passed_step(mode_step(step, mode)); }));
          })
      .def("workers_at",
           [](const PythonTrial& self, std::int64_t step) {
             return self.ask([&](const Trial& t) { return t.workers_at({step}); });
           })
      .def("tensor_names", &PythonTrial::tensor_names, nb::arg("step").none(), nb::arg("mode"), nb::arg("regex").none(),
           nb::arg("collection").none())
      .def("has_tensor",
           [](const PythonTrial& self, const std::string& name) {
             return self.ask([&](const Trial& t) { return t.has_tensor(name); });
           })
      .def("check_tensor",
           [](const PythonTrial& self, const std::string& name) {
             static_cast<void>(value_of(self.ask([&](const Trial& t) { return t.tensor(name); })));
           })
      .def("original_name", &PythonTrial::original_name)
      .def("tensor_steps", &PythonTrial::tensor_steps)
      .def("prev_steps", &PythonTrial::prev_steps)
      .def("tensor_workers", &PythonTrial::tensor_workers)
      .def("has_value", &PythonTrial::has_value)
      .def("value", &PythonTrial::value)
      .def("values", &PythonTrial::values)
      .def("shape", &PythonTrial::shape)
      .def("shapes", &PythonTrial::shapes)
      .def("reduction_value", &PythonTrial::reduction_value)
      .def("reduction_values", &PythonTrial::reduction_values)
      .def("model_description", &PythonTrial::model_description)
      .def("step_facts", &PythonTrial::step_facts)
      .def("group", &PythonTrial::group)
      .def("sweep", &PythonTrial::sweep, nb::arg("names"), nb::arg("mode") = 4, nb::arg("values") = true,
           nb::arg("reductions") = false, nb::arg("show_incomplete") = true, nb::arg("first_step") = nb::none(),
           nb::arg("end_step") = nb::none(), nb::arg("worker") = "")
      .def("collections", &PythonTrial::collections)
      .def("set_collection", &PythonTrial::set_collection)
      .def_prop_ro(
          "loaded_all_steps",
          [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.loaded_all_steps(); }); })
      .def_prop_ro(
          "last_complete_step",
          [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.last_complete_step(); }); })
      .def_prop_ro(
          "last_index_token",
          [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.last_index_token(); }); })
      .def("run_status",
           [](const PythonTrial& self) {
             const RunStatus status = self.ask([](const Trial& t) { return t.run_status(); });
             return nb::make_tuple(state_name(status.state), status.reason);
           })
      .def("damage",
           [](const PythonTrial& self) {
             nb::list result;
             for (const Damage& damage : self.ask([](const Trial& t) { return t.damage(); })) {
               result.append(nb::make_tuple(damage.path, damage.offset, damage.what));
             }
             return result;
           })
      .def_prop_ro("damage_count",
                   [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.damage_count(); }); })
      .def_prop_ro("index_bytes",
                   [](const PythonTrial& self) { return self.ask([](const Trial& t) { return t.index_bytes(); }); });
}

}  // namespace tornasole::python
