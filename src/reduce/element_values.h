#pragma once

// Elements of any real type as doubles, and the checks every function over them starts with.

#include <string_view>

#include "base/errors.h"
#include "reduce/int_loads.h"
#include "reduce/loads.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

// An integer or bool as a double; 64-bit integers are rounded.
template <typename Load>
struct LoadIntValue {
  using Raw = typename Load::Raw;
  double operator()(Raw raw) const noexcept { return static_cast<double>(Load{}(raw)); }
};

constexpr bool is_complex_dtype(DType dtype) noexcept {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// Calls function(load) with a load that has Raw and gives doubles. For every numeric type but the complex ones.
template <typename Function>
auto with_value_load(DType dtype, const Function& function) {
  if (dtype_is_inexact(dtype)) return with_load(dtype, function);
  return with_int_load(dtype, [&](auto load) { return function(LoadIntValue<decltype(load)>{}); });
}

// kInvalid unless the tensor has elements of a fixed size that can be read. `what` is what was to be computed.
inline Status check_elements(const TensorView& tensor, std::string_view what) {
  if (dtype_size(tensor.dtype()) == 0) {
    return invalid_error("{} of a tensor of {}: not defined; allowed: numbers and bools", what,
                         dtype_name(tensor.dtype()));
  }
  if (tensor.size_bytes() < 0) {
    return invalid_error("{} of a tensor of shape {}: an extent is negative or the size overflows", what,
                         tensor.shape().to_string());
  }
  if (tensor.data() == nullptr && tensor.size_bytes() > 0) {
    return invalid_error("{} of a tensor of shape {}: there is no data", what, tensor.shape().to_string());
  }
  return {};
}

// The same, and no complex numbers.
inline Status check_real_elements(const TensorView& tensor, std::string_view what) {
  TORNASOLE_CHECK(check_elements(tensor, what));
  if (is_complex_dtype(tensor.dtype())) {
    return invalid_error("{} of a tensor of {}: not defined; allowed: real numbers and bools", what,
                         dtype_name(tensor.dtype()));
  }
  return {};
}

}  // namespace tornasole::reduce
