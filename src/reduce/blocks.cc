#include "reduce/blocks.h"

#include <utility>

namespace tornasole::reduce {

Layout::Layout(const TensorView& tensor, ElementOrder order) noexcept : data_(tensor.data()) {
  const auto item = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
  const auto strides = tensor.strides_bytes();
  if (strides.empty()) {
    extents_[0] = tensor.element_count();
    strides_[0] = item;
    rank_ = 1;
    return;
  }
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    if (tensor.shape()[axis] == 1) continue;
    extents_[rank_] = tensor.shape()[axis];
    strides_[rank_++] = strides[axis];
  }
  if (order == ElementOrder::kAny) sort_axes();
  merge_axes();
  if (rank_ == 0) {
    extents_[0] = 1;
    strides_[0] = item;
    rank_ = 1;
  }
}

void Layout::sort_axes() noexcept {
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    if (strides_[axis] >= 0) continue;
    data_ += strides_[axis] * (extents_[axis] - 1);
    strides_[axis] = -strides_[axis];
  }
  // Insertion: ranks are small and mostly in order. Repeated elements (stride 0) go outermost, where they cost nothing.
  const auto is_outer = [](std::int64_t a, std::int64_t b) { return a == 0 ? b != 0 : b != 0 && a > b; };
  for (std::size_t end = 1; end < rank_; ++end) {
    for (std::size_t at = end; at > 0 && is_outer(strides_[at], strides_[at - 1]); --at) {
      std::swap(strides_[at], strides_[at - 1]);
      std::swap(extents_[at], extents_[at - 1]);
    }
  }
}

void Layout::merge_axes() noexcept {
  std::size_t kept = 0;
  for (std::size_t axis = 1; axis < rank_; ++axis) {
    if (strides_[kept] == strides_[axis] * extents_[axis]) {
      extents_[kept] *= extents_[axis];
      strides_[kept] = strides_[axis];
    } else {
      ++kept;
      extents_[kept] = extents_[axis];
      strides_[kept] = strides_[axis];
    }
  }
  if (rank_ > 0) rank_ = kept + 1;
}

bool Layout::is_aligned(std::size_t alignment) const noexcept {
  auto bits = reinterpret_cast<std::uintptr_t>(data_);
  for (std::size_t axis = 0; axis < rank_; ++axis) bits |= static_cast<std::uintptr_t>(strides_[axis]);
  return bits % alignment == 0;
}

}  // namespace tornasole::reduce
