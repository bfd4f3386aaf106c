#pragma once

// "0:3,:,1": a part of a tensor, in Python's words: index, begin:end, begin:end:step, negative numbers from the end,
// "..." for the axes between.

#include <string_view>

#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::cli {

// Fewer parts than axes leave the rest whole; an index removes its axis. kInvalid says which part is wrong and what
// the axis allows.
Result<Tensor> slice_of(const Tensor& tensor, std::string_view text);

}  // namespace tornasole::cli
