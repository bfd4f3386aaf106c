#pragma once

// Tolerances: when two numbers count as equal.
//
// Two numbers agree if they are the same (NaN agrees with NaN, +0 with -0), or if any of these holds:
//   |a - b| <= abs       |a - b| <= rel * max(|a|, |b|)       at most `ulp` representable numbers apart
// An infinity agrees with itself alone. Complex numbers agree if both parts do. Integers are compared without rounding;
// for them one ulp is 1. An ulp is that of the element type; between two different types it is not defined, and only
// abs and rel count.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::tools {

struct Tolerance {
  double rel = 0;
  double abs = 0;
  std::uint64_t ulp = 0;

  bool is_exact() const noexcept { return rel == 0 && abs == 0 && ulp == 0; }
  bool operator==(const Tolerance&) const = default;
};

struct ToleranceRule {
  std::string pattern;  // Python's re.search in the tensor's name
  Tolerance tolerance = {};
};

// "rel:1e-5,abs:1e-8,ulp:4", in any order, each at most once, at least one; "exact". kInvalid says what is wrong.
Result<Tolerance> parse_tolerance(std::string_view text);
// "PATTERN=rel:1e-5,abs:1e-8"; the last '=' divides, so that a pattern may hold one. The pattern is compiled to see
// that it is one.
Result<ToleranceRule> parse_tolerance_rule(std::string_view text);
// "rel:1e-05,ulp:4" or "exact".
std::string tolerance_text(const Tolerance& tolerance);

}  // namespace tornasole::tools
