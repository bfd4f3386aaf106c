// A tensor and the same tensor as it was before: how far it moved, and in what direction.
//
// Both are walked in row-major order, block by block. Sums of squares that leave the range in which doubles are precise
// are made again, of numbers scaled by the largest of them.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "reduce/accumulate.h"
#include "reduce/blocks.h"
#include "reduce/derived.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {
namespace {

// Hands out the elements of a tensor in row-major order, as many at a time as asked for.
template <typename Raw>
class ElementCursor {
 public:
  explicit ElementCursor(const TensorView& tensor)
      : layout_(tensor, ElementOrder::kRowMajor),
        walk_(layout_),
        run_(layout_.extent(layout_.rank() - 1)),
        stride_(layout_.stride(layout_.rank() - 1)) {}

  void take(Raw* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (place_ == run_) {
        walk_.advance();
        place_ = 0;
      }
      std::memcpy(&out[i], walk_.row() + place_ * stride_, sizeof(Raw));
      ++place_;
    }
  }

 private:
  const Layout layout_;
  RowWalk walk_;
  const std::int64_t run_;
  const std::int64_t stride_;
  std::int64_t place_ = 0;
};

// The difference of integers is exact before it is rounded: neighbours of 64 bits do not become the same.
__extension__ typedef __int128 Wide;
template <typename Load>
double difference_of(const Load& load, typename Load::Raw a, typename Load::Raw b) {
  return load(a) - load(b);
}
template <typename Load>
double difference_of(const LoadIntValue<Load>&, typename Load::Raw a, typename Load::Raw b) {
  return static_cast<double>(static_cast<Wide>(Load{}(a)) - static_cast<Wide>(Load{}(b)));
}

// Calls function(now, before, difference, count) with blocks of doubles.
template <typename Function>
void for_each_pair_block(const TensorView& now, const TensorView& before, const Function& function) {
  if (now.element_count() <= 0) return;
  with_value_load(now.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    ElementCursor<Raw> cursor(before);
    for_each_block<Raw>(now, ElementOrder::kRowMajor, [&](const Raw* raw, std::size_t size) {
      std::array<Raw, kBlockElements> old;
      std::array<double, kBlockElements> a, b, d;
      cursor.take(old.data(), size);
      for (std::size_t i = 0; i < size; ++i) {
        a[i] = load(raw[i]);
        b[i] = load(old[i]);
        d[i] = difference_of(load, raw[i], old[i]);
      }
      function(a.data(), b.data(), d.data(), size);
      return true;
    });
  });
}

// Products of these scaled numbers neither overflow nor vanish. Powers of two change no digit.
struct Scales {
  double now = 1, before = 1, difference = 1;
};
struct Sums {
  CompensatedSum now, before, difference, product;  // of squares; of now times before
  double max_now = 0, max_before = 0, max_difference = 0;
};

// Floats in the order of memory. Their squares are no trouble for a double, so nothing is scaled.
bool are_plain_floats(const TensorView& now, const TensorView& before) {
  return now.dtype() == DType::kFloat32 && before.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(before.data()) % alignof(float) == 0;
}

Sums sum_up_floats(const TensorView& now, const TensorView& before) {
  Sums sums;
  const auto* old = reinterpret_cast<const float*>(before.data());
  const VectorKernels& kernels = vector_kernels();
  for_each_block<float>(now, ElementOrder::kRowMajor, [&](const float* x, std::size_t size) {
    BlockPairSums block;
    kernels.compare_floats(x, old, size, &block);
    add_lanes(sums.now, block.now);
    add_lanes(sums.before, block.before);
    add_lanes(sums.difference, block.difference);
    add_lanes(sums.product, block.product);
    old += size;
    return true;
  });
  return sums;
}

Sums sum_up(const TensorView& now, const TensorView& before, Scales scale) {
  if (are_plain_floats(now, before)) return sum_up_floats(now, before);
  Sums sums;
  for_each_pair_block(now, before, [&](const double* a, const double* b, const double* d, std::size_t size) {
    Lanes na{}, nb{}, nd{}, ab{};
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t lane = i % kLanes;
      const double x = a[i] * scale.now;
      const double y = b[i] * scale.before;
      const double z = d[i] * scale.difference;
      na[lane] += x * x;
      nb[lane] += y * y;
      nd[lane] += z * z;
      ab[lane] += x * y;
      sums.max_now = std::max(sums.max_now, std::fabs(a[i]));
      sums.max_before = std::max(sums.max_before, std::fabs(b[i]));
      sums.max_difference = std::max(sums.max_difference, std::fabs(d[i]));
    }
    add_lanes(sums.now, na);
    add_lanes(sums.before, nb);
    add_lanes(sums.difference, nd);
    add_lanes(sums.product, ab);
  });
  return sums;
}

// The power of two that brings the largest number near one; 1 if squares of it are no trouble, or it is no number.
double scale_for(double largest) {
  if (!std::isfinite(largest) || largest == 0 || (largest > 0x1p-400 && largest < 0x1p400)) return 1;
  return std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
}

struct Compared {
  double l2_difference = 0;
  double l2_before = 0;
  double cosine = 0;
};

Compared compare(const TensorView& now, const TensorView& before) {
  Scales scale;
  Sums sums = sum_up(now, before, scale);
  const Scales better{scale_for(sums.max_now), scale_for(sums.max_before), scale_for(sums.max_difference)};
  if (better.now != 1 || better.before != 1 || better.difference != 1) {
    scale = better;
    sums = sum_up(now, before, scale);
  }
  const double l2_now = std::sqrt(sums.now.value());
  const double l2_before = std::sqrt(sums.before.value());
  Compared compared;
  compared.l2_difference = std::sqrt(sums.difference.value()) / scale.difference;
  compared.l2_before = l2_before / scale.before;
  const double cosine = sums.product.value() / l2_now / l2_before;  // 0 / 0 is NaN
  compared.cosine = std::isnan(cosine) ? cosine : std::clamp(cosine, -1.0, 1.0);
  return compared;
}

Status check_pair(const TensorView& now, const TensorView& before, std::string_view what) {
  TORNASOLE_CHECK(check_real_elements(now, what));
  TORNASOLE_CHECK(check_real_elements(before, what));
  if (now.dtype() == before.dtype() && now.shape() == before.shape()) return {};
  return invalid_error("{} of a tensor {} {} that was {} {} before: type and shape must be the same", what,
                       dtype_name(now.dtype()), now.shape().to_string(), dtype_name(before.dtype()),
                       before.shape().to_string());
}

Tensor pair_of(double first, double second) {
  const std::array<double, 2> values = {first, second};
  return make_tensor<double>(values, Shape{2});
}

Result<Movement> movement_for(const TensorView& now, const TensorView& before, std::string_view what) {
  TORNASOLE_CHECK(check_pair(now, before, what));
  const Compared compared = compare(now, before);
  return Movement{pair_of(compared.l2_difference, compared.l2_before), pair_of(compared.cosine, compared.l2_before)};
}

}  // namespace

Result<Tensor> update(const TensorView& now, const TensorView& before) {
  TORNASOLE_TRY(Movement both, movement_for(now, before, "update"));
  return std::move(both.update);
}

Result<Tensor> cosine_previous(const TensorView& now, const TensorView& before) {
  TORNASOLE_TRY(Movement both, movement_for(now, before, "cosine_previous"));
  return std::move(both.cosine_previous);
}

Result<Movement> movement(const TensorView& now, const TensorView& before) {
  return movement_for(now, before, "update and cosine_previous");
}

}  // namespace tornasole::reduce
