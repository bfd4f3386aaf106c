#pragma once

// In what form tensors are saved, out of what a user wrote.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tensor/reduction_spec.h"
#include "tornasole/result.h"

namespace tornasole::config {

// The reduction keys of one object of a file.
struct ReductionFields {
  std::optional<std::vector<Reduction>> reductions = {};
  std::optional<bool> save_raw_tensor = {};
  std::optional<bool> save_shape = {};

  // Unset when the fields ask for nothing: then the form is the hook's, or raw.
  std::optional<ReductionSpec> spec() const;
};

// A comma list or an array of reductions in any spelling; blanks and empty items are ignored.
Result<std::vector<Reduction>> read_reductions(const Json& value);

}  // namespace tornasole::config
