#pragma once

#include <cstddef>

#include "tornasole/tensor.h"

namespace tornasole::capture {

// The elements row-major without gaps, into memory aligned to 16 bytes. Large ones go past the caches: written back by
// another thread much later, they would only push out what the training is about to use, and fetching the lines they
// overwrite would double the cost.
void copy_elements(const TensorView& tensor, std::byte* out) noexcept;

}  // namespace tornasole::capture
