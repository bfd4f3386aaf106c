#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/any_array.h"
#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "tornasole/step_writer.h"

namespace tornasole::python {

namespace nb = nanobind;

void bind_step_writer(nb::module_& module) {
  nb::class_<StepWriter>(module, "StepWriter")
      .def_static(
          "open",
          [](const std::string& trial_dir, std::int64_t step, const std::string& worker, int mode,
             std::int64_t mode_step, bool replace) {
            return value_of(StepWriter::open({.trial_dir = trial_dir,
                                              .step = {step},
                                              .worker = worker,
                                              .mode = static_cast<Mode>(mode),
                                              .mode_step = mode_step,
                                              .replace = replace}));
          },
          nb::arg("trial_dir"), nb::arg("step"), nb::arg("worker"), nb::arg("mode"), nb::arg("mode_step"),
          nb::arg("replace") = false)
      .def(
          "write",
          [](StepWriter& self, std::string_view name, nb::handle array, std::optional<double> wall_time) {
            const AnyArray any(array);
            check(self.write(name, any.view(), wall_time));
          },
          nb::arg("name"), nb::arg("array"), nb::arg("wall_time") = nb::none())
      .def("write_shape",
           [](StepWriter& self, std::string_view name, const std::vector<std::int64_t>& dims) {
             check(self.write_shape(name, Shape(std::span<const std::int64_t>(dims))));
           })
      .def("close", [](StepWriter& self) { check(self.close()); })
      .def_prop_ro("path", [](StepWriter& self) { return self.path(); });
  module.def("mark_ended", [](const std::string& trial_dir) { check(mark_ended(trial_dir)); }, nb::arg("trial_dir"));
  module.def(
      "has_ended", [](const std::string& trial_dir) { return value_of(has_ended(trial_dir)); }, nb::arg("trial_dir"));
}

}  // namespace tornasole::python
