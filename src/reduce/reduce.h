#pragma once

// Numbers from a tensor: the one definition for capture, queries and rules (capture specification 5.2).
//
//   in:  TensorView (contiguous or strided, any dtype), the reductions wanted
//   out: one ReducedValue per reduction; those not defined for the type or size are left out

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/reduction.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

// One number of any type, on disk a tensor of shape [1].
class Scalar {
 public:
  Scalar() = default;
  template <Element T>
  explicit Scalar(T value) noexcept : dtype_(DTypeOf<T>::value) {
    static_assert(sizeof value <= sizeof words_);
    // Whole words: copies of a scalar must not wait for narrower stores.
    std::uint64_t words[2] = {};
    std::memcpy(words, &value, sizeof value);
    words_[0] = words[0];
    words_[1] = words[1];
  }
  // A type of at most 16 bytes.
  Scalar(DType dtype, const char* bytes) noexcept : dtype_(dtype) { std::memcpy(words_, bytes, dtype_size(dtype)); }
  DType dtype() const noexcept { return dtype_; }
  std::string_view bytes() const noexcept { return {reinterpret_cast<const char*>(words_), dtype_size(dtype_)}; }
  TensorView view() const { return {dtype_, words_, Shape{1}}; }
  Tensor to_tensor() const { return {dtype_, Shape{1}, std::string(bytes())}; }
  // As far as a double holds it; nothing for complex numbers.
  std::optional<double> to_double() const noexcept;
  bool is_finite() const noexcept;
  bool operator==(const Scalar& other) const noexcept { return dtype_ == other.dtype_ && bytes() == other.bytes(); }

 private:
  std::uint64_t words_[2] = {};
  DType dtype_ = DType::kFloat32;
};

struct ReducedValue {
  Reduction reduction;
  Scalar value;
};
struct Reduced {
  std::vector<ReducedValue> values = {};
  std::vector<Reduction> skipped = {};  // not defined for this type or size
};

// The one element of a tensor, as Scalar::to_double; nothing also if it has none or several, or is text.
std::optional<double> to_double(const Tensor& one) noexcept;

// Elements by what they are. Of a complex element: zero if both parts are, NaN if one is, else infinite (counted as
// positive) if one is.
struct Counts {
  std::int64_t zeros = 0, nan = 0, positive_infinite = 0, negative_infinite = 0;
  bool operator==(const Counts&) const = default;
};
// Up to `threads` threads share a large tensor; their number does not change the result. The counts come from the same
// read as the reductions.
Reduced reduce(const TensorView& tensor, std::span<const Reduction> wanted, int threads = 1, Counts* counts = nullptr);

// The row-major position of the first element that is NaN or infinite; -1 if there is none.
std::int64_t first_non_finite(const TensorView& tensor) noexcept;

// Elements at the edges of what their floating-point type can hold; of complex elements, those with a part there.
struct EdgeCounts {
  std::int64_t subnormal = 0;  // not zero, but below the smallest normal number
  std::int64_t at_max = 0;     // of the largest finite magnitude
  bool operator==(const EdgeCounts&) const = default;
};
EdgeCounts count_edges(const TensorView& tensor) noexcept;

// True if a float or complex element is NaN or infinite; integers, bools and strings never are.
bool has_non_finite(const TensorView& tensor) noexcept;
// The mean of all elements as a double, for metric records; NaN if it is not defined.
double mean_of(const TensorView& tensor) noexcept;

// Lossless widening to a type that smdebug reads (docs/format.md 3.2): the same view if there is nothing to widen, else
// a tensor of the wider type; uint64 values beyond int64 stay as they are and set *is_exact_only.
std::optional<Tensor> widen_for_smdebug(const TensorView& tensor, bool* is_exact_only);

}  // namespace tornasole::reduce
