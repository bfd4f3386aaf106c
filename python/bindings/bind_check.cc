#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "bindings/shared_trial.h"
#include "bindings/signal_watch.h"
#include "tornasole/check.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

CheckReport check_trial(const SharedTrial& shared, std::vector<std::string> rules,
                        std::optional<std::int64_t> first_step, std::optional<std::int64_t> end_step) {
  SignalWatch signals;
  auto trial = value_of(shared.open_again([&](double seconds) { return signals.sleep(seconds); }));
  const CheckOptions options{
      .rules = std::move(rules), .first_step = first_step, .end_step = end_step, .on_step = [&](GlobalStep) {
        return signals.goes_on();
      }};
  std::optional<Result<CheckReport>> report;
  {
    const nb::gil_scoped_release unlocked;
    report = tornasole::check(trial, options);
  }
  signals.rethrow();
  return value_of(std::move(*report));
}

void bind_verdict(nb::module_& module) {
  nb::class_<Verdict>(module, "Verdict", "A claim that something is wrong with a training.")
      .def_ro("rule", &Verdict::rule)
      .def_prop_ro(
          "severity", [](const Verdict& self) { return std::string(severity_name(self.severity)); },
          "\"error\", \"warning\" or \"info\".")
      .def_ro("first_step", &Verdict::first_step, "The global step from which on it held.")
      .def_ro("last_step", &Verdict::last_step)
      .def_prop_ro("mode", [](const Verdict& self) { return std::string(mode_name(self.mode)); })
      .def_ro("tensors", &Verdict::tensors, "Those that prove it, the most telling first.")
      .def_ro("value", &Verdict::value)
      .def_ro("threshold", &Verdict::threshold)
      .def_ro("message", &Verdict::message, "One sentence: what, where, since when.")
      .def_ro("causes", &Verdict::causes, "Likely ones, the likeliest first.")
      .def_ro("advice", &Verdict::advice, "What to try.")
      .def_prop_ro(
          "evidence", [](const Verdict& self) { return std::pair(self.evidence.what, self.evidence.points); },
          "What the numbers are, and (global step, number) in order.")
      .def_ro("symptom_of", &Verdict::symptom_of, "The place of its cause among the verdicts; None: it is a cause.")
      .def("__repr__", [](const Verdict& self) { return "<Verdict " + self.rule + ": " + self.message + ">"; });
}

}  // namespace

void bind_check(nb::module_& module) {
  bind_verdict(module);
  nb::class_<NotChecked>(module, "NotChecked", "A rule that could not be asked, and what would be needed.")
      .def_ro("rule", &NotChecked::rule)
      .def_ro("reason", &NotChecked::reason)
      .def("__repr__", [](const NotChecked& self) { return "<NotChecked " + self.rule + ": " + self.reason + ">"; });
  nb::class_<CheckReport>(module, "CheckReport", "What check found; see tornasole.check.")
      .def_ro("verdicts", &CheckReport::verdicts, "Causes first, by severity and step; symptoms after their cause.")
      .def_ro("not_checked", &CheckReport::not_checked)
      .def_ro("checked", &CheckReport::checked, "Names of the rules that were asked.")
      .def_ro("steps", &CheckReport::steps, "How many were looked at.")
      .def_ro("summary", &CheckReport::summary)
      .def_prop_ro("has_findings", &CheckReport::has_findings, "Whether there is a verdict that is more than an info.")
      .def("_repr_html_",
           [](nb::handle self) { return nb::module_::import_("tornasole.checks").attr("report_html")(self); })
      .def("__repr__", [](const CheckReport& self) { return "<CheckReport: " + self.summary + ">"; })
      .def("to_json", &CheckReport::to_json, "What `tornasole check --json` prints.");
  module.def("check", &check_trial, nb::arg("trial"), nb::arg("rules"), nb::arg("first_step").none(),
             nb::arg("end_step").none());
}

}  // namespace tornasole::python
