#include "tornasole/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "reduce/reduce.h"

namespace tornasole {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Stats, NamesAreTheirOwnInverse) {
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    EXPECT_EQ(parse_stat(stat_name(stat)), stat) << stat_name(stat);
  }
  EXPECT_EQ(parse_stat("abs_l1"), std::nullopt);
  EXPECT_EQ(parse_stat(""), std::nullopt);
}

TEST(Stats, GivesWhatWasAskedAndNothingElse) {
  const std::vector<float> values = {1, -2, 3, 0};
  const auto found = stats(TensorView::of(values), {Stat::kMean, Stat::kZeros});
  ASSERT_TRUE(found.ok());
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    EXPECT_EQ(found->has(stat), stat == Stat::kMean || stat == Stat::kZeros) << stat_name(stat);
  }
}

TEST(Stats, OfSmallTensors) {
  struct Case {
    const char* what;
    std::vector<float> values;
    Stat stat;
    double want;
  };
  const Case cases[] = {
      {"the count", {1, -2, 3, 0}, Stat::kCount, 4},
      {"the smallest", {1, -2, 3, 0}, Stat::kMin, -2},
      {"the largest", {1, -2, 3, 0}, Stat::kMax, 3},
      {"the mean", {1, -2, 3, 0}, Stat::kMean, 0.5},
      {"the population variance", {1, 3}, Stat::kVariance, 1},
      {"the standard deviation", {1, 5}, Stat::kStd, 2},
      {"the middle of an even number is between two", {4, 1, 3, 2}, Stat::kMedian, 2.5},
      {"the product", {1, -2, 3}, Stat::kProd, -6},
      {"the product of magnitudes", {1, -2, 3}, Stat::kAbsProd, 6},
      {"the sum of magnitudes", {1, -2, 3}, Stat::kL1, 6},
      {"the same under its other name", {1, -2, 3}, Stat::kAbsSum, 6},
      {"the euclidean norm", {3, -4}, Stat::kL2, 5},
      {"the smallest magnitude", {1, -2, 3}, Stat::kAbsMin, 1},
      {"the largest magnitude", {1, -4, 3}, Stat::kAbsMax, 4},
      {"both zeros are zeros", {0.0F, -0.0F, 1}, Stat::kZeros, 2},
      {"NaN are counted", {kNan, 1, kNan}, Stat::kNan, 2},
      {"infinities of both signs are counted", {kInf, -kInf, kInf}, Stat::kInf, 3},
      {"positive ones apart", {kInf, -kInf, kInf}, Stat::kPosInf, 2},
      {"negative ones apart", {kInf, -kInf, kInf}, Stat::kNegInf, 1},
      {"infinities beside a NaN are counted too", {kNan, kInf}, Stat::kInf, 1},
      {"the first that is not finite", {1, 2, -kInf, kNan}, Stat::kFirstNonFinite, 2},
      {"none is not finite", {1, 2}, Stat::kFirstNonFinite, -1},
      {"subnormal numbers are not zero", {0, 1e-40F, -1e-41F, 1}, Stat::kSubnormal, 2},
      {"the largest finite magnitude", {3.4028234663852886e38F, -3.4028234663852886e38F, 1}, Stat::kAtMax, 2},
      {"of no elements the sum is zero", {}, Stat::kSum, 0},
      {"of no elements there are none", {}, Stat::kCount, 0},
  };
  for (const Case& c : cases) {
    const auto found = stats(TensorView::of(c.values), {c.stat});
    ASSERT_TRUE(found.ok()) << c.what;
    EXPECT_EQ((*found)[c.stat], c.want) << c.what;
  }
}

TEST(Stats, ANanMakesEveryReductionNan) {
  const std::vector<float> values = {1, kNan, 3};
  const auto found = stats(TensorView::of(values), StatSet::all());
  ASSERT_TRUE(found.ok());
  for (const Stat stat : {Stat::kMin, Stat::kMax, Stat::kMean, Stat::kStd, Stat::kMedian, Stat::kSum, Stat::kProd,
                          Stat::kL1, Stat::kL2, Stat::kAbsMin, Stat::kAbsMax}) {
    EXPECT_TRUE(std::isnan((*found)[stat].value())) << stat_name(stat);
  }
  EXPECT_EQ((*found)[Stat::kNan], 1);
}

