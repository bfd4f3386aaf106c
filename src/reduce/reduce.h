#pragma once

// Numbers from a tensor: the one definition for capture, queries and rules (capture specification 5.2).
//
//   in:  TensorView (contiguous or strided, any dtype), the reductions wanted
//   out: one ReducedValue per reduction, each a [1] tensor; those not defined for the type or size are left out

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tornasole/reduction.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

struct ReducedValue {
  Reduction reduction;
  Tensor value;  // shape [1]
};
struct Reduced {
  std::vector<ReducedValue> values = {};
  std::vector<Reduction> skipped = {};  // not defined for this type or size
};

// Up to `threads` threads share a large tensor; their number does not change the result.
Reduced reduce(const TensorView& tensor, std::span<const Reduction> wanted, int threads = 1);

// True if a float or complex element is NaN or infinite; integers, bools and strings never are.
bool has_non_finite(const TensorView& tensor) noexcept;
// The mean of all elements as a double, for metric records; NaN if it is not defined.
double mean_of(const TensorView& tensor) noexcept;

// Lossless widening to a type that smdebug reads (docs/format.md 3.2): the same view if there is nothing to widen, else
// a tensor of the wider type; uint64 values beyond int64 stay as they are and set *is_exact_only.
std::optional<Tensor> widen_for_smdebug(const TensorView& tensor, bool* is_exact_only);

}  // namespace tornasole::reduce
