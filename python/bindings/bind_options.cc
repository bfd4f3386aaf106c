#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>

#include "bindings/bindings.h"
#include "bindings/options_of.h"
#include "bindings/python_errors.h"
#include "tornasole/hook.h"

namespace tornasole::python {

namespace nb = nanobind;

void bind_options(nb::module_& module) {
  module.def(
      "complete_save_config",
      [](nb::handle schedule) { return to_python(value_of(complete_save_config(schedule_of(schedule)))); },
      nb::arg("schedule"), "The schedule with its defaults filled in; an exception for a field that is not allowed.");
  module.def(
      "should_save_step",
      [](nb::handle schedule, std::int64_t step) { return should_save_step(schedule_of(schedule), step); },
      nb::arg("schedule"), nb::arg("step"), "Whether the schedule saves this step of its mode.");
  module.def(
      "check_reduction_config",
      [](nb::handle config) {
        ReductionConfig taken = reduction_config_of(config);
        check(check_reduction_config(taken));
        return to_python(taken);
      },
      nb::arg("config"), "The same as plain lists; an exception for an item that is not allowed.");
  module.def(
      "reductions_text", [](nb::handle config) { return reductions_text(reduction_config_of(config)); },
      nb::arg("config"), "The comma list of configuration files.");
  module.def(
      "parse_reductions",
      [](std::string_view text) {
        ReductionConfig config;
        check(add_reductions(text, &config));
        return to_python(config);
      },
      nb::arg("text"), "What a comma list of reductions asks for.");
  module.def(
      "collections_of",
      [](std::string_view framework, std::string_view version) {
        nb::list list;
        for (const CollectionConfig& config : collections_of(value_of(framework_of(framework)), version)) {
          list.append(to_python(config));
        }
        return list;
      },
      nb::arg("framework"), nb::arg("version") = "", "The built-in collections, in creation order.");
  module.def(
      "new_collection",
      [](std::string_view framework, std::string_view name) {
        return to_python(new_collection(value_of(framework_of(framework)), name));
      },
      nb::arg("framework"), nb::arg("name"), "What a collection starts with when it is first asked for.");
  module.def(
      "saved_collections_of",
      [](std::string_view framework) { return saved_collections_of(value_of(framework_of(framework))); },
      nb::arg("framework"), "The collections that are saved without being asked for.");
  module.def(
      "collection_name", [](std::string_view name) { return std::string(collection_name(name)); }, nb::arg("name"),
      "The collection's own name for another one.");
  module.def(
      "finds_match",
      [](std::string_view pattern, std::string_view text) { return value_of(finds_match(pattern, text)); },
      nb::arg("pattern"), nb::arg("text"), "Whether the pattern finds a match anywhere in the text.");
  module.def(
      "parse_config_file",
      [](std::string_view text, const std::string& file_name, std::string_view framework) {
        const ConfigFile file = value_of(parse_config_file(text, file_name, value_of(framework_of(framework))));
        nb::list collections;
        for (const CollectionConfig& config : file.collections) collections.append(to_python(config));
        return nb::make_tuple(to_python(file.options), collections, file.warnings);
      },
      nb::arg("text"), nb::arg("file_name"), nb::arg("framework"),
      "What a configuration file says: options by name, collections, warnings.");
  module.def("find_config_file", &find_config_file, nb::arg("path") = "");
  module.def("is_strict", &is_strict, "TORNASOLE_STRICT=1: no failure is swallowed.");
  module.def("is_capture_enabled", [] {
    std::string warning;
    const bool is_enabled = is_capture_enabled(&warning);
    return nb::make_tuple(is_enabled, warning);
  });
}

}  // namespace tornasole::python
