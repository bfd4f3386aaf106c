#pragma once

// A tensor as NumPy prints it: nested brackets, columns that line up, "..." in the middle of what is long.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tornasole/tensor.h"

namespace tornasole::cli {

struct ArrayTextOptions {
  std::size_t line_width = 75;
  std::int64_t threshold = 1000;  // with more elements only the edges are shown
  std::int64_t edge_items = 3;    // at each end of an axis
};

std::string array_text(const Tensor& tensor, const ArrayTextOptions& options = {});

}  // namespace tornasole::cli
