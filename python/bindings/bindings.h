#pragma once

// The parts of the module tornasole._engine, one per public header.

#include <nanobind/nanobind.h>

namespace tornasole::python {

void bind_batches(nanobind::module_& module);           // callbacks of Keras
void bind_bucket(nanobind::module_& module);            // bucket.h
void bind_check(nanobind::module_& module);             // check.h
void bind_hook(nanobind::module_& module);              // hook.h, model.h
void bind_inprocess_rules(nanobind::module_& module);   // inprocess_rules.h
void bind_options(nanobind::module_& module);           // options.h
void bind_rule(nanobind::module_& module);              // rule.h
void bind_stats(nanobind::module_& module);             // stats.h
void bind_checkpoint_files(nanobind::module_& module);  // checkpoint_files.h
void bind_step_writer(nanobind::module_& module);       // step_writer.h
void bind_stored_events(nanobind::module_& module);     // stored_events.h
void bind_torch(nanobind::module_& module);             // callbacks of PyTorch
void bind_torch_losses(nanobind::module_& module);      // losses of PyTorch programs
void bind_torch_steps(nanobind::module_& module);       // steps of PyTorch
void bind_trial(nanobind::module_& module);             // trial.h

}  // namespace tornasole::python
