#pragma once

// AnyArray: a view of an array of numbers, as BorrowedArray has it, or of NumPy's texts, which are copied into one
// dimension.

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/arrays.h"
#include "tornasole/tensor.h"

namespace tornasole::python {

class AnyArray {
 public:
  explicit AnyArray(nanobind::handle array);
  const TensorView& view() const noexcept { return borrowed_ ? borrowed_->view() : *view_; }

 private:
  std::optional<BorrowedArray> borrowed_;
  std::vector<std::string> texts_;
  std::vector<std::string_view> text_views_;
  std::optional<TensorView> view_;
};

}  // namespace tornasole::python
