#pragma once

// Statistics in tables and in JSON; NaN and infinities stand out.

#include <array>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/table_text.h"
#include "tornasole/reduction.h"
#include "tornasole/stats.h"
#include "tornasole/tensor.h"

namespace tornasole::cli {

// What tables have columns for.
inline constexpr std::array<Stat, 9> kShownStats = {Stat::kCount, Stat::kMin,   Stat::kMax, Stat::kMean, Stat::kStd,
                                                    Stat::kL2,    Stat::kZeros, Stat::kNan, Stat::kInf};

// "-" if there is none; in the tone of an error if it is not finite, or counts what is not.
Cell stat_cell(Stat stat, std::optional<double> value);
// True if the tensor holds a NaN or an infinity, or a stored reduction of it is one.
bool has_non_finite(const Stats& stats);
// What was stored, as far as there is a statistic of that name.
Stats stats_of(const std::map<Reduction, Tensor>& reductions);
// {"mean": 0.5, ...}: every statistic that there is.
void write_stats(JsonWriter& json, const Stats& stats);

TensorView view_of(const Tensor& tensor);
// "[2, 0, 1]" of a row-major position.
std::string index_text(const Shape& shape, std::int64_t position);

}  // namespace tornasole::cli
