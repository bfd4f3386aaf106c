#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tornasole {
namespace {

TEST(Json, ValuesKnowTheirLine) {
  const auto json = parse_json("{\n \"a\": 1,\n \"b\": [true,\n null, 2.5],\n \"c\": {\"d\": \"x\"}\n}");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->find("a")->line(), 2);
  EXPECT_EQ(*json->find("a")->as_int(), 1);
  EXPECT_EQ(json->find("b")->as_array()->at(0).line(), 3);
  EXPECT_TRUE(json->find("b")->as_array()->at(1).is_null());
  EXPECT_EQ(*json->find("b")->as_array()->at(2).as_double(), 2.5);
  EXPECT_EQ(*json->find("c")->find("d")->as_string(), "x");
  EXPECT_EQ(json->find("c")->find("d")->line(), 5);
  EXPECT_EQ(json->find("nothing"), nullptr);
}

TEST(Json, RefusesWhatIsNotJson) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("{} {}"), std::string("[1,]"), std::string("nul"),
        std::string("\"\xFF\""), std::string("{\"a\" 1}"), std::string("[1e999]"), std::string("{}\0{}", 5), deep}) {
    const auto json = parse_json(text);
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kCorrupt) << text;
  }
  EXPECT_NE(parse_json("{\n\"a\": x}").error().message.find("line 2, column 6"), std::string::npos)
      << parse_json("{\n\"a\": x}").error().message;
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')).ok());
  EXPECT_FALSE(parse_json("[1, 2]", {.max_bytes = 5}).ok());
}

TEST(Json, NonFiniteNumbersAreReadWhereAllowed) {
  const std::string text =
      "{\"a\": [NaN, 1, -Infinity,\n Infinity , 2e400, -1e999, 1e-999, 0], \"b NaN \\\"\": \"Infinity\", \"c\": NaN}";
  const auto json = parse_json(text, {.allow_non_finite = true});
  ASSERT_TRUE(json.ok()) << json.error().message;
  const Json::Array& list = *json->find("a")->as_array();
  ASSERT_EQ(list.size(), 8U);
  EXPECT_TRUE(std::isnan(*list[0].as_double()));
  EXPECT_EQ(*list[1].as_int(), 1);
  EXPECT_EQ(*list[2].as_double(), -HUGE_VAL);
  EXPECT_EQ(*list[3].as_double(), HUGE_VAL);
  EXPECT_EQ(list[3].line(), 2);
  EXPECT_EQ(*list[4].as_double(), HUGE_VAL);
  EXPECT_EQ(*list[5].as_double(), -HUGE_VAL);
  EXPECT_EQ(*list[6].as_double(), 0);
  EXPECT_EQ(*list[7].as_int(), 0);
  EXPECT_EQ(*json->find("b NaN \"")->as_string(), "Infinity");
  EXPECT_TRUE(std::isnan(*json->find("c")->as_double()));
  EXPECT_FALSE(parse_json(text).ok());
  for (const char* bad :
       {"[-NaN]", "[nan]", "[NaNs]", "[Infinity1]", "[01e999]", "[1.e999]", "{NaN: 1}", "[NaN NaN]", "[\"NaN]"}) {
    EXPECT_FALSE(parse_json(bad, {.allow_non_finite = true}).ok()) << bad;
  }
}

TEST(Json, LenientTextMayHaveTrailingCommasAndAMark) {
  std::vector<std::string> warnings;
  const auto json = parse_lenient_json("\xEF\xBB\xBF{\"a\": [1, 2,],\n \"b\": \",]\",\n}", {}, &warnings);
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->find("a")->as_array()->size(), 2U);
  EXPECT_EQ(*json->find("b")->as_string(), ",]");
  EXPECT_EQ(warnings, (std::vector<std::string>{"line 1: byte-order mark ignored", "line 1: trailing comma ignored",
                                                "line 2: trailing comma ignored"}));
  EXPECT_FALSE(parse_lenient_json("[1,,]", {}, &warnings).ok());
}

TEST(JsonWriter, WritesTheStyleOfTheFormat) {
  std::string out;
  JsonWriter(&out)
      .begin_object()
      .key("a")
      .begin_array()
      .value(1)
      .value("x")
      .null()
      .value(true)
      .end_array()
      .key("b")
      .begin_object()
      .end_object()
      .key("c")
      .value(1.0)
      .key("d")
      .value(0.1)
      .key("e")
      .value(1794772136.588837)
      .key("f")
      .value(std::nan(""))
      .end_object();
  EXPECT_EQ(out, R"({"a": [1, "x", null, true], "b": {}, "c": 1.0, "d": 0.1, "e": 1794772136.588837, "f": null})");
}

TEST(JsonWriter, EscapesLikePython) {
  std::string out;
  append_json_string(&out, "\"\\\n\r\t\b\f\x01\x7F/\xC3\xA4\xF0\x9F\x98\x80\xFF");
  EXPECT_EQ(out, "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\x7F/\\u00e4\\ud83d\\ude00\\ufffd\"");
}

}  // namespace
}  // namespace tornasole
