#pragma once

#include <vector>

#include "tornasole/reduction.h"

namespace tornasole {

// In what form a tensor is saved.
struct ReductionSpec {
  std::vector<Reduction> reductions = {};  // reductions, norms, absolute reductions, absolute norms; each once
  bool save_raw_tensor = true;
  bool save_shape = false;
  bool operator==(const ReductionSpec&) const = default;
};

}  // namespace tornasole
