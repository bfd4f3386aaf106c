#include "tools/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tornasole::tools {
namespace {

TEST(Tolerance, TextsAreRead) {
  struct Case {
    const char* text;
    Tolerance expected;
    const char* printed;
  };
  const Case cases[] = {
      {"exact", {}, "exact"},
      {"rel:1e-5", {.rel = 1e-5}, "rel:1e-05"},
      {"rel:1e-5,abs:1e-8", {.rel = 1e-5, .abs = 1e-8}, "rel:1e-05,abs:1e-08"},
      {"ulp:4,abs:0.5", {.abs = 0.5, .ulp = 4}, "abs:0.5,ulp:4"},
      {"abs:0", {}, "exact"},
      {"ulp:18446744073709551615", {.ulp = ~std::uint64_t{0}}, "ulp:18446744073709551615"},
  };
  for (const Case& c : cases) {
    const auto tolerance = parse_tolerance(c.text);
    ASSERT_TRUE(tolerance.ok()) << c.text << ": " << tolerance.error().message;
    EXPECT_EQ(*tolerance, c.expected) << c.text;
    EXPECT_EQ(tolerance_text(*tolerance), c.printed);
  }
}

TEST(Tolerance, BadTextsAreRefusedWithTheReason) {
  struct Case {
    const char* text;
    const char* says;
  };
  const Case cases[] = {
      {"", "empty"},
      {"1e-5", "'1e-5' is not known"},
      {"rel", "not a finite number"},
      {"rel:", "not a finite number"},
      {"rel:x", "'x' is not a finite number"},
      {"rel:-1", "not a finite number"},
      {"abs:nan", "not a finite number"},
      {"abs:inf", "not a finite number"},
      {"abs:1e-5x", "not a finite number"},
      {"ulp:1.5", "not a whole number"},
      {"ulp:-1", "not a whole number"},
      {"ulp:18446744073709551616", "not a whole number"},
      {"rel:1,rel:2", "given twice"},
      {"rel:1,", "'' is not known"},
      {"exact,rel:1", "'exact' is not known"},
  };
  for (const Case& c : cases) {
    const auto tolerance = parse_tolerance(c.text);
    ASSERT_FALSE(tolerance.ok()) << c.text;
    EXPECT_EQ(tolerance.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(tolerance.error().message, testing::HasSubstr(c.says));
  }
}

TEST(Tolerance, ARuleIsAPatternAndATolerance) {
  const auto rule = parse_tolerance_rule("^a=b$=rel:0.5");
  ASSERT_TRUE(rule.ok()) << rule.error().message;
  EXPECT_EQ(rule->pattern, "^a=b$");
  EXPECT_EQ(rule->tolerance.rel, 0.5);
  for (const char* text : {"", "a", "=rel:1", "a=", "a=b", "(=rel:1", "a=rel:1=x"}) {
    const auto bad = parse_tolerance_rule(text);
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace tornasole::tools
