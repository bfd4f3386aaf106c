// The rules of the definitions, each as a row.

#include "reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

namespace tornasole::reduce {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kFloatMax = std::numeric_limits<float>::max();
constexpr double kDoubleMax = std::numeric_limits<double>::max();

Reduction named(const char* name) { return *parse_reduction(name); }

// The one value as a double, whatever its type; nothing if it was skipped.
std::optional<double> value(const Tensor& tensor) {
  if (const auto v = tensor.values<float>(); !v.empty()) return v[0];
  if (const auto v = tensor.values<double>(); !v.empty()) return v[0];
  if (const auto v = tensor.values<std::int64_t>(); !v.empty()) return static_cast<double>(v[0]);
  if (const auto v = tensor.values<std::uint64_t>(); !v.empty()) return static_cast<double>(v[0]);
  if (const auto v = tensor.values<std::int8_t>(); !v.empty()) return v[0];
  if (const auto v = tensor.values<std::uint8_t>(); !v.empty()) return v[0];
  if (const auto v = tensor.values<std::int32_t>(); !v.empty()) return v[0];
  if (const auto v = tensor.values<bool>(); !v.empty()) return v[0] ? 1 : 0;
  return std::nullopt;
}

std::optional<Tensor> reduced(const TensorView& view, const char* name) {
  const Reduction wanted[] = {named(name)};
  Reduced result = reduce(view, wanted);
  if (result.values.empty()) return std::nullopt;
  return result.values[0].value.to_tensor();
}

template <typename T>
void expect_value(const std::vector<T>& elements, const char* name, double want, const char* what) {
  const auto got = reduced(TensorView::of(elements), name);
  ASSERT_TRUE(got) << what;
  const double number = value(*got).value_or(-12345);
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(number)) << what << ": " << number;
  } else if (std::isinf(want) || want == 0) {
    EXPECT_EQ(number, want) << what;
  } else {
    EXPECT_NEAR(number / want, 1, (std::is_same_v<T, float> ? 1e-6 : 1e-12)) << what << ": " << number;
  }
}

struct Row {
  const char* what;
  const char* reduction;
  std::vector<double> elements;
  double want;
};

