#include "cli/array_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/decimal_digits.h"
#include "support/tests_dir.h"

namespace tornasole::cli {
namespace {

DType dtype_of(const std::string& name) {
  for (const DType dtype : kNumericDTypes) {
    if (dtype_name(dtype) == name) return dtype;
  }
  ADD_FAILURE() << "no such type: " << name;
  return DType::kFloat32;
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// TORNASOLE_NUMPY_ARRAYS names another file of the same form: numpy_arrays_golden.py --count 20000 --output ...
std::string golden_path() {
  const char* other = std::getenv("TORNASOLE_NUMPY_ARRAYS");
  return other != nullptr ? std::string(other) : tests_dir() + "/cli/golden/numpy_arrays.jsonl";
}

TEST(ArrayText, IsWhatNumPyPrints) {
  std::ifstream file(golden_path());
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const auto json = parse_json(line);
    ASSERT_TRUE(json) << json.error().message;
    std::vector<std::int64_t> dims;
    for (const Json& dim : *json->find("shape")->as_array()) dims.push_back(*dim.as_int());
    const Tensor tensor(dtype_of(*json->find("dtype")->as_string()), Shape(dims),
                        bytes_of(*json->find("hex")->as_string()));
    const ArrayTextOptions options{.line_width = static_cast<std::size_t>(*json->find("line_width")->as_int())};
    EXPECT_EQ(array_text(tensor, options), *json->find("text")->as_string())
        << dtype_name(tensor.dtype()) << " " << tensor.shape().to_string() << ", line " << count + 1;
  }
  EXPECT_GT(count, 500);
}

TEST(ArrayText, TypesThatNumPyLacks) {
  const auto text = [](DType dtype, std::string bytes) {
    const auto count = static_cast<std::int64_t>(bytes.size() / dtype_size(dtype));
    return array_text(Tensor(dtype, Shape{count}, std::move(bytes)));
  };
  EXPECT_EQ(text(DType::kBfloat16, std::string("\x80\x3f\xcd\x3d\x80\x7f", 6)), "[1.  0.1 inf]");
  EXPECT_EQ(text(DType::kFloat8E5m2, "\x3c\x2e\x7c"), "[1.   0.09  inf]");
  EXPECT_EQ(text(DType::kFloat8E4m3fn, "\x38\x1d\x7f"), "[1.  0.1 nan]");
}

TEST(ArrayText, TextsAreQuotedAndHarmless) {
  const Tensor texts({"plain", "it's", "esc\x1b[31m", "line\nbreak", "back\\slash", "\xe2\x80\xae"}, Shape{6});
  EXPECT_EQ(array_text(texts, {.line_width = 200}),
            R"(['plain' "it's" 'esc\x1b[31m' 'line\x0abreak' 'back\\slash' '\u202e'])");
  EXPECT_EQ(array_text(Tensor({"one"}, Shape{})), "'one'");
}

TEST(ArrayText, WhatCannotBePrintedSaysSo) {
  const std::vector<std::int64_t> ones(65, 1);
  EXPECT_EQ(array_text(Tensor(DType::kInt8, Shape(ones), "a")), "(65 dimensions, too many to print)");
  EXPECT_EQ(array_text(Tensor(DType::kFloat32, Shape{4}, "12345678")), "(the shape and the bytes do not agree)");
  EXPECT_EQ(array_text(Tensor(DType::kFloat32, Shape{-1}, "")), "(the shape and the bytes do not agree)");
}

TEST(ArrayText, ManyShortAxesStayWithinReason) {
  const std::vector<std::int64_t> sevens(7, 7);  // six of seven shown on each axis would be 280 000 numbers
  const Shape shape(sevens);
  const Tensor tensor(DType::kInt8, shape, std::string(static_cast<std::size_t>(shape.element_count()), '\1'));
  EXPECT_LT(array_text(tensor).size(), std::size_t{200'000});
}

TEST(ScalarText, EveryHalfReadsBack) {
  for (unsigned bits = 0; bits < 0x7C00; ++bits) {
    const double value = rounded_to(std::ldexp(bits < 0x400 ? bits : (bits & 0x3FFU) | 0x400U,
                                               bits < 0x400 ? -24 : static_cast<int>(bits >> 10) - 25),
                                    DType::kFloat64);
    const double back = rounded_to(std::strtod(scalar_text(value, DType::kFloat16).c_str(), nullptr), DType::kFloat16);
    ASSERT_EQ(back, value) << scalar_text(value, DType::kFloat16);
  }
}

}  // namespace
}  // namespace tornasole::cli
