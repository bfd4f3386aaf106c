#pragma once

// Dictionaries of Python as the structs of tornasole/model.h, the same names, everything optional; and back, as the
// model file has it (docs/format.md 1.8).

#include <nanobind/nanobind.h>

#include "tornasole/model.h"

namespace tornasole::python {

// Both raise a TypeError-kind that names the key whose value cannot be taken.
StepFacts step_facts_of(nanobind::handle dict);
ModelDescription model_of(nanobind::handle dict);

// With what is known alone.
nanobind::dict to_dict(const StepFacts& facts);
// Every key is there. A limit that is none is infinite; the call order is None before the first call.
nanobind::dict to_dict(const StoredModel& stored);

}  // namespace tornasole::python
