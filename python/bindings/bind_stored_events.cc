#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "tornasole/stored_events.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

nb::list read_events(const nb::bytes& file) {
  const std::string_view bytes(file.c_str(), file.size());
  std::optional<Result<std::vector<StoredEvent>>> decoded;
  {
    const nb::gil_scoped_release unlocked;
    decoded = decode_events(bytes);
  }
  nb::list events;
  for (StoredEvent& event : value_of(std::move(*decoded))) {
    events.append(nb::make_tuple(event.name, event.global_step.number, to_numpy(std::move(event.value)),
                                 static_cast<int>(event.step.mode), event.step.number, event.wall_time_s));
  }
  return events;
}

}  // namespace

void bind_stored_events(nb::module_& module) {
  module.def("decode_events", &read_events, nb::arg("file"),
             "The tensors in the bytes of an event file: name, global step, value, mode, step of the mode, wall time.");
}

}  // namespace tornasole::python
