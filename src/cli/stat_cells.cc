#include "cli/stat_cells.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/element_reader.h"
#include "cli/number_text.h"
#include "cli/stat_series.h"

namespace tornasole::cli {
namespace {

bool is_count_of_bad(Stat stat) noexcept {
  return stat == Stat::kNan || stat == Stat::kInf || stat == Stat::kPosInf || stat == Stat::kNegInf;
}

}  // namespace

Cell stat_cell(Stat stat, std::optional<double> value) {
  if (!value) return {"-", Tone::kFaint};
  const bool is_bad = !std::isfinite(*value) || (is_count_of_bad(stat) && *value > 0);
  return {number_text(*value), is_bad ? Tone::kError : Tone::kPlain};
}

bool has_non_finite(const Stats& stats) {
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    const auto value = stats[stat];
    // An overflowing product or a mean of nothing is no fault of the elements, where these were counted.
    const bool is_judged = is_count_of_bad(stat) || !stats.has(Stat::kNan);
    if (value && is_judged && stat_cell(stat, value).tone == Tone::kError) return true;
  }
  return false;
}

Stats stats_of(const std::map<Reduction, Tensor>& reductions) {
  Stats stats;
  for (const auto& [reduction, value] : reductions) {
    const ElementReader reader(value);
    const auto stat = stat_of(reduction);
    if (stat && reader.count() > 0) stats.set(*stat, reader.real(0));
  }
  return stats;
}

void write_stats(JsonWriter& json, const Stats& stats) {
  json.begin_object();
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    if (const auto value = stats[stat]) {
      json.key(stat_name(stat));
      write_number(json, *value);
    }
  }
  json.end_object();
}

TensorView view_of(const Tensor& tensor) { return {tensor.dtype(), tensor.bytes().data(), tensor.shape()}; }

std::string index_text(const Shape& shape, std::int64_t position) {
  std::string text;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    const std::int64_t size = shape[axis] > 0 ? shape[axis] : 1;
    text = fmt::format("{}{}{}", position % size, text.empty() ? "" : ", ", text);
    position /= size;
  }
  return "[" + text + "]";
}

}  // namespace tornasole::cli
