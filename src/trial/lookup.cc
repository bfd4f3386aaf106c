#include "trial/lookup.h"

#include <algorithm>

namespace tornasole::trial {

std::vector<std::uint32_t> workers_with(const IndexColumns& columns, std::uint32_t tensor, ModeStep step) {
  std::vector<std::uint32_t> workers;
  for_each_part(columns, step, [&](const Part& part) {
    if (columns.tables().layouts.has_tensor(part.layout, tensor)) workers.push_back(part.worker);
  });
  std::ranges::sort(workers, {}, [&](std::uint32_t id) -> const std::string& { return columns.worker_name(id); });
  workers.erase(std::ranges::unique(workers).begin(), workers.end());
  return workers;
}

Place find_place(const IndexColumns& columns, Series series, ModeStep step, std::uint32_t worker) {
  Place found;
  for_each_part(columns, step, [&](const Part& part) {
    if (part.worker != worker) return;
    const std::int64_t place = columns.tables().layouts.find(part.layout, series);
    if (place >= 0) found = {&part, part.locations + place};
  });
  return found;
}

std::vector<Series> stored_reductions(const IndexColumns& columns, std::uint32_t tensor, ModeStep step,
                                      std::uint32_t worker) {
  std::vector<Series> found;
  for_each_part(columns, step, [&](const Part& part) {
    if (part.worker != worker) return;
    const auto [first, last] = columns.tables().layouts.find_tensor(part.layout, tensor);
    for (const Series series : columns.tables().layouts.series(part.layout).subspan(first, last - first)) {
      if (reduction_of(series)) found.push_back(series);
    }
  });
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

bool has_reductions(const IndexColumns& columns, std::uint32_t tensor, ModeStep step, std::uint32_t worker) {
  bool found = false;
  for_each_part(columns, step, [&](const Part& part) {
    if (part.worker != worker) return;
    const auto [first, last] = columns.tables().layouts.find_tensor(part.layout, tensor);
    for (const Series series : columns.tables().layouts.series(part.layout).subspan(first, last - first)) {
      found |= !is_value(series) && !is_shape(series);
    }
  });
  return found;
}

std::vector<bool> tensors_at(const IndexColumns& columns, ModeStep step) {
  std::vector<bool> has(columns.tables().names.size());
  for_each_part(columns, step, [&](const Part& part) {
    for (const Series series : columns.tables().layouts.series(part.layout)) has[tensor_of(series)] = true;
  });
  return has;
}

}  // namespace tornasole::trial
