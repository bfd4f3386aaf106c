#include "cli/tensor_slice.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace tornasole::cli {
namespace {

Tensor counting(Shape shape) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.element_count()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor(TensorView::of(values, std::move(shape)));
}

std::string text_of(const Tensor& tensor) {
  std::string text = tensor.shape().to_string();
  for (const std::int32_t value : tensor.values<std::int32_t>()) text += " " + std::to_string(value);
  return text;
}

TEST(TensorSlice, TakesWhatPythonWouldTake) {
  struct Case {
    const char* what;
    const char* slice;
    const char* expected;  // of numpy.arange(12).reshape(3, 4)[slice]
  };
  const Case kCases[] = {
      {"an index removes its axis", "1", "[4] 4 5 6 7"},
      {"two indices leave one element", "1,2", "[] 6"},
      {"a negative index counts from the end", "-1,-1", "[] 11"},
      {"a range keeps its axis", "0:1", "[1, 4] 0 1 2 3"},
      {"a colon is all", ":,1", "[3] 1 5 9"},
      {"a step", "::2,::3", "[2, 2] 0 3 8 11"},
      {"a negative step goes backwards", "::-1,0", "[3] 8 4 0"},
      {"a negative step with ends", "2:0:-1,0", "[2] 8 4"},
      {"ends beyond the axis are cut", "1:99,-99:1", "[2, 1] 4 8"},
      {"an empty range", "2:1", "[0, 4]"},
      {"three dots are the axes between", "...,0", "[3] 0 4 8"},
      {"three dots may stand for nothing", "0,...,0", "[] 0"},
      {"blanks do not matter", " 0 : 2 , 3 ", "[2] 3 7"},
      {"a huge step", "::9223372036854775807,0", "[1] 0"},
      {"a huge step backwards", "::-9223372036854775808,0", "[1] 8"},
      {"huge ends", "-9223372036854775808:9223372036854775807,0", "[3] 0 4 8"},
  };
  for (const Case& c : kCases) {
    const auto sliced = slice_of(counting(Shape{3, 4}), c.slice);
    ASSERT_TRUE(sliced) << c.what << ": " << sliced.error().message;
    EXPECT_EQ(text_of(*sliced), c.expected) << c.what;
  }
}

TEST(TensorSlice, SaysWhatIsWrong) {
  struct Case {
    const char* slice;
    const char* message;
  };
  const Case kCases[] = {
      {"3", "index 3 is outside axis 0, which has 3 elements"},
      {"-4", "index -4 is outside axis 0"},
      {"0,0,0", "has 3 parts, but the tensor has 2 axes: [3, 4]"},
      {"::0", "the step is 0"},
      {"a", "\"a\" is no whole number"},
      {"1:2:3:4", "at most begin:end:step"},
      {"0,", "axis 1 has an empty part"},
      {"99999999999999999999", "is no whole number"},
      {"...,...", "is no whole number"},
  };
  for (const Case& c : kCases) {
    const auto sliced = slice_of(counting(Shape{3, 4}), c.slice);
    ASSERT_FALSE(sliced) << c.slice;
    EXPECT_NE(sliced.error().message.find(c.message), std::string::npos) << sliced.error().message;
  }
}

TEST(TensorSlice, TextsAndEmptyTensors) {
  const auto texts = slice_of(Tensor({"a", "b", "c"}, Shape{3}), "1:");
  ASSERT_TRUE(texts);
  EXPECT_EQ(std::vector<std::string>(texts->texts().begin(), texts->texts().end()),
            (std::vector<std::string>{"b", "c"}));
  const auto empty = slice_of(counting(Shape{0, 4}), ":,1");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->shape(), Shape{0});
  EXPECT_FALSE(slice_of(counting(Shape{0}), "0"));
}

}  // namespace
}  // namespace tornasole::cli
