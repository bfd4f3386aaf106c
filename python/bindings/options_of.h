#pragma once

// Options as plain objects of Python, and back. A schedule is the tuple (save_interval, start_step, end_step,
// save_steps, when_nan), a SaveConfig a dict from the number of a mode to one, a ReductionConfig the tuple
// (reductions, abs_reductions, norms, abs_norms, save_raw_tensor, save_shape), a collection the tuple (name,
// include_regex, exclude_regex, tensor_names, reduction_config, save_config, save_histogram). A value that cannot be
// taken raises the exception for its kind, named after `what`.

#include <nanobind/nanobind.h>

#include "tornasole/options.h"

namespace tornasole::python {

SaveConfigMode schedule_of(nanobind::handle tuple);
nanobind::tuple to_python(const SaveConfigMode& schedule);
SaveConfig save_config_of(nanobind::handle dict);
nanobind::dict to_python(const SaveConfig& config);
ReductionConfig reduction_config_of(nanobind::handle tuple);
nanobind::tuple to_python(const ReductionConfig& config);
CollectionConfig collection_config_of(nanobind::handle tuple);
nanobind::tuple to_python(const CollectionConfig& config);
// From a dict by the names of HookOptions; what is None is left out.
HookOptions hook_options_of(nanobind::handle dict);
nanobind::dict to_python(const HookOptions& options);

}  // namespace tornasole::python
