// bucket.h

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "tornasole/bucket.h"

namespace nb = nanobind;

namespace tornasole::python {
namespace {

using Request = std::tuple<std::string, std::uint64_t, std::optional<std::uint64_t>>;

nb::bytes to_bytes(const std::string& content) { return nb::bytes(content.data(), content.size()); }

nb::list read_many(Bucket& bucket, const std::vector<Request>& wanted) {
  std::vector<Bucket::ReadRequest> requests;
  for (const auto& [key, offset, length] : wanted) requests.push_back({key, offset, length});
  std::vector<Result<std::string>> answers;
  {
    const nb::gil_scoped_release release;
    answers = bucket.read_many(requests);
  }
  // Bytes, or the reason as a text.
  nb::list contents;
  for (const Result<std::string>& answer : answers) {
    if (answer.ok()) {
      contents.append(to_bytes(*answer));
    } else {
      contents.append(nb::str(answer.error().message.c_str()));
    }
  }
  return contents;
}

}  // namespace

void bind_bucket(nb::module_& module) {
  nb::class_<Bucket>(module, "Bucket")
      .def_static(
          "open", [](const std::string& name) { return value_of(Bucket::open(name)); }, nb::arg("name"))
      .def(
          "list",
          [](Bucket& bucket, std::string prefix, std::string delimiter, std::string start_after) {
            auto keys = [&] {
              const nb::gil_scoped_release release;
              return bucket.list({std::move(prefix), std::move(delimiter), std::move(start_after)});
            }();
            return value_of(std::move(keys));
          },
          nb::arg("prefix"), nb::arg("delimiter"), nb::arg("start_after"))
      .def("read_many", &read_many, nb::arg("requests"))
      .def(
          "write",
          [](Bucket& bucket, const std::string& key, const nb::bytes& content) {
            const std::string_view view(content.c_str(), content.size());
            const Status written = [&] {
              const nb::gil_scoped_release release;
              return bucket.write(key, view);
            }();
            check(written);
          },
          nb::arg("key"), nb::arg("content"))
      .def(
          "remove_below",
          [](Bucket& bucket, const std::string& prefix) {
            auto removed = [&] {
              const nb::gil_scoped_release release;
              return bucket.remove_below(prefix);
            }();
            return value_of(std::move(removed));
          },
          nb::arg("prefix"));
}

}  // namespace tornasole::python
