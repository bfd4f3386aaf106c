#include "tensorboard/summary_tag.h"

#include <gtest/gtest.h>

namespace tornasole::tensorboard {
namespace {

struct Case {
  const char* what;
  const char* name;
  const char* tag;
};
const Case kCases[] = {
    {"plain characters stay", "weights/Net_fc1.weight-0", "weights/Net_fc1.weight-0"},
    {"a colon becomes a line", "metric:acc", "metric_acc"},
    {"each character becomes one line", "hist/h/odd name: (1)", "hist/h/odd_name___1_"},
    {"slashes in front go", "//h/leading_slash", "h/leading_slash"},
    {"slashes inside stay", "hist//h", "hist//h"},
    {"letters of any language stay", "h/caf\u00e9/\u6d6e\u52d5", "h/caf\u00e9/\u6d6e\u52d5"},
    {"digits of any language stay", "\u0663\u00bd", "\u0663\u00bd"},
    {"signs of any language go", "a\u2192b\u00d7c", "a_b_c"},
    {"a character of four bytes is one", "\U0001F600", "_"},
    {"only slashes leave nothing", "///", ""},
    {"nothing stays nothing", "", ""},
};

TEST(SummaryTag, IsCleanedAsTheReferenceDoes) {
  for (const Case& c : kCases) EXPECT_EQ(clean_tag(c.name), c.tag) << c.what;
}

}  // namespace
}  // namespace tornasole::tensorboard
