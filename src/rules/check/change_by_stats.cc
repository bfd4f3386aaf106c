#include "rules/check/change_by_stats.h"

#include <algorithm>
#include <cmath>

namespace tornasole::rules {
namespace {

using Row = std::array<float, kColumnCount>;

double at(const Row& row, Column column) { return row[static_cast<std::size_t>(column)]; }

}  // namespace

// Mean, deviation and size cannot go further than the elements do on average. The smallest and the largest element are
// elements: where weights turn without growing, these tell.
std::optional<StatChange> change_by_stats(const Row& then, const Row& now) {
  const auto went = [&](Column column) { return std::fabs(at(now, column) - at(then, column)); };
  const double size = std::hypot(at(then, Column::kMean), at(then, Column::kStd));
  const double ends = (went(Column::kMin) + went(Column::kMax)) / 2;
  const double change = std::max({went(Column::kMean), went(Column::kStd), ends});
  const bool is_known = std::isfinite(went(Column::kMean) + went(Column::kStd) + ends + size);
  return is_known ? std::optional(StatChange{.change = change, .size = size}) : std::nullopt;
}

}  // namespace tornasole::rules
