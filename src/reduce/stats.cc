// The public face of the summaries: numbers as doubles, by name.

#include "tornasole/stats.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "reduce/reduce.h"

namespace tornasole {
namespace {

constexpr std::array<std::string_view, kStatCount> kNames = {
    "count",    "min",   "max",     "mean",    "std",      "variance", "median",           "sum",        "prod",
    "l1",       "l2",    "abs_min", "abs_max", "abs_mean", "abs_std",  "abs_variance",     "abs_median", "abs_sum",
    "abs_prod", "zeros", "nan",     "inf",     "pos_inf",  "neg_inf",  "first_non_finite", "subnormal",  "at_max"};

// The statistics that are reductions, and which.
struct ReductionStat {
  Stat stat;
  Reduction reduction;
};
constexpr ReductionStat kReductionStats[] = {
    {Stat::kMin, {ReductionKind::kMin, false}},
    {Stat::kMax, {ReductionKind::kMax, false}},
    {Stat::kMean, {ReductionKind::kMean, false}},
    {Stat::kStd, {ReductionKind::kStd, false}},
    {Stat::kVariance, {ReductionKind::kVariance, false}},
    {Stat::kMedian, {ReductionKind::kMedian, false}},
    {Stat::kSum, {ReductionKind::kSum, false}},
    {Stat::kProd, {ReductionKind::kProd, false}},
    {Stat::kL1, {ReductionKind::kL1, false}},
    {Stat::kL2, {ReductionKind::kL2, false}},
    {Stat::kAbsMin, {ReductionKind::kMin, true}},
    {Stat::kAbsMax, {ReductionKind::kMax, true}},
    {Stat::kAbsMean, {ReductionKind::kMean, true}},
    {Stat::kAbsStd, {ReductionKind::kStd, true}},
    {Stat::kAbsVariance, {ReductionKind::kVariance, true}},
    {Stat::kAbsMedian, {ReductionKind::kMedian, true}},
    {Stat::kAbsSum, {ReductionKind::kSum, true}},
    {Stat::kAbsProd, {ReductionKind::kProd, true}},
};

// Those that zeros and numbers that are not finite have to be counted for.
constexpr Stat kCountStats[] = {Stat::kZeros,  Stat::kNan,    Stat::kInf,
                                Stat::kPosInf, Stat::kNegInf, Stat::kFirstNonFinite};

Stat stat_of(Reduction reduction) noexcept {
  return std::ranges::find(kReductionStats, reduction, &ReductionStat::reduction)->stat;
}

}  // namespace

std::string_view stat_name(Stat stat) noexcept { return kNames[static_cast<std::size_t>(stat)]; }

std::optional<Stat> parse_stat(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Stat>(found - kNames.begin());
}

Result<Stats> stats(const TensorView& tensor, StatSet wanted) {
  if (dtype_size(tensor.dtype()) == 0) {
    return invalid_error("statistics of a tensor of type {}: only numbers and bools have any",
                         dtype_name(tensor.dtype()));
  }
  const std::int64_t count = tensor.element_count();
  if (count < 0) return invalid_error("statistics of a tensor of shape {}: not a shape", tensor.shape().to_string());
  if (count > 0 && tensor.data() == nullptr) {
    return invalid_error("statistics of a tensor of shape {} without data", tensor.shape().to_string());
  }
  Stats found;
  std::array<Reduction, std::size(kReductionStats)> reductions;
  std::size_t asked = 0;
  for (const ReductionStat& known : kReductionStats) {
    if (wanted.has(known.stat)) reductions[asked++] = known.reduction;
  }
  reduce::Counts counts;
  const bool is_counted = std::ranges::any_of(kCountStats, [&](Stat stat) { return wanted.has(stat); });
  const reduce::Reduced reduced = reduce::reduce(tensor, {reductions.data(), asked}, 1, is_counted ? &counts : nullptr);
  for (const reduce::ReducedValue& value : reduced.values) {
    if (const auto number = value.value.to_double()) found.set(stat_of(value.reduction), *number);
  }
  if (wanted.has(Stat::kCount)) found.set(Stat::kCount, static_cast<double>(count));
  const auto set = [&](Stat stat, std::int64_t number) {
    if (wanted.has(stat)) found.set(stat, static_cast<double>(number));
  };
  set(Stat::kZeros, counts.zeros);
  set(Stat::kNan, counts.nan);
  set(Stat::kPosInf, counts.positive_infinite);
  set(Stat::kNegInf, counts.negative_infinite);
  set(Stat::kInf, counts.positive_infinite + counts.negative_infinite);
  if (wanted.has(Stat::kFirstNonFinite)) {
    const bool is_finite = counts.nan + counts.positive_infinite + counts.negative_infinite == 0;
    found.set(Stat::kFirstNonFinite, is_finite ? -1 : static_cast<double>(reduce::first_non_finite(tensor)));
  }
  if (dtype_is_inexact(tensor.dtype()) && (wanted.has(Stat::kSubnormal) || wanted.has(Stat::kAtMax))) {
    const reduce::EdgeCounts edges = reduce::count_edges(tensor);
    set(Stat::kSubnormal, edges.subnormal);
    set(Stat::kAtMax, edges.at_max);
  }
  return found;
}

}  // namespace tornasole
