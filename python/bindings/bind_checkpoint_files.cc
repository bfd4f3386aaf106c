#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "tornasole/checkpoint_files.h"

namespace tornasole::python {

namespace nb = nanobind;

void bind_checkpoint_files(nb::module_& module) {
  nb::class_<CheckpointFiles>(module, "CheckpointFiles")
      .def(nb::init<std::string>(), nb::arg("directory"))
      .def("have_changed", [](CheckpointFiles& self) { return value_of(self.have_changed()); })
      .def("accept", [](CheckpointFiles& self) { self.accept(); });
}

}  // namespace tornasole::python
