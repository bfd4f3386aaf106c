#include "bindings/any_array.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// NumPy's arrays of str ("U") and bytes ("S").
bool holds_texts(nb::handle array) {
  if (!nb::hasattr(array, "dtype") || !nb::hasattr(array.attr("dtype"), "kind")) return false;
  const auto kind = nb::cast<std::string>(nb::str(array.attr("dtype").attr("kind")));
  return kind == "U" || kind == "S";
}

}  // namespace

AnyArray::AnyArray(nb::handle array) {
  if (!holds_texts(array)) {
    borrowed_.emplace(array);
    return;
  }
  const nb::object flat = array.attr("ravel")().attr("tolist")();
  for (const nb::handle text : nb::iter(flat)) {
    const bool is_bytes = PyBytes_Check(text.ptr()) != 0;
    texts_.push_back(is_bytes ? std::string(PyBytes_AsString(text.ptr())) : nb::cast<std::string>(text));
  }
  text_views_.assign(texts_.begin(), texts_.end());
  view_ = TensorView::strings(text_views_);
}

}  // namespace tornasole::python
