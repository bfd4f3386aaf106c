// Any text as a tolerance: what is accepted prints to a text that is accepted and means the same.

#include <cmath>

#include "fuzz_check.h"
#include "tools/tolerance.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tornasole;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tolerance = tools::parse_tolerance(text);
  if (tolerance.ok()) {
    FUZZ_CHECK(std::isfinite(tolerance->rel) && tolerance->rel >= 0);
    FUZZ_CHECK(std::isfinite(tolerance->abs) && tolerance->abs >= 0);
    const auto again = tools::parse_tolerance(tools::tolerance_text(*tolerance));
    FUZZ_CHECK(again.ok() && *again == *tolerance);
  }
  const auto rule = tools::parse_tolerance_rule(text);
  FUZZ_CHECK(!rule.ok() || !rule->pattern.empty());
  return 0;
}
