#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "bindings/python_inprocess.h"
#include "bindings/rule_dicts.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// A function of Python that a thread of ours holds: its end takes the interpreter lock, or leaves it to the end of the
// process.
std::shared_ptr<nb::object> shared_function(nb::object function) {
  return {new nb::object(std::move(function)), [](nb::object* held) {
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire locked;
            delete held;
          }};
}

void call(const nb::object& function, const RuleOutcome& rule, const Violation& newest) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire locked;
  try {
    function(text(rule.name), violation_dict(newest));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("tornasole: the callback of a rule raised");
  }
}

}  // namespace

PythonInProcess start_rules(Hook* hook, const nb::list& rules, double poll_s, std::int64_t detail_steps,
                            nb::object on_met, const std::string& profile) {
  std::vector<InProcessRule> wanted;
  for (const nb::handle rule : rules) {
    wanted.push_back({.rule = nb::cast<std::string>(rule[0]),
                      .name = nb::cast<std::string>(rule[1]),
                      .parameters = nb::cast<std::map<std::string, std::string>>(rule[2])});
  }
  InProcessOptions options{.poll_s = poll_s, .detail_steps = detail_steps};
  options.profile = profile == "check" ? Profile::kCheck : Profile::kReference;
  if (!on_met.is_none()) {
    options.on_met = [function = shared_function(std::move(on_met))](const RuleOutcome& rule, const Violation& newest) {
      call(*function, rule, newest);
    };
  }
  return PythonInProcess(value_of(InProcessRules::start(hook, std::move(wanted), std::move(options))));
}

void PythonInProcess::stop() {
  const nb::gil_scoped_release unlocked;
  rules_.stop();
}

nb::list PythonInProcess::outcomes() const {
  nb::list list;
  for (const RuleOutcome& outcome : rules_.outcomes()) list.append(outcome_dict(outcome));
  return list;
}

void bind_inprocess_rules(nb::module_& module) {
  nb::class_<PythonInProcess>(module, "InProcessRules")
      .def("stop", &PythonInProcess::stop)
      .def("outcomes", &PythonInProcess::outcomes);
}

}  // namespace tornasole::python
