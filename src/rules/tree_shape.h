#pragma once

// The shape of the trees of one boosting round, from the table that describes them.
//
//   in:  the columns ID, Yes and No: a node, and where its branches lead; a leaf leads nowhere
//   out: how deep they are, and of how many leaves
//   who: the rule TreeDepth, and the check

#include <cstdint>
#include <optional>

#include "tornasole/tensor.h"

namespace tornasole::rules {

struct TreeShape {
  std::int64_t depth = 0;  // of the deepest tree: branches on the longest way down
  std::int64_t trees = 0, leaves = 0;
};

// Nothing if a column is missing, or they do not belong together. A damaged table, with circles, has a shape too.
std::optional<TreeShape> tree_shape(const Tensor* ids, const Tensor* yes, const Tensor* no);

}  // namespace tornasole::rules