TEST(Reduce, FollowsTheDefinitionsForFloat64) {
  const Row rows[] = {
      {"min is the smallest element", "min", {3, -4, 2}, -4},
      {"max is the largest element", "max", {3, -4, 2}, 3},
      {"abs_min is the smallest magnitude", "abs_min", {3, -4, 2}, 2},
      {"abs_max is the largest magnitude", "abs_max", {3, -4, 2}, 4},
      {"sum", "sum", {3, -4, 2}, 1},
      {"abs_sum adds magnitudes", "abs_sum", {3, -4, 2}, 9},
      {"prod", "prod", {3, -4, 2}, -24},
      {"abs_prod multiplies magnitudes", "abs_prod", {3, -4, 2}, 24},
      {"mean divides by n", "mean", {1, 2, 6}, 3},
      {"variance divides by n, not by n-1", "variance", {1, 3}, 1},
      {"std is its root", "std", {1, 5}, 2},
      {"abs_variance is about the mean magnitude", "abs_variance", {1, -3}, 1},
      {"the median of an odd number is the middle one", "median", {9, 1, 5}, 5},
      {"the median of an even number is the mean of the middle two", "median", {9, 1, 5, 6}, 5.5},
      {"abs_median sorts magnitudes", "abs_median", {-9, 1, -5}, 5},
      {"l1 adds magnitudes", "l1", {3, -4}, 7},
      {"l2 is the root of the squares", "l2", {3, -4}, 5},
      {"abs_l1 is l1", "abs_l1", {3, -4}, 7},
      {"abs_l2 is l2", "abs_l2", {3, -4}, 5},

      {"one element: std is 0", "std", {7}, 0},
      {"one element: variance is 0", "variance", {-7}, 0},
      {"one element: l2 is its magnitude", "l2", {-0.1}, 0.1},
      {"one element: prod is the element", "prod", {-7}, -7},
      {"one element: median is the element", "median", {-7}, -7},

      {"NaN makes min NaN", "min", {1, kNan, 2}, kNan},
      {"NaN makes max NaN", "max", {kNan, 1}, kNan},
      {"NaN makes the median NaN", "median", {1, 2, kNan, 4, 5}, kNan},
      {"NaN makes the sum NaN", "sum", {kInf, kNan}, kNan},
      {"NaN makes prod NaN", "prod", {0, kNan}, kNan},
      {"NaN makes l2 NaN", "l2", {kInf, kNan}, kNan},
      {"NaN makes abs_min NaN", "abs_min", {1, kNan}, kNan},
      {"NaN alone has no variance", "variance", {kNan}, kNan},

      {"min can be infinite", "min", {1, -kInf}, -kInf},
      {"abs_min ignores an infinity if something is smaller", "abs_min", {-1, -kInf}, 1},
      {"a sum with one infinity is infinite", "sum", {1, -kInf}, -kInf},
      {"a sum of both infinities is NaN", "sum", {kInf, -kInf, 1}, kNan},
      {"a mean of both infinities is NaN", "mean", {kInf, -kInf}, kNan},
      {"abs_sum of both infinities is infinite", "abs_sum", {kInf, -kInf}, kInf},
      {"variance with an infinity is NaN", "variance", {1, kInf}, kNan},
      {"std with an infinity is NaN", "std", {kInf}, kNan},
      {"prod with an odd number of signs is negative", "prod", {-2, kInf, 3}, -kInf},
      {"prod of zero and infinity is NaN", "prod", {0, kInf}, kNan},
      {"l1 with an infinity is infinite", "l1", {-kInf, 1}, kInf},
      {"the median can be infinite", "median", {kInf, kInf, 1, kInf}, kInf},
      {"the median between both infinities is NaN", "median", {kInf, -kInf}, kNan},

      {"a sum that overflows is infinite", "sum", {kDoubleMax, kDoubleMax}, kInf},
      {"a sum that overflows on the way only is right", "sum", {kDoubleMax, kDoubleMax, -kDoubleMax}, kDoubleMax},
      {"a mean of the largest numbers is finite", "mean", {kDoubleMax, kDoubleMax}, kDoubleMax},
      {"l2 does not overflow on the way", "l2", {3e300, 4e300}, 5e300},
      {"l2 overflows if the result does", "l2", {kDoubleMax, kDoubleMax}, kInf},
      {"l2 does not vanish on the way", "l2", {3e-300, 4e-300}, 5e-300},
      {"l2 of the smallest number", "l2", {5e-324, 0}, 5e-324},
      {"std does not overflow on the way", "std", {-1e300, 1e300}, 1e300},
      {"variance overflows if the result does", "variance", {-1e300, 1e300}, kInf},
      {"std does not vanish on the way", "std", {1e-300, 3e-300}, 1e-300},
      {"std of both extremes", "std", {-kDoubleMax, kDoubleMax}, kDoubleMax},
      {"the median of the largest numbers is finite", "median", {kDoubleMax, kDoubleMax}, kDoubleMax},
      {"prod does not overflow on the way", "prod", {1e200, 1e200, 1e-200, 1e-200}, 1},
      {"prod does not vanish on the way", "prod", {1e-200, 1e-200, 1e200, 1e200}, 1},
      {"prod that overflows is infinite", "prod", {1e200, -1e200}, -kInf},
      {"prod that vanishes is zero", "prod", {1e-200, 1e-200}, 0},
      {"a zero makes prod zero", "prod", {1e308, 0, 1e308, 5}, 0},
      {"a sum keeps what a plain loop drops", "sum", {1e16, 1, 1, -1e16}, 2},
      {"a small spread far from zero is seen", "variance", {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}, 22.5},
  };
  for (const Row& row : rows) expect_value(row.elements, row.reduction, row.want, row.what);
}

