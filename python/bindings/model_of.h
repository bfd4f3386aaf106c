#pragma once

// The description of a model and the facts of a step from dicts with the names of model.h. What is left out or None
// stays as it is by default; a name that is not known raises a TypeError-kind.

#include <nanobind/nanobind.h>

#include "tornasole/model.h"

namespace tornasole::python {

ModelDescription model_of(nanobind::handle dict);
StepFacts facts_of(nanobind::handle dict);

}  // namespace tornasole::python
