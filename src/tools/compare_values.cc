#include "tools/compare_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tools/elements.h"

namespace tornasole::tools {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
__extension__ using Wide = __int128;

Gap gap_of_numbers(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return {};
  Gap gap{.is_same = false};
  if (!std::isfinite(a) || !std::isfinite(b)) {
    gap.is_comparable = false;
    gap.abs = gap.rel = kInfinity;
    return gap;
  }
  gap.abs = std::abs(a - b);
  // Halved first: the difference of two large numbers may overflow, their ratio does not.
  gap.rel = std::abs(a / 2 - b / 2) / (std::max(std::abs(a), std::abs(b)) / 2);
  if (!std::isfinite(gap.rel)) gap.rel = 1;  // halves of the smallest subnormals vanish
  return gap;
}

Gap gap_of_integers(Wide a, Wide b) {
  if (a == b) return {.ulp = 0};
  const Wide distance = a > b ? a - b : b - a;
  const Wide largest = std::max(a < 0 ? -a : a, b < 0 ? -b : b);
  constexpr Wide kMost = std::numeric_limits<std::uint64_t>::max();
  return {.abs = static_cast<double>(distance),
          .rel = static_cast<double>(distance) / static_cast<double>(largest),
          .ulp = static_cast<std::uint64_t>(std::min(distance, kMost)),
          .is_same = false};
}

// The bits of a float as an integer that grows with the number: neighbours differ by one, and both zeros are 0.
template <typename Bits>
std::int64_t rank_of(Bits bits) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const auto magnitude = static_cast<std::int64_t>(static_cast<Bits>(bits & static_cast<Bits>(~kSign)));
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

template <typename Bits>
std::uint64_t rank_distance(const std::byte* a, const std::byte* b) {
  const std::int64_t left = rank_of(PlainLoad<Bits>{}(a, 0));
  const std::int64_t right = rank_of(PlainLoad<Bits>{}(b, 0));
  // Their difference fits 64 bits without sign.
  return left > right ? static_cast<std::uint64_t>(left) - static_cast<std::uint64_t>(right)
                      : static_cast<std::uint64_t>(right) - static_cast<std::uint64_t>(left);
}

std::uint64_t ulps_between(const std::byte* a, const std::byte* b, std::size_t bytes) {
  switch (bytes) {
    case 1: return rank_distance<std::uint8_t>(a, b);
    case 2: return rank_distance<std::uint16_t>(a, b);
    case 4: return rank_distance<std::uint32_t>(a, b);
    default: return rank_distance<std::uint64_t>(a, b);
  }
}

// The larger of two gaps in each respect: a complex number agrees if both parts do.
Gap worst_of(const Gap& a, const Gap& b) {
  Gap worst{.abs = std::max(a.abs, b.abs),
            .rel = std::max(a.rel, b.rel),
            .is_same = a.is_same && b.is_same,
            .is_comparable = a.is_comparable && b.is_comparable};
  if (a.ulp || b.ulp) worst.ulp = std::max(a.ulp.value_or(0), b.ulp.value_or(0));
  return worst;
}

// Two elements of one type, given where they lie.
template <typename Load>
Gap gap_at(Load load, const std::byte* a, const std::byte* b) {
  using Value = typename Load::Value;
  if constexpr (kIsComplex<Value>) {
    using Part = typename Value::value_type;
    const PlainLoad<Part> part;
    return worst_of(gap_at(part, a, b), gap_at(part, a + sizeof(Part), b + sizeof(Part)));
  } else if constexpr (std::is_floating_point_v<Value>) {
    Gap gap = gap_of_numbers(static_cast<double>(load(a, 0)), static_cast<double>(load(b, 0)));
    if (gap.is_comparable) gap.ulp = gap.is_same ? 0 : ulps_between(a, b, Load::kBytes);
    return gap;
  } else {
    return gap_of_integers(load(a, 0), load(b, 0));
  }
}

bool is_integer(DType dtype) { return dtype != DType::kString && !dtype_is_inexact(dtype); }

struct Parts {
  double real = 0;
  double imaginary = 0;
  Wide integer = 0;  // of integers and bools
};
Parts parts_at(DType dtype, const std::byte* data, std::int64_t position) {
  Parts parts;
  visit_elements(dtype, [&](auto load) {
    using Value = typename decltype(load)::Value;
    const Value value = load(data, position);
    if constexpr (kIsComplex<Value>) {
      parts.real = static_cast<double>(value.real());
      parts.imaginary = static_cast<double>(value.imag());
    } else {
      parts.real = static_cast<double>(value);
      if constexpr (!std::is_floating_point_v<Value>) parts.integer = value;
    }
  });
  return parts;
}

Gap gap_between_types(DType a_type, DType b_type, const Parts& a, const Parts& b) {
  if (is_integer(a_type) && is_integer(b_type)) return gap_of_integers(a.integer, b.integer);
  return worst_of(gap_of_numbers(a.real, b.real), gap_of_numbers(a.imaginary, b.imaginary));
}

void note(const Gap& gap, std::int64_t position, const Tolerance& tolerance, Comparison* comparison) {
  if (gap.is_same) return;
  comparison->max_abs = std::max(comparison->max_abs, gap.abs);
  comparison->max_rel = std::max(comparison->max_rel, gap.rel);
  comparison->max_ulp = std::max(comparison->max_ulp, gap.ulp.value_or(0));
  if (agrees(gap, tolerance)) return;
  if (++comparison->elements_different; comparison->first) return;
  comparison->first = position;
  comparison->first_gap = gap;
}

Comparison compare_texts(const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  Comparison comparison;
  const Gap apart{.abs = kInfinity, .rel = kInfinity, .is_same = false, .is_comparable = false};
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_same = a.dtype() == b.dtype() && a.texts()[at] == b.texts()[at];
    if (!is_same) note(apart, i, tolerance, &comparison);
  }
  return comparison;
}

}  // namespace

bool agrees(const Gap& gap, const Tolerance& tolerance) noexcept {
  if (gap.is_same) return true;
  if (!gap.is_comparable) return false;
  return gap.abs <= tolerance.abs || gap.rel <= tolerance.rel || (gap.ulp && *gap.ulp <= tolerance.ulp);
}

Comparison compare_values(const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  if (a.dtype() == DType::kString || b.dtype() == DType::kString) return compare_texts(a, b, tolerance);
  Comparison comparison;
  if (a.dtype() == b.dtype() && a.bytes() == b.bytes()) return comparison;
  const auto* left = reinterpret_cast<const std::byte*>(a.bytes().data());
  const auto* right = reinterpret_cast<const std::byte*>(b.bytes().data());
  const std::int64_t count = a.element_count();
  if (a.dtype() == b.dtype()) {
    visit_elements(a.dtype(), [&](auto load) {
      constexpr std::size_t kBytes = decltype(load)::kBytes;
      for (std::int64_t i = 0; i < count; ++i, left += kBytes, right += kBytes) {
        note(gap_at(load, left, right), i, tolerance, &comparison);
      }
    });
    return comparison;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const Gap gap =
        gap_between_types(a.dtype(), b.dtype(), parts_at(a.dtype(), left, i), parts_at(b.dtype(), right, i));
    note(gap, i, tolerance, &comparison);
  }
  return comparison;
}

}  // namespace tornasole::tools