TEST(Reduce, WorksInFloat64ForFloat32) {
  expect_value<float>({kFloatMax, kFloatMax, -kFloatMax}, "sum", kFloatMax, "an overflow on the way is none");
  expect_value<float>({kFloatMax, kFloatMax}, "sum", kInf, "a result beyond float32 is infinite");
  expect_value<float>({-kFloatMax, -kFloatMax}, "mean", -kFloatMax, "a mean within float32 is finite");
  expect_value<float>({1e-30F, 1e-30F, 1e30F, 1e30F}, "prod", 1, "a product is rounded once");
  expect_value<float>(std::vector<float>(1 << 24, 0.1F), "sum", 0.1F * double{1 << 24}, "many small terms add up");
  expect_value<float>({1e20F, 1e20F}, "l2", std::sqrt(2.0) * 1e20F, "squares beyond float32 are fine");
}

TEST(Reduce, IsExactForIntegers) {
  expect_value<std::int8_t>({-128, 5}, "abs_max", 128, "the most negative value has its true magnitude");
  expect_value<std::int8_t>({-128, 127}, "sum", -1, "sums are of int64");
  expect_value<std::int8_t>({-128, -128}, "prod", 16384, "products are of int64");
  expect_value<std::int8_t>({-128}, "l2", 128, "so do norms");
  expect_value<std::int64_t>({INT64_MIN}, "abs_max", 9223372036854775808.0, "also for int64");
  expect_value<std::int64_t>({INT64_MAX, 1}, "sum", -9223372036854775808.0, "a sum wraps modulo 2^64");
  expect_value<std::int64_t>({INT64_MAX, INT64_MAX}, "mean", 9223372036854775807.0, "a mean does not wrap");
  expect_value<std::int64_t>({INT64_MIN, INT64_MAX}, "mean", -0.5, "nor lose what is left");
  expect_value<std::int64_t>({INT64_MIN, INT64_MIN}, "l1", 18446744073709551616.0, "l1 does not wrap");
  expect_value<std::int64_t>({1LL << 62, (1LL << 62) + 1}, "variance", 0.25, "a spread of 1 beyond 2^53 is seen");
  expect_value<std::int64_t>({(1LL << 32), (1LL << 32)}, "prod", 0, "2^64 wraps to 0");
  expect_value<std::uint64_t>({UINT64_MAX, 2}, "sum", 1, "uint64 wraps");
  expect_value<std::uint64_t>({UINT64_MAX, UINT64_MAX}, "median", 18446744073709551615.0, "medians do not wrap");
  expect_value<std::int32_t>({INT32_MIN, INT32_MIN}, "abs_median", 2147483648.0, "medians of magnitudes");
}

struct TypeRow {
  DType dtype, extreme, sum, mean, l2;
};

TEST(Reduce, GivesEveryInputTypeItsResultTypes) {
  using enum DType;
  const TypeRow rows[] = {
      {kFloat16, kFloat32, kFloat32, kFloat32, kFloat32},
      {kBfloat16, kFloat32, kFloat32, kFloat32, kFloat32},
      {kFloat8E5m2, kFloat32, kFloat32, kFloat32, kFloat32},
      {kFloat8E4m3fn, kFloat32, kFloat32, kFloat32, kFloat32},
      {kFloat32, kFloat32, kFloat32, kFloat32, kFloat32},
      {kFloat64, kFloat64, kFloat64, kFloat64, kFloat64},
      {kInt8, kInt8, kInt64, kFloat64, kFloat64},
      {kInt16, kInt16, kInt64, kFloat64, kFloat64},
      {kInt32, kInt32, kInt64, kFloat64, kFloat64},
      {kInt64, kInt64, kInt64, kFloat64, kFloat64},
      {kUint8, kUint8, kUint64, kFloat64, kFloat64},
      {kUint16, kUint16, kUint64, kFloat64, kFloat64},
      {kUint32, kUint32, kUint64, kFloat64, kFloat64},
      {kUint64, kUint64, kUint64, kFloat64, kFloat64},
      {kBool, kBool, kInt64, kFloat64, kFloat64},
      {kComplex64, kString, kComplex64, kComplex64, kFloat32},
      {kComplex128, kString, kComplex128, kComplex128, kFloat64},
  };
  ASSERT_EQ(std::size(rows), kNumericDTypes.size());
  const std::string zeros(64, '\0');
  for (const TypeRow& row : rows) {
    for (const std::int64_t count : {1, 4, 0}) {
      const TensorView view(row.dtype, zeros.data(), Shape{count});
      const auto type_of = [&](const char* name) {
        const auto got = reduced(view, name);
        return got ? got->dtype() : kString;  // stands for "skipped"
      };
      EXPECT_EQ(type_of("min"), count == 0 ? kString : row.extreme) << dtype_name(row.dtype);
      EXPECT_EQ(type_of("sum"), row.sum) << dtype_name(row.dtype);
      EXPECT_EQ(type_of("prod"), row.sum) << dtype_name(row.dtype);
      EXPECT_EQ(type_of("mean"), row.mean) << dtype_name(row.dtype);
      for (const char* name : {"std", "variance", "l1", "l2", "abs_l2", "abs_median"}) {
        EXPECT_EQ(type_of(name), row.l2) << dtype_name(row.dtype) << " " << name;
      }
    }
  }
}

