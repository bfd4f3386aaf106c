#include "trial/tensor_parts.h"

#include <utility>

namespace tornasole::trial {
namespace {

// Calls back once for each tensor of a layout: its series are neighbours.
template <typename OnTensor>
void for_each_tensor(const IndexColumns& columns, std::uint32_t layout, OnTensor on_tensor) {
  std::uint32_t last = UINT32_MAX;
  for (const Series series : columns.tables().layouts.series(layout)) {
    if (tensor_of(series) == last) continue;
    last = tensor_of(series);
    on_tensor(last);
  }
}

// Items in groups: how many there are of each, then where each group begins and, last, the end.
void add_up(std::vector<std::size_t>* counts) {
  std::size_t total = 0;
  for (std::size_t& count : *counts) total += std::exchange(count, total);
}

}  // namespace

TensorParts::TensorParts(const IndexColumns& columns) {
  const std::uint32_t layouts = columns.tables().layouts.size();
  part_bounds_.resize(layouts + 1);
  for (std::uint32_t id = 0; id < columns.part_count(); ++id) ++part_bounds_[columns.part(id).layout];
  std::vector<bool> is_used(layouts);
  for (std::uint32_t layout = 0; layout < layouts; ++layout) is_used[layout] = part_bounds_[layout] > 0;
  add_up(&part_bounds_);
  parts_.resize(columns.part_count());
  std::vector<std::size_t> next(part_bounds_);
  for (std::uint32_t id = 0; id < columns.part_count(); ++id) parts_[next[columns.part(id).layout]++] = id;

  layout_bounds_.resize(columns.tables().names.size() + 1);
  for (std::uint32_t layout = 0; layout < layouts; ++layout) {
    if (is_used[layout]) for_each_tensor(columns, layout, [&](std::uint32_t tensor) { ++layout_bounds_[tensor]; });
  }
  add_up(&layout_bounds_);
  layouts_.resize(layout_bounds_.back());
  next = layout_bounds_;
  for (std::uint32_t layout = 0; layout < layouts; ++layout) {
    if (!is_used[layout]) continue;
    for_each_tensor(columns, layout, [&](std::uint32_t tensor) { layouts_[next[tensor]++] = layout; });
  }
}

}  // namespace tornasole::trial
