#pragma once

// Hands the elements of a tensor to a function, block by block, whatever the strides are.
//
//   1. The layout is brought to a normal form: axes of extent 1 dropped, axes that follow each other in memory merged.
//      Where the order of the elements does not matter, axes are also sorted by stride and negative strides turned
//      round, so that a transposed or channels-last tensor without gaps becomes one long run.
//   2. Long aligned runs are handed over where they are; everything else is gathered in a buffer of one block.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tornasole/tensor.h"

namespace tornasole::reduce {

enum class ElementOrder { kRowMajor, kAny };

inline constexpr std::size_t kBlockElements = 2048;

// Where the elements are, in normal form. Extents of 2 or more multiply to less than 2^63, so 63 axes are enough.
class Layout {
 public:
  // The tensor has at least one element and a fixed element size.
  Layout(const TensorView& tensor, ElementOrder order) noexcept;

  const std::byte* data() const noexcept { return data_; }
  std::size_t rank() const noexcept { return rank_; }
  std::int64_t extent(std::size_t axis) const noexcept { return extents_[axis]; }
  std::int64_t stride(std::size_t axis) const noexcept { return strides_[axis]; }
  // Every element lies at a multiple of the alignment.
  bool is_aligned(std::size_t alignment) const noexcept;

 private:
  void sort_axes() noexcept;
  void merge_axes() noexcept;

  static constexpr std::size_t kMaxRank = 63;
  const std::byte* data_;
  std::size_t rank_ = 0;
  std::array<std::int64_t, kMaxRank> extents_;
  std::array<std::int64_t, kMaxRank> strides_;
};

// Walks over the rows (runs along the last axis) of a layout.
class RowWalk {
 public:
  explicit RowWalk(const Layout& layout) noexcept : layout_(layout), row_(layout.data()) { index_.fill(0); }
  const std::byte* row() const noexcept { return row_; }
  // False when there is no further row.
  bool advance() noexcept {
    for (std::size_t axis = layout_.rank() - 1; axis-- > 0;) {
      row_ += layout_.stride(axis);
      if (++index_[axis] < layout_.extent(axis)) return true;
      row_ -= layout_.stride(axis) * layout_.extent(axis);
      index_[axis] = 0;
    }
    return false;
  }

 private:
  const Layout& layout_;
  const std::byte* row_;
  std::array<std::int64_t, 63> index_;
};

namespace blocks_detail {

// One run, cut into blocks.
template <typename Raw, typename Function>
bool visit_run(const std::byte* first, std::size_t run, const Function& function) {
  const auto* elements = reinterpret_cast<const Raw*>(first);
  for (std::size_t at = 0; at < run; at += kBlockElements) {
    if (!function(elements + at, std::min(kBlockElements, run - at))) return false;
  }
  return true;
}

// Rows in place.
template <typename Raw, typename Function>
bool visit_runs(const Layout& layout, const Function& function) {
  const auto run = static_cast<std::size_t>(layout.extent(layout.rank() - 1));
  RowWalk walk(layout);
  do {
    if (!visit_run<Raw>(walk.row(), run, function)) return false;
  } while (walk.advance());
  return true;
}

template <typename Raw, typename Function>
bool visit_gathered(const Layout& layout, const Function& function) {
  alignas(64) Raw buffer[kBlockElements];
  const std::int64_t run = layout.extent(layout.rank() - 1);
  const std::int64_t stride = layout.stride(layout.rank() - 1);
  std::size_t filled = 0;
  RowWalk walk(layout);
  do {
    const std::byte* from = walk.row();
    for (std::int64_t i = 0; i < run; ++i, from += stride) {
      std::memcpy(&buffer[filled], from, sizeof(Raw));
      if (++filled < kBlockElements) continue;
      if (!function(static_cast<const Raw*>(buffer), filled)) return false;
      filled = 0;
    }
  } while (walk.advance());
  return filled == 0 || function(static_cast<const Raw*>(buffer), filled);
}

}  // namespace blocks_detail

// Calls function(const Raw*, count) for every block until it returns false; returns whether it never did. Raw has the
// size of the tensor's elements. A block has at most kBlockElements. Allocates nothing.
template <typename Raw, typename Function>
bool for_each_block(const TensorView& tensor, ElementOrder order, const Function& function) {
  const std::int64_t count = tensor.element_count();
  if (count <= 0 || tensor.data() == nullptr) return true;
  if (tensor.strides_bytes().empty() && reinterpret_cast<std::uintptr_t>(tensor.data()) % alignof(Raw) == 0) {
    return blocks_detail::visit_run<Raw>(tensor.data(), static_cast<std::size_t>(count), function);
  }
  const Layout layout(tensor, order);
  const std::size_t last = layout.rank() - 1;
  constexpr std::int64_t kWorthARun = 256;
  const bool is_dense = layout.stride(last) == static_cast<std::int64_t>(sizeof(Raw)) &&
                        (layout.rank() == 1 || layout.extent(last) >= kWorthARun);
  if (is_dense && layout.is_aligned(alignof(Raw))) return blocks_detail::visit_runs<Raw>(layout, function);
  return blocks_detail::visit_gathered<Raw>(layout, function);
}

}  // namespace tornasole::reduce
