#include "config/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace tornasole::config {
namespace {

using ::testing::HasSubstr;

Json json(const std::string& text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value.ok()) << text;
  return std::move(value).value();
}

TEST(Values, IntegersAreNumbersOrDecimalTexts) {
  struct Case {
    const char* what;
    const char* text;
    std::optional<std::int64_t> number;
  };
  const Case kCases[] = {
      {"a number", "50", 50},
      {"a negative number", "-3", -3},
      {"a decimal text", "\"50\"", 50},
      {"a text with blanks around it", "\" 50\\n\"", 50},
      {"a text with a plus sign", "\"+50\"", 50},
      {"a text with a minus sign", "\"-50\"", -50},
      {"a number with a point and no fraction", "50.0", 50},
      {"the largest", "9223372036854775807", INT64_MAX},
      {"a fraction is refused, not cut", "2.7", std::nullopt},
      {"a text with a fraction", "\"2.0\"", std::nullopt},
      {"two signs", "\"+-5\"", std::nullopt},
      {"a sign alone", "\"+\"", std::nullopt},
      {"an empty text", "\"\"", std::nullopt},
      {"a word", "\"fifty\"", std::nullopt},
      {"digits and a word", "\"50 steps\"", std::nullopt},
      {"hexadecimal", "\"0x10\"", std::nullopt},
      {"an expression is not run", "\"__import__('os').getpid()\"", std::nullopt},
      {"beyond 64 bits", "9223372036854775808", std::nullopt},
      {"a text beyond 64 bits", "\"9223372036854775808\"", std::nullopt},
      {"a number of which a double cannot tell the last digit", "1e18", std::nullopt},
      {"true is no number", "true", std::nullopt},
      {"null", "null", std::nullopt},
      {"a list", "[1]", std::nullopt},
      {"an object", "{}", std::nullopt},
  };
  for (const Case& c : kCases) {
    const auto read = read_integer(json(c.text));
    ASSERT_EQ(read.ok(), c.number.has_value()) << c.what;
    if (read.ok()) {
      EXPECT_EQ(*read, *c.number) << c.what;
    } else {
      EXPECT_EQ(read.error().code, ErrorCode::kInvalid) << c.what;
      EXPECT_THAT(read.error().message, HasSubstr("allowed: an integer")) << c.what;
    }
  }
}

TEST(Values, IntegersKeepToTheirRange) {
  EXPECT_TRUE(read_integer(json("1"), {.min = 1}).ok());
  EXPECT_EQ(read_integer(json("0"), {.min = 1}).error().message, "0 is not allowed; allowed: an integer of at least 1");
  EXPECT_EQ(read_integer(json("\"9\""), {.min = 1, .max = 8}).error().message,
            "\"9\" is not allowed; allowed: an integer from 1 to 8");
}

TEST(Values, BooleansHaveTheListedSpellings) {
  for (const char* text : {"true", "1", "\"true\"", "\"True\"", "\"1\"", "\" true \""}) {
    const auto read = read_bool(json(text));
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_TRUE(*read) << text;
  }
  for (const char* text : {"false", "0", "\"false\"", "\"False\"", "\"0\""}) {
    const auto read = read_bool(json(text));
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_FALSE(*read) << text;
  }
  for (const char* text : {"2", "-1", "1.0", "\"yes\"", "\"TRUE\"", "\"\"", "null", "[true]", "{}"}) {
    EXPECT_FALSE(read_bool(json(text)).ok()) << text;
  }
}

TEST(Values, NumbersAreFiniteAndInRange) {
  EXPECT_EQ(*read_number(json("2.5"), 0, 10), 2.5);
  EXPECT_EQ(*read_number(json("2"), 0, 10), 2.0);
  EXPECT_EQ(*read_number(json("\"2.5\""), 0, 10), 2.5);
  for (const char* text : {"-0.1", "10.1", "\"nan\"", "\"inf\"", "\"2,5\"", "\"\"", "true", "null", "[1]"}) {
    EXPECT_FALSE(read_number(json(text), 0, 10).ok()) << text;
  }
}

TEST(Values, ListsOfIntegersAreCommaTextsSingleNumbersOrArrays) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(*read_integers(json("\"3,5, 8\"")), (List{3, 5, 8}));
  EXPECT_EQ(*read_integers(json("\" ,3,,\"")), (List{3}));
  EXPECT_EQ(*read_integers(json("\"\"")), List{});
  EXPECT_EQ(*read_integers(json("7")), List{7});
  EXPECT_EQ(*read_integers(json("[3, \"5\", 8.0]")), (List{3, 5, 8}));
  EXPECT_EQ(*read_integers(json("[]")), List{});
  EXPECT_EQ(read_integers(json("\"3,x\"")).error().message,
            "the item \"x\" is not allowed; allowed: an integer, a comma list of integers, or an array of them");
  for (const char* text : {"[1, [2]]", "[null]", "[1.5]", "true", "2.5", "null", "{}", "\"1;2\""}) {
    EXPECT_FALSE(read_integers(json(text)).ok()) << text;
  }
}

TEST(Values, ListsOfTextsAreCommaTextsOrArrays) {
  using List = std::vector<std::string>;
  EXPECT_EQ(*read_texts(json("\"conv, dense\"")), (List{"conv", "dense"}));
  EXPECT_EQ(*read_texts(json("\",\"")), List{}) << "empty items of a comma list are dropped";
  EXPECT_EQ(*read_texts(json("[\"a,b\", \" c \", \"\"]")), (List{"a,b", " c ", ""})) << "array items are kept as given";
  for (const char* text : {"[1]", "[[\"a\"]]", "5", "true", "null", "{}"}) {
    EXPECT_FALSE(read_texts(json(text)).ok()) << text;
  }
}

TEST(Values, TextsAreNotEmptyAndHaveNoNul) {
  EXPECT_EQ(*read_text(json("\"x\"")), "x");
  for (const char* text : {"\"\"", "\"a\\u0000b\"", "5", "null", "true", "[]", "{}"}) {
    EXPECT_FALSE(read_text(json(text)).ok()) << text;
  }
}

}  // namespace
}  // namespace tornasole::config
