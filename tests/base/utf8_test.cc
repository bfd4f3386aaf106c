#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tornasole {
namespace {

TEST(Utf8, BadSequencesAreReplacedAndGoodOnesKept) {
  struct Case {
    const char* what;
    std::string text;
    std::string repaired;
  };
  const Case cases[] = {
      {"ASCII", "abc", "abc"},
      {"two, three and four bytes", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"a lone continuation byte", "a\x80z", "a\xEF\xBF\xBDz"},
      {"an overlong slash", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"a surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"a cut sequence", "\xE2\x82", "\xEF\xBF\xBD"},
      {"beyond U+10FFFF", "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(replace_bad_utf8(c.text), c.repaired) << c.what;
    EXPECT_EQ(is_valid_utf8(c.text), c.text == c.repaired) << c.what;
    EXPECT_TRUE(is_valid_utf8(replace_bad_utf8(c.text))) << c.what;
  }
}

TEST(Utf8, PrintableEscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "x"),
            "\\u202ex");
  EXPECT_EQ(printable("\xFF"), "\\xff");
  EXPECT_EQ(printable("\xC3\xA4"), "\xC3\xA4");
}

}  // namespace
}  // namespace tornasole