TEST(Reduce, MagnitudesKeepTheSignedTypeUnlessTheyDoNotFit) {
  EXPECT_EQ(reduced(TensorView::of(std::vector<std::int8_t>{-5, -127}), "abs_max")->dtype(), DType::kInt8);
  EXPECT_EQ(reduced(TensorView::of(std::vector<std::int8_t>{-5, -128}), "abs_max")->dtype(), DType::kUint8);
  EXPECT_EQ(reduced(TensorView::of(std::vector<std::int8_t>{-5, -128}), "abs_min")->dtype(), DType::kInt8);
}

TEST(Reduce, NoElementsHaveEmptySumsAndNoExtremes) {
  const std::vector<double> none;
  expect_value(none, "sum", 0, "sum");
  expect_value(none, "prod", 1, "prod");
  expect_value(none, "l1", 0, "l1");
  expect_value(none, "abs_l2", 0, "abs_l2");
  for (const char* name : {"mean", "std", "variance", "median", "abs_mean"}) expect_value(none, name, kNan, name);
  const std::vector<Reduction> extremes = {named("min"), named("max"), named("abs_min"), named("abs_max")};
  EXPECT_EQ(reduce(TensorView::of(none), extremes).skipped, extremes);
  EXPECT_EQ(reduce(TensorView(DType::kInt32, nullptr, Shape{3, 0}), extremes).skipped, extremes);
}

TEST(Reduce, BoolsCountAsZeroAndOne) {
  const bool elements[] = {true, false, true, true};
  const TensorView view = TensorView::of(std::span<const bool>(elements));
  const struct {
    const char* reduction;
    double want;
  } rows[] = {{"min", 0}, {"max", 1}, {"sum", 3}, {"prod", 0}, {"mean", 0.75}, {"median", 1}, {"l1", 3}};
  for (const auto& row : rows) EXPECT_EQ(value(*reduced(view, row.reduction)), row.want) << row.reduction;
  const std::uint8_t odd_bytes[] = {2, 0, 255};
  EXPECT_EQ(value(*reduced(TensorView(DType::kBool, odd_bytes, Shape{3}), "sum")), 2) << "any byte but 0 is true";
}

using Complex = std::complex<double>;

TEST(Reduce, ComplexNumbersHaveNoOrderButModuli) {
  const std::vector<Complex> elements = {{3, 4}, {0, -1}, {-6, 8}};
  const TensorView view = TensorView::of(elements);
  for (const char* name : {"min", "max", "median"}) EXPECT_FALSE(reduced(view, name)) << name;
  const auto complex = [&](const char* name) { return reduced(view, name)->values<Complex>()[0]; };
  EXPECT_EQ(complex("sum"), Complex(-3, 11));
  EXPECT_EQ(complex("mean"), Complex(-3, 11) / 3.0);
  EXPECT_EQ(complex("prod"), Complex(3, 4) * Complex(0, -1) * Complex(-6, 8));
  const struct {
    const char* reduction;
    double want;
  } rows[] = {{"abs_min", 1},
              {"abs_max", 10},
              {"abs_median", 5},
              {"abs_sum", 16},
              {"l1", 16},
              {"abs_prod", 50},
              {"l2", std::sqrt(126.0)},
              {"abs_mean", 16.0 / 3},
              {"variance", 126.0 / 3 - 130.0 / 9}};
  for (const auto& row : rows) {
    EXPECT_NEAR(value(*reduced(view, row.reduction)).value_or(kNan), row.want, 1e-12 * row.want) << row.reduction;
  }
}

