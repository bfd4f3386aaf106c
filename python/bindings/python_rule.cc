#include "bindings/python_rule.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/model_of.h"
#include "bindings/python_errors.h"
#include "bindings/rule_dicts.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

std::string_view view_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) nb::raise_python_error();
  return {data, static_cast<std::size_t>(size)};
}

[[noreturn]] void raise_value(std::string message) {
  raise({ErrorCode::kInvalid, std::move(message), ErrorKind::kValue});
}

Stat stat_named(std::string_view name) {
  const std::optional<Stat> stat = parse_stat(name);
  if (stat) return *stat;
  std::string known;
  for (std::size_t i = 0; i < kStatCount; ++i) {
    known += (known.empty() ? "" : ", ") + std::string(stat_name(static_cast<Stat>(i)));
  }
  raise_value(fmt::format("no statistic is called '{}'; there are {}", name, known));
}

// Valid for the call of look_at alone: the pass goes on to the next step.
class PythonStep {
 public:
  explicit PythonStep(const StepView* view) : view_(view) {}
  void end() noexcept { view_ = nullptr; }
  const StepView& view() const {
    if (view_ == nullptr) raise_value("a step may be looked at during look_at alone; keep its tensors instead");
    return *view_;
  }

  nb::list tensors(std::size_t need) {
    if (need >= needs_) raise_value(fmt::format("need {} is asked for; the rule has {}", need, needs_));
    nb::list list;
    for (const StepTensor* tensor : view().tensors(need)) {
      PythonStepTensor own{.name = text(tensor->name), .worker = text(tensor->worker), .tensor = *tensor};
      own.tensor.name = view_of(own.name);
      own.tensor.worker = view_of(own.worker);
      // The names of statistics are those of the need, which may end before the tensor.
      for (auto& [statistic, value] : own.tensor.derived) statistic = known_statistic(statistic);
      list.append(nb::cast(std::move(own)));
    }
    return list;
  }
  void set_needs(std::size_t needs) noexcept { needs_ = needs; }

 private:
  // The names of derived statistics are few: they are kept for good.
  static std::string_view known_statistic(std::string_view name) {
    static std::unordered_map<std::string, int> names;  // with the interpreter lock
    return names.try_emplace(std::string(name)).first->first;
  }

  const StepView* view_;
  std::size_t needs_ = 0;
};

class PythonFindings {
 public:
  explicit PythonFindings(Findings* findings) : findings_(findings) {}
  void end() noexcept { findings_ = nullptr; }
  Findings& get() const {
    if (findings_ == nullptr) raise_value("findings are reported during look_at alone");
    return *findings_;
  }

  void add(nb::handle tensor, std::optional<double> value, std::optional<double> threshold, std::string message) {
    Findings& findings = get();
    if (tensor.is_none()) {
      findings.add(nullptr, value, threshold, std::move(message));
    } else if (PyUnicode_Check(tensor.ptr())) {
      const StepTensor named{.name = view_of(tensor)};
      findings.add(&named, value, threshold, std::move(message));
    } else {
      findings.add(&nb::cast<const PythonStepTensor&>(tensor).tensor, value, threshold, std::move(message));
    }
  }

 private:
  Findings* findings_;
};

nb::object number_or_none(std::optional<double> number) {
  return number ? nb::object(nb::float_(*number)) : nb::object(nb::none());
}

nb::dict known_stats(const PythonStepTensor& self) {
  nb::dict dict;
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    if (const auto number = self.tensor.stats[stat]) dict[text(stat_name(stat))] = *number;
  }
  return dict;
}

nb::dict stored_reductions(const PythonStepTensor& self) {
  nb::dict dict;
  for (const auto& [reduction, number] : self.tensor.reductions) dict[text(reduction_name(reduction))] = number;
  return dict;
}

nb::object array_or_none(const Tensor* tensor) { return tensor == nullptr ? nb::none() : to_numpy(Tensor(*tensor)); }

nb::object shape_of(const PythonStepTensor& self) {
  if (!self.tensor.shape) return nb::none();
  nb::list list;
  for (const std::int64_t extent : self.tensor.shape->dims()) list.append(extent);
  return nb::tuple(list);
}

std::vector<std::string> texts(nb::handle fields, const char* key) {
  std::vector<std::string> result;
  if (!nb::try_cast(fields[key], result)) raise_value(fmt::format("{} of a need is a list of texts", key));
  return result;
}

}  // namespace

