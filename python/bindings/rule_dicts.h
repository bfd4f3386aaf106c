#pragma once

// What rules found, as dictionaries of Python. Whoever includes this includes the type casters of nanobind first.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string_view>

#include "bindings/dict_of.h"
#include "tornasole/rule.h"

namespace tornasole::python {

inline nanobind::str text(std::string_view value) { return nanobind::str(value.data(), value.size()); }

inline nanobind::dict violation_dict(const Violation& violation) {
  return dict_of("step", violation.global_step.number, "mode", text(mode_name(violation.step.mode)), "mode_step",
                 violation.step.number, "worker", violation.worker, "tensor", violation.tensor, "value",
                 violation.value, "threshold", violation.threshold, "message", violation.message);
}

// Name, report as JSON, steps and error of a rule.
inline nanobind::dict outcome_dict(const RuleOutcome& outcome) {
  nanobind::object error = nanobind::none();
  if (outcome.error) error = text(outcome.error->message);
  return dict_of("name", outcome.name, "report", outcome.report.to_json(), "steps_evaluated", outcome.steps_evaluated,
                 "steps_met", outcome.steps_met, "error", error);
}

}  // namespace tornasole::python
