// tornasole._engine: the engine as Python sees it. What users call is in the package around it.

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "tornasole/c.h"

NB_MODULE(_engine, module) {
  // Models that live to the end of the process hold callbacks to the end.
  nanobind::set_leak_warnings(false);
  module.doc() = "The engine. Users import tornasole, not this.";
  module.attr("__version__") = tornasole_version();
  tornasole::python::bind_options(module);
  tornasole::python::bind_hook(module);
  tornasole::python::bind_stats(module);
  tornasole::python::bind_checkpoint_files(module);
  tornasole::python::bind_step_writer(module);
  tornasole::python::bind_bucket(module);
  tornasole::python::bind_stored_events(module);
  tornasole::python::bind_torch(module);
  tornasole::python::bind_torch_steps(module);
  tornasole::python::bind_torch_losses(module);
  tornasole::python::bind_batches(module);
  tornasole::python::bind_trial(module);
  tornasole::python::bind_rule(module);
  tornasole::python::bind_check(module);
  tornasole::python::bind_inprocess_rules(module);
}
