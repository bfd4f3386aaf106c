#pragma once

// Elements of a float32 tensor by their rank, without sorting them.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tornasole/tensor.h"

namespace tornasole::reduce {

// The floats with these ranks, which ascend and are within the tensor. Nothing where another way is better: few
// elements, elements that are not finite, or so many close together that telling them apart needs a copy of them.
std::optional<std::vector<float>> select_floats(const TensorView& tensor, std::span<const std::int64_t> ranks);

}  // namespace tornasole::reduce
