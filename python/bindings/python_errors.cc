#include "bindings/python_errors.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// The name of a kind in tornasole.exceptions.from_engine.
const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBase: return "base";
    case ErrorKind::kType: return "type";
    case ErrorKind::kValue: return "value";
    case ErrorKind::kRuntime: return "runtime";
    case ErrorKind::kNotImplemented: return "not_implemented";
    case ErrorKind::kBadCollection: return "bad_collection";
    case ErrorKind::kFileNotFound: return "file_not_found";
    case ErrorKind::kMissingCollectionFiles: return "missing_collection_files";
    case ErrorKind::kIndexReader: return "index_reader";
    case ErrorKind::kTensorUnavailable: return "tensor_unavailable";
    case ErrorKind::kTensorUnavailableForStep: return "tensor_unavailable_for_step";
    case ErrorKind::kShapeUnavailableForStep: return "shape_unavailable_for_step";
    case ErrorKind::kStepUnavailable: return "step_unavailable";
    case ErrorKind::kStepNotYetAvailable: return "step_not_yet_available";
    case ErrorKind::kNoMoreData: return "no_more_data";
    case ErrorKind::kInvalidWorker: return "invalid_worker";
    case ErrorKind::kInsufficientInformation: return "insufficient_information";
  }
  return "base";
}

// Messages tell paths and variables as they are, and those may hold bytes that are no UTF-8.
nb::object text_of(const std::string& text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  nb::object decoded = nb::steal(PyUnicode_DecodeUTF8(text.data(), size, "backslashreplace"));
  if (!decoded.is_valid()) throw nb::python_error();
  return decoded;
}

}  // namespace

void raise(const Error& error) {
  nb::dict details;
  if (error.details) {
    const ErrorDetails& d = *error.details;
    details["tensor"] = text_of(d.tensor);
    details["worker"] = text_of(d.worker);
    details["reason"] = text_of(d.reason);
    details["step"] = d.step;
    details["mode"] = static_cast<int>(d.mode);
    details["last_step"] = d.last_step;
    details["has_reductions"] = d.has_reductions;
  }
  const nb::object exception = nb::module_::import_("tornasole.exceptions")
                                   .attr("from_engine")(kind_name(error.kind), text_of(error.message), details);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace tornasole::python