TEST(Stats, ThereIsNoSmallestOfNothing) {
  const std::vector<float> none;
  const auto found = stats(TensorView::of(none), StatSet::all());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[Stat::kMin], std::nullopt);
  EXPECT_EQ((*found)[Stat::kMax], std::nullopt);
  EXPECT_TRUE(std::isnan((*found)[Stat::kMean].value()));
}

TEST(Stats, OfEveryTypeAreTheStoredReductions) {
  std::mt19937_64 random(5);
  for (const DType dtype : kNumericDTypes) {
    std::string bytes(300 * dtype_size(dtype), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 120);  // finite in every type
    const TensorView tensor(dtype, bytes.data(), Shape{300});
    const auto found = stats(tensor, StatSet::all());
    ASSERT_TRUE(found.ok()) << dtype_name(dtype);
    for (const char* name : {"min", "max", "mean", "std", "median", "sum", "l1", "l2", "abs_max", "abs_std"}) {
      const Reduction reduction = parse_reduction(name).value();
      const reduce::Reduced reduced = reduce::reduce(tensor, std::span(&reduction, 1));
      const auto want = reduced.values.empty() ? std::nullopt : reduced.values[0].value.to_double();
      EXPECT_EQ((*found)[parse_stat(name).value()], want) << dtype_name(dtype) << " " << name;
    }
    EXPECT_EQ((*found)[Stat::kCount], 300) << dtype_name(dtype);
  }
}

TEST(Stats, CountsOfIntegersAndBoolsAndComplexNumbers) {
  const std::vector<std::int8_t> integers = {0, -128, 0, 5};
  const auto of_integers = stats(TensorView::of(integers), StatSet::all());
  ASSERT_TRUE(of_integers.ok());
  EXPECT_EQ((*of_integers)[Stat::kZeros], 2);
  EXPECT_EQ((*of_integers)[Stat::kAbsMax], 128);
  EXPECT_EQ((*of_integers)[Stat::kNan], 0);
  EXPECT_EQ((*of_integers)[Stat::kSubnormal], std::nullopt);

  const std::vector<std::complex<float>> numbers = {{0, 0}, {3, 4}, {kNan, kInf}, {kInf, 0}};
  const auto of_complex = stats(TensorView::of(numbers), {Stat::kZeros, Stat::kNan, Stat::kInf, Stat::kFirstNonFinite});
  ASSERT_TRUE(of_complex.ok());
  EXPECT_EQ((*of_complex)[Stat::kZeros], 1);
  EXPECT_EQ((*of_complex)[Stat::kNan], 1);
  EXPECT_EQ((*of_complex)[Stat::kInf], 1);
  EXPECT_EQ((*of_complex)[Stat::kFirstNonFinite], 2);
}

TEST(Stats, ThePositionIsRowMajorWhateverTheStrides) {
  std::vector<float> values(24, 1);
  values[4 * 1 + 2] = kNan;  // row 1, column 2 of 6 x 4; in the transposed view row 2, column 1 of 4 x 6
  const std::int64_t strides[] = {4, 16};
  const TensorView transposed(DType::kFloat32, values.data(), Shape{4, 6}, strides);
  const auto found = stats(transposed, {Stat::kFirstNonFinite});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[Stat::kFirstNonFinite], 2 * 6 + 1);
}

TEST(Stats, RefusesWhatHasNoNumbers) {
  const std::string_view texts[] = {"a"};
  EXPECT_NE(stats(TensorView::strings(texts)).error().message.find("string"), std::string::npos);
  EXPECT_EQ(stats(TensorView(DType::kFloat32, nullptr, Shape{3})).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(stats(TensorView(DType::kFloat32, nullptr, Shape{-3})).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tornasole
