#pragma once

// Dictionaries of Python as the structs of tornasole/model.h: the same names, everything optional.

#include <nanobind/nanobind.h>

#include "tornasole/model.h"

namespace tornasole::python {

// Both raise a TypeError-kind that names the key whose value cannot be taken.
StepFacts step_facts_of(nanobind::handle dict);
ModelDescription model_of(nanobind::handle dict);

}  // namespace tornasole::python
