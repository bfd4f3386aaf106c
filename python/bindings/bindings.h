#pragma once

// The parts of the module tornasole._engine, one per public header.

#include <nanobind/nanobind.h>

namespace tornasole::python {

void bind_stored_events(nanobind::module_& module);  // stored_events.h
void bind_hook(nanobind::module_& module);           // hook.h, options.h, model.h
void bind_stats(nanobind::module_& module);          // stats.h
void bind_trial(nanobind::module_& module);          // trial.h

}  // namespace tornasole::python