void PythonRule::look_at(const StepView& step, Findings& findings) {
  const nb::gil_scoped_acquire locked;
  // Shared with Python, and ended here: a rule that keeps them gets an error, not a view of what is gone.
  nb::object python_step = nb::cast(PythonStep(&step));
  nb::object python_findings = nb::cast(PythonFindings(&findings));
  auto& own_step = nb::cast<PythonStep&>(python_step);
  own_step.set_needs(needs_.size());
  try {
    rule_.attr("look_at")(python_step, python_findings);
  } catch (nb::python_error& raised) {
    if (raised.matches(PyExc_Exception)) {
      error_ = nb::borrow(raised.value());
      findings.fail({ErrorCode::kInvalid, raised.what(), ErrorKind::kBase});
    } else {
      findings.fail({ErrorCode::kInvalid, "interrupted", ErrorKind::kBase});
      watch_.keep(std::current_exception());
    }
  }
  own_step.end();
  nb::cast<PythonFindings&>(python_findings).end();
}

Need need_of(nb::handle fields, SignalWatch* watch) {
  Need need{.collections = texts(fields, "collections"),
            .regex = texts(fields, "regex"),
            .names = texts(fields, "names"),
            .or_everything = nb::cast<bool>(fields["or_everything"]),
            .exclude_regex = texts(fields, "exclude_regex"),
            .value = nb::cast<bool>(fields["value"]),
            .reductions_without_value = nb::cast<bool>(fields["reductions_without_value"]),
            .derived = texts(fields, "derived")};
  for (const std::string& name : texts(fields, "stats")) need.stats.add(stat_named(name));
  const nb::object choose = fields["choose"];
  if (!choose.is_none()) {
    // Shared: a need is copied without the interpreter lock. Ends with the rule, whose end has the lock.
    const auto kept = std::make_shared<nb::object>(choose);
    need.choose = [kept, watch](std::string_view name) {
      const nb::gil_scoped_acquire locked;
      try {
        return nb::cast<bool>(nb::bool_((*kept)(text(name))));
      } catch (nb::python_error&) {
        watch->keep(std::current_exception());
        return false;
      }
    };
  }
  return need;
}

void bind_step_view(nb::module_& module) {
  nb::class_<PythonStepTensor>(module, "StepTensor", "One tensor of one worker at one step; may be kept.")
      .def_ro("name", &PythonStepTensor::name)
      .def_ro("worker", &PythonStepTensor::worker)
      .def(
          "__getitem__",
          [](const PythonStepTensor& self, std::string_view stat) {
            return number_or_none(self.tensor.stats[stat_named(stat)]);
          },
          "A statistic by name, \"abs_mean\"; None if it is not known.")
      .def_prop_ro("stats", &known_stats, "The statistics that are known, by name.")
      .def_prop_ro("reductions", &stored_reductions, "Stored reductions that were read, by name.")
      .def_prop_ro(
          "scalar", [](const PythonStepTensor& self) { return number_or_none(self.tensor.scalar()); },
          "The number of a tensor with one element, where \"mean\" is needed; else None.")
      .def_prop_ro(
          "value", [](const PythonStepTensor& self) { return array_or_none(self.tensor.value.get()); },
          "The value as an array, a copy each time; None if it is not needed or was not saved.")
      .def(
          "derived",
          [](const PythonStepTensor& self, std::string_view statistic) {
            return array_or_none(self.tensor.derived_statistic(statistic));
          },
          "A derived statistic as an array; None if it is not known.")
      .def_prop_ro("shape", &shape_of, "Of the value, where it was read; else None.")
      .def_prop_ro(
          "error",
          [](const PythonStepTensor& self) -> nb::object {
            if (!self.tensor.error) return nb::none();
            return text(self.tensor.error->message);
          },
          "Why the value or a reduction could not be read; None if nothing failed.");
  nb::class_<PythonStep>(module, "StepView", "One step, as a rule sees it; ends with the call of look_at.")
      .def_prop_ro("global_step", [](const PythonStep& self) { return self.view().global_step().number; })
      .def_prop_ro("mode_step", [](const PythonStep& self) { return self.view().step().number; })
      .def_prop_ro(
          "mode",
          [](const PythonStep& self) {
            return nb::module_::import_("tornasole.modes").attr("ModeKeys")(static_cast<int>(self.view().mode()));
          })
      .def("tensors", &PythonStep::tensors, nb::arg("need") = 0,
           "The tensors of the step that match this need of the rule, by worker, then as they were saved.")
      .def(
          "facts",
          [](const PythonStep& self, const std::string& worker) {
            return to_dict(self.view().trial().step_facts(self.view().global_step(), worker));
          },
          nb::arg("worker") = "", "As Trial.step_facts.");
  nb::class_<PythonFindings>(module, "Findings", "Where a rule says what it found at a step.")
      .def("add", &PythonFindings::add, nb::arg("tensor").none(), nb::arg("value").none() = nb::none(),
           nb::arg("threshold").none() = nb::none(), nb::arg("message") = "",
           "The condition is met. The tensor is one of the step, a name, or None for several or none.")
      .def(
          "count_datapoint", [](const PythonFindings& self) { self.get().count_datapoint(); },
          "One item was looked at.")
      .def(
          "skip", [](const PythonFindings& self, std::string_view reason) { self.get().skip(reason); },
          "One item could not be looked at: \"no value\".");
}

}  // namespace tornasole::python
