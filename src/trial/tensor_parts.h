#pragma once

// TensorParts: the way back from a tensor to the parts that hold it, so that a question about one tensor takes as long
// as there is to tell of it, and not as long as the run is. Made from the columns when it is first asked for.

#include <cstdint>
#include <vector>

#include "trial/index_columns.h"

namespace tornasole::trial {

class TensorParts {
 public:
  explicit TensorParts(const IndexColumns& columns);

  // Whether it still tells of all parts: they are only ever added.
  bool is_of(const IndexColumns& columns) const noexcept { return parts_.size() == columns.part_count(); }

  // Calls back for every part that holds the tensor in any form, in no particular order.
  template <typename OnPart>
  void for_each(std::uint32_t tensor, const IndexColumns& columns, OnPart on_part) const {
    if (tensor + 1 >= layout_bounds_.size()) return;
    for (std::size_t i = layout_bounds_[tensor]; i < layout_bounds_[tensor + 1]; ++i) {
      const std::uint32_t layout = layouts_[i];
      for (std::size_t k = part_bounds_[layout]; k < part_bounds_[layout + 1]; ++k) on_part(columns.part(parts_[k]));
    }
  }

 private:
  std::vector<std::uint32_t> layouts_;      // tensor by tensor
  std::vector<std::size_t> layout_bounds_;  // where the layouts of a tensor begin, and the end
  std::vector<std::uint32_t> parts_;        // layout by layout
  std::vector<std::size_t> part_bounds_;    // where the parts of a layout begin, and the end
};

}  // namespace tornasole::trial
