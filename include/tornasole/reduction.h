#pragma once

// The reductions by name: one number of a tensor each.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tornasole/export.h"

namespace tornasole {

enum class ReductionKind : std::uint8_t { kMin, kMax, kMedian, kMean, kStd, kVariance, kSum, kProd, kL1, kL2 };

inline constexpr std::array<ReductionKind, 10> kAllReductionKinds = {
    ReductionKind::kMin,      ReductionKind::kMax, ReductionKind::kMedian, ReductionKind::kMean, ReductionKind::kStd,
    ReductionKind::kVariance, ReductionKind::kSum, ReductionKind::kProd,   ReductionKind::kL1,   ReductionKind::kL2};

constexpr bool is_norm(ReductionKind kind) noexcept { return kind == ReductionKind::kL1 || kind == ReductionKind::kL2; }

struct Reduction {
  ReductionKind kind = ReductionKind::kMean;
  bool of_absolute = false;
  auto operator<=>(const Reduction&) const = default;
};

// "min", "median", "l2": without abs_ and without _norm.
TORNASOLE_EXPORT std::string_view reduction_kind_name(ReductionKind kind) noexcept;
TORNASOLE_EXPORT std::optional<ReductionKind> parse_reduction_kind(std::string_view name) noexcept;
// "abs_l2", as in the names of stored reductions.
TORNASOLE_EXPORT std::string reduction_name(Reduction reduction);
// "abs_l2_norm", as in configuration and collections files.
TORNASOLE_EXPORT std::string reduction_config_text(Reduction reduction);
// Any spelling: min, abs_min, l1, l1_norm, abs_l1, abs_l1_norm.
TORNASOLE_EXPORT std::optional<Reduction> parse_reduction(std::string_view text) noexcept;

}  // namespace tornasole