TEST(Reduce, AComplexNumberWithANanPartIsNan) {
  const std::vector<Complex> elements = {{kInf, kNan}, {1, 1}};
  const TensorView view = TensorView::of(elements);
  for (const char* name : {"abs_max", "l1", "l2", "abs_min", "abs_median", "variance", "abs_prod"}) {
    EXPECT_TRUE(std::isnan(value(*reduced(view, name)).value_or(0))) << name;
  }
  for (const char* name : {"sum", "mean", "prod"}) {
    const Complex got = reduced(view, name)->values<Complex>()[0];
    EXPECT_TRUE(std::isnan(got.real()) && std::isnan(got.imag())) << name;
  }
}

TEST(Reduce, WhatHasNoNumbersIsSkipped) {
  const std::vector<Reduction> wanted = {named("sum"), named("l2")};
  const std::string_view texts[] = {"a", "b"};
  EXPECT_EQ(reduce(TensorView::strings(texts), wanted).skipped, wanted) << "strings";
  EXPECT_EQ(reduce(TensorView(static_cast<DType>(99), texts, Shape{1}), wanted).skipped, wanted) << "no such type";
  EXPECT_EQ(reduce(TensorView(DType::kFloat32, texts, Shape{-1}), wanted).skipped, wanted) << "a bad shape";
  EXPECT_EQ(reduce(TensorView(DType::kFloat32, nullptr, Shape{2}), wanted).skipped, wanted) << "no data";
}

TEST(Reduce, ValuesComeInTheOrderWantedAndAsOftenAsWanted) {
  const std::vector<Reduction> wanted = {named("max"), named("min"), named("max")};
  const Reduced got = reduce(TensorView::of(std::vector<float>{1, 2}), wanted);
  ASSERT_EQ(got.values.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.values[i].reduction, wanted[i]);
    EXPECT_EQ(got.values[i].value.to_tensor().shape(), Shape{1});
  }
  EXPECT_TRUE(reduce(TensorView::of(std::vector<float>{1, 2}), {}).values.empty());
}

TEST(MeanOf, IsTheMeanOrNan) {
  EXPECT_EQ(mean_of(TensorView::of(std::vector<float>{1, 2})), 1.5);
  EXPECT_EQ(mean_of(TensorView::of(std::vector<std::uint8_t>{255, 255})), 255);
  EXPECT_EQ(mean_of(TensorView::of(3.0)), 3);
  EXPECT_EQ(mean_of(TensorView::of(std::vector<float>{1, std::numeric_limits<float>::infinity()})), kInf);
  EXPECT_TRUE(std::isnan(mean_of(TensorView::of(std::vector<float>{1, std::nanf("")}))));
  EXPECT_TRUE(std::isnan(mean_of(TensorView::of(std::vector<float>{}))));
  EXPECT_TRUE(std::isnan(mean_of(TensorView::of(Complex(1, 1)))));
  const std::string_view texts[] = {"a"};
  EXPECT_TRUE(std::isnan(mean_of(TensorView::strings(texts))));
}

TEST(HasNonFinite, KnowsIntegersAndTextsAsFinite) {
  EXPECT_FALSE(has_non_finite(TensorView::of(std::vector<std::int32_t>{0x7F800000})));
  const std::string_view texts[] = {"nan"};
  EXPECT_FALSE(has_non_finite(TensorView::strings(texts)));
  EXPECT_FALSE(has_non_finite(TensorView::of(std::vector<float>{})));
  EXPECT_FALSE(has_non_finite(TensorView::of(std::vector<float>{kFloatMax, -kFloatMax, 1e-45F})));
}

TEST(HasNonFinite, FindsOneBadElementAnywhere) {
  std::vector<float> values(5000, 1.0F);
  for (std::size_t at = 0; at < values.size(); at += 37) {
    for (const double bad : {kNan, kInf, -kInf}) {
      values[at] = static_cast<float>(bad);
      EXPECT_TRUE(has_non_finite(TensorView::of(values))) << at;
      values[at] = 1.0F;
    }
  }
}

}  // namespace
}  // namespace tornasole::reduce
