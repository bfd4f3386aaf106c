#pragma once

// stats: numbers about a tensor, in one read of it, without a hook or a trial.
//
//   auto s = tornasole::stats(view, {tornasole::Stat::kMean, tornasole::Stat::kL2, tornasole::Stat::kNan});
//   if (!s) return fail(s.error());
//   if ((*s)[tornasole::Stat::kNan] > 0) ...
//
// The definitions are those of stored reductions (docs/format.md 6): population variance, any NaN element makes every
// reduction NaN, magnitudes for the abs_ forms. Results do not depend on the processor, its vector width, the
// alignment or the number of threads.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole {

enum class Stat : std::uint8_t {
  kCount,
  kMin,
  kMax,
  kMean,
  kStd,
  kVariance,
  kMedian,
  kSum,
  kProd,
  kL1,
  kL2,
  kAbsMin,
  kAbsMax,
  kAbsMean,
  kAbsStd,
  kAbsVariance,
  kAbsMedian,
  kAbsSum,
  kAbsProd,
  kZeros,           // elements equal to zero
  kNan,             // elements that are NaN
  kInf,             // infinite elements of either sign
  kPosInf,          //
  kNegInf,          //
  kFirstNonFinite,  // row-major position of the first NaN or infinity; -1 if there is none
  kSubnormal,       // elements below the smallest normal number of the type, zero not counted
  kAtMax,           // elements whose magnitude is the largest finite number of the type
};
inline constexpr std::size_t kStatCount = 27;

// "count", "min", "abs_mean", "first_non_finite".
TORNASOLE_EXPORT std::string_view stat_name(Stat stat) noexcept;
TORNASOLE_EXPORT std::optional<Stat> parse_stat(std::string_view name) noexcept;

class StatSet {
 public:
  constexpr StatSet() noexcept = default;
  constexpr StatSet(std::initializer_list<Stat> stats) noexcept {
    for (const Stat stat : stats) add(stat);
  }
  static constexpr StatSet all() noexcept {
    StatSet set;
    set.bits_ = (std::uint64_t{1} << kStatCount) - 1;
    return set;
  }
  // What one read gives: all but median, prod and their abs_ forms.
  static constexpr StatSet cheap() noexcept {
    StatSet set = all();
    for (const Stat stat : {Stat::kMedian, Stat::kProd, Stat::kAbsMedian, Stat::kAbsProd}) set.remove(stat);
    return set;
  }
  constexpr void add(Stat stat) noexcept { bits_ |= bit(stat); }
  constexpr void remove(Stat stat) noexcept { bits_ &= ~bit(stat); }
  constexpr bool has(Stat stat) const noexcept { return (bits_ & bit(stat)) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr bool operator==(const StatSet&) const noexcept = default;

 private:
  static constexpr std::uint64_t bit(Stat stat) noexcept { return std::uint64_t{1} << static_cast<unsigned>(stat); }
  std::uint64_t bits_ = 0;
};

class Stats {
 public:
  // Nothing if it was not asked for, or is not defined for the type or for no elements.
  std::optional<double> operator[](Stat stat) const noexcept {
    return has_.has(stat) ? std::optional<double>(values_[static_cast<std::size_t>(stat)]) : std::nullopt;
  }
  void set(Stat stat, double value) noexcept {
    has_.add(stat);
    values_[static_cast<std::size_t>(stat)] = value;
  }
  bool has(Stat stat) const noexcept { return has_.has(stat); }

 private:
  StatSet has_;
  std::array<double, kStatCount> values_{};
};

// kInvalid for strings, for a negative or overflowing shape, and for elements without data. Of complex tensors: counts,
// norms, std, variance and the abs_ forms.
TORNASOLE_EXPORT Result<Stats> stats(const TensorView& tensor, StatSet wanted = StatSet::cheap());

}  // namespace tornasole
