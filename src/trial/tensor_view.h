#pragma once

#include <string_view>
#include <vector>

#include "tornasole/tensor.h"

namespace tornasole::trial {

// An owned tensor as a view; `texts` holds what a view of strings refers to.
inline TensorView view_of(const Tensor& tensor, std::vector<std::string_view>* texts) {
  if (tensor.dtype() != DType::kString) return {tensor.dtype(), tensor.bytes().data(), tensor.shape()};
  texts->assign(tensor.texts().begin(), tensor.texts().end());
  return TensorView::strings(*texts);
}

}  // namespace tornasole::trial
