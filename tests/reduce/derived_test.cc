#include "reduce/derived.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "reduce/statistics_fixture.h"

namespace tornasole::reduce {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kDoubleNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();

TEST(Statistics, NamesAreReadBack) {
  for (const Statistic statistic : kAllStatistics) EXPECT_EQ(parse_statistic(statistic_name(statistic)), statistic);
  EXPECT_EQ(statistic_name(Statistic::kClasses), "classes");
  EXPECT_FALSE(parse_statistic("entropy"));
}

// ---- counts

TEST(Counts, TellsZerosAndWhatIsNotFinite) {
  struct Case {
    const char* what;
    std::vector<float> values;
    std::vector<std::int64_t> counts;
  };
  const Case cases[] = {
      {"nothing at all", {}, {0, 0, 0, 0, 0, -1}},
      {"one number", {3}, {1, 0, 0, 0, 0, -1}},
      {"zeros of either sign", {0.0F, -0.0F, 1}, {3, 2, 0, 0, 0, -1}},
      {"a subnormal number is no zero", {1e-45F}, {1, 0, 0, 0, 0, -1}},
      {"each kind apart, the first of all by position",
       {1, -kInfinity, kNan, kInfinity, kInfinity, 0},
       {6, 1, 1, 2, 1, 1}},
      {"the largest number is finite", {3.4028235e38F, -3.4028235e38F}, {2, 0, 0, 0, 0, -1}},
  };
  for (const Case& c : cases) {
    const auto got = counts(TensorView::of(c.values));
    ASSERT_TRUE(got.ok()) << c.what;
    EXPECT_EQ(got->shape(), Shape{6}) << c.what;
    EXPECT_EQ(values_of<std::int64_t>(*got), c.counts) << c.what;
  }
  const std::vector<std::complex<double>> complex = {
      {0, 0}, {0, 1}, {kDoubleInfinity, kDoubleNan}, {1, -kDoubleInfinity}, {-0.0, 0}};
  EXPECT_EQ(values_of<std::int64_t>(*counts(TensorView::of(complex))), (std::vector<std::int64_t>{5, 2, 1, 1, 0, 2}));
}

TEST(Counts, EveryTypeSizeAndLayoutAgreesWithASlowLoop) {
  for_each_tensor(11, [](const TensorView& tensor, const Tensor& dense) {
    std::vector<std::int64_t> want = {0, 0, 0, 0, 0, -1};
    for (const long double x : elements_of(dense)) {
      want[1] += x == 0 ? 1 : 0;
      want[2] += std::isnan(x) ? 1 : 0;
      want[3] += std::isinf(x) && x > 0 ? 1 : 0;
      want[4] += std::isinf(x) && x < 0 ? 1 : 0;
      if (want[5] < 0 && !std::isfinite(x)) want[5] = want[0];
      ++want[0];
    }
    const auto got = counts(tensor);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(values_of<std::int64_t>(*got), want);
  });
}

TEST(Counts, PositionsRunOnAcrossBlocks) {
  std::vector<float> values(10'000, 1);
  values[7'000] = kNan;
  values[9'000] = kInfinity;
  EXPECT_EQ(values_of<std::int64_t>(*counts(TensorView::of(values))),
            (std::vector<std::int64_t>{10'000, 0, 1, 1, 0, 7'000}));
}

// ---- hash

TEST(ContentHash, IsThatOfTheRowMajorBytes) {
  for_each_tensor(16, [](const TensorView& tensor, const Tensor& dense) {
    const auto got = content_hash(tensor);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->shape(), Shape{1});
    const auto want = std::bit_cast<std::int64_t>(XXH3_64bits(dense.bytes().data(), dense.bytes().size()));
    EXPECT_EQ(values_of<std::int64_t>(*got), std::vector<std::int64_t>{want});
  });
}

TEST(ContentHash, StridedTensorsOfManyBlocksAndComplexOnes) {
  TensorMaker maker(17);
  for (const DType dtype : {DType::kFloat32, DType::kComplex64, DType::kComplex128}) {
    AnyTensor made = maker.strided(dtype, {50, 20, 11}, Values::kAnyBits);
    EXPECT_EQ(*content_hash(made.view()), *content_hash(view(made.dense())));
    made.buffer[made.offset] = static_cast<char>(made.buffer[made.offset] ^ 1);
    const Tensor changed = made.dense();
    EXPECT_EQ(*content_hash(made.view()), *content_hash(view(changed)));
  }
  EXPECT_EQ(content_hash({DType::kFloat32, nullptr, Shape{0}})->values<std::int64_t>()[0],
            std::bit_cast<std::int64_t>(std::uint64_t{0x2D06800538D394C2U}));
}

// ---- classes

TEST(Classes, CountsOfLabels) {
  EXPECT_EQ(values_of<std::int64_t>(*class_counts(TensorView::of(std::vector<std::int64_t>{2, 0, 2, 3}))),
            (std::vector<std::int64_t>{1, 0, 2, 1}));
  EXPECT_EQ(values_of<std::int64_t>(*class_counts(TensorView::of(std::vector<float>{1, 1, 0}))),
            (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(class_counts({DType::kInt32, nullptr, Shape{0}})->shape(), Shape{0});
  EXPECT_EQ(class_counts(TensorView::of(std::vector<std::int32_t>{65'535}))->shape(), Shape{65'536});
}

TEST(Classes, IgnoredLabelsAreNotCounted) {
  const std::vector<std::int64_t> labels = {-100, 1, -100, 0, 1};
  const std::vector<std::int64_t> predictions = {7, 1, 9, 1, 0};
  EXPECT_EQ(values_of<std::int64_t>(*class_counts(TensorView::of(labels))), (std::vector<std::int64_t>{1, 2}));
  const auto pairs = class_pairs(TensorView::of(labels), TensorView::of(predictions));
  ASSERT_TRUE(pairs.ok());
  EXPECT_EQ(pairs->shape(), (Shape{2, 2}));
  EXPECT_EQ(values_of<std::int64_t>(*pairs), (std::vector<std::int64_t>{0, 1, 1, 1}));
}

TEST(Classes, WhatIsNoClassIsRefusedByValue) {
  struct Case {
    const char* shown;
    std::vector<double> labels;
  };
  const Case cases[] = {
      {"-1", {0, -1}}, {"65536", {65'536}}, {"0.5", {0.5}}, {"nan", {kDoubleNan}}, {"inf", {1, kDoubleInfinity}}};
  for (const Case& c : cases) {
    const auto refused = class_counts(TensorView::of(c.labels));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_NE(refused.error().message.find(std::string("classes: ") + c.shown + " "), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().message.find("0 to 65535"), std::string::npos) << refused.error().message;
  }
  const std::vector<std::int64_t> labels = {0, 1};
  const std::vector<std::int64_t> beyond = {0, 4'096};
  const std::vector<std::int64_t> three = {0, 1, 2};
  EXPECT_FALSE(class_pairs(TensorView::of(labels), TensorView::of(beyond)).ok());
  EXPECT_FALSE(class_pairs(TensorView::of(beyond), TensorView::of(labels)).ok());
  EXPECT_FALSE(class_pairs(TensorView::of(labels), TensorView::of(three)).ok());
  EXPECT_FALSE(class_pairs(TensorView::of(labels), TensorView::of(labels), 4'097).ok());
}

TEST(Classes, PairsOfLabelAndPrediction) {
  const std::vector<std::int64_t> labels = {0, 0, 1, 1, 1};
  const std::vector<std::int32_t> predictions = {0, 2, 1, 1, 0};
  const auto pairs = class_pairs(TensorView::of(labels), TensorView::of(predictions));
  ASSERT_TRUE(pairs.ok());
  EXPECT_EQ(pairs->shape(), (Shape{3, 3}));
  EXPECT_EQ(values_of<std::int64_t>(*pairs), (std::vector<std::int64_t>{1, 0, 1, 1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(class_pairs(TensorView::of(labels), TensorView::of(labels), 4)->shape(), (Shape{4, 4}));
  EXPECT_EQ(class_pairs({DType::kInt64, nullptr, Shape{0}}, {DType::kInt64, nullptr, Shape{0}})->shape(),
            (Shape{0, 0}));
}

TEST(Classes, TheHighestScoreIsThePrediction) {
  const std::vector<float> scores = {0, 5, 1, 7, 7, 2, -3, -2, -1, 1, kNan, 9};
  const auto rows = predicted_classes(TensorView::of(scores, {4, 3}), 1);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->shape(), Shape{4});
  EXPECT_EQ(values_of<std::int32_t>(*rows), (std::vector<std::int32_t>{1, 0, 2, 1}));
  const auto middle = predicted_classes(TensorView::of(scores, {2, 3, 2}), 1);
  ASSERT_TRUE(middle.ok());
  EXPECT_EQ(middle->shape(), (Shape{2, 2}));
  EXPECT_EQ(values_of<std::int32_t>(*middle), (std::vector<std::int32_t>{2, 1, 2, 2}));
  EXPECT_FALSE(predicted_classes(TensorView::of(scores), 1).ok());
  EXPECT_FALSE(predicted_classes({DType::kFloat32, nullptr, Shape{3, 0}}, 1).ok());
}

// ---- loss of a cast

TEST(CastLoss, CountsWhatTheNarrowTypeCannotHold) {
  struct Case {
    const char* what;
    DType target;
    std::vector<double> values;
    CastLoss loss;
  };
  const Case cases[] = {
      {"half: half of the smallest number goes to zero, what is above it does not",
       DType::kFloat16,
       {0x1p-25, -0x1p-25, 0x1.000002p-25, 0x1p-24, 0},
       {2, 0}},
      {"half: the tie above the largest number overflows, what is below it does not",
       DType::kFloat16,
       {65504, 65519.99, 65520, -65520, 1e30},
       {0, 3}},
      {"bfloat16: as wide as a float",
       DType::kBfloat16,
       {0x1p-134, 0x1.8p-134, 0x1p-133, 0x1.FEp127, 0x1.FEFEp127, 0x1.FFp127},
       {1, 1}},
      {"e5m2", DType::kFloat8E5m2, {0x1p-17, 0x1.1p-17, 57344, 61439, 61440}, {1, 1}},
      {"e4m3fn: the tie above 448 goes to 448, which is even",
       DType::kFloat8E4m3fn,
       {0x1p-10, 0x1.1p-10, 448, 464, 464.5, 480},
       {1, 2}},
      {"what is not finite already is no loss",
       DType::kFloat16,
       {kDoubleNan, kDoubleInfinity, -kDoubleInfinity},
       {0, 0}},
      {"nothing", DType::kFloat16, {}, {0, 0}},
  };
  for (const Case& c : cases) {
    const auto doubles = cast_loss(TensorView::of(c.values), c.target);
    ASSERT_TRUE(doubles.ok()) << c.what;
    EXPECT_EQ(*doubles, c.loss) << c.what << ": " << doubles->underflow << ", " << doubles->overflow;
    // The same as floats, where the numbers are floats too.
    std::vector<float> floats;
    for (const double x : c.values) floats.push_back(static_cast<float>(x));
    const bool are_floats = std::ranges::equal(floats, c.values, [](float a, double b) {
      return static_cast<double>(a) == b || (std::isnan(a) && std::isnan(b));
    });
    if (!are_floats) continue;
    EXPECT_EQ(*cast_loss(TensorView::of(floats), c.target), c.loss) << c.what;
  }
}

// Every number of the target type, and the rounding of its neighbours, by search among all of them.
TEST(CastLoss, EveryTypeSizeAndLayoutAgreesWithASlowLoop) {
  struct Target {
    DType dtype;
    long double smallest, largest, unit;  // the unit is that of the largest number
    bool is_largest_even;
  };
  const Target targets[] = {{DType::kFloat16, 0x1p-24L, 65504, 32, false},
                            {DType::kBfloat16, 0x1p-133L, 0x1.FEp127L, 0x1p120L, false},
                            {DType::kFloat8E5m2, 0x1p-16L, 57344, 8192, false},
                            {DType::kFloat8E4m3fn, 0x1p-9L, 448, 32, true}};
  for_each_tensor(18, [&](const TensorView& tensor, const Tensor& dense) {
    for (const Target& target : targets) {
      CastLoss want;
      for (const long double x : elements_of(dense)) {
        const long double size = std::fabs(x);
        if (!std::isfinite(size)) continue;
        want.underflow += size != 0 && size <= target.smallest / 2 ? 1 : 0;
        const long double tie = target.largest + target.unit / 2;
        want.overflow += size > tie || (size == tie && !target.is_largest_even) ? 1 : 0;
      }
      const auto got = cast_loss(tensor, target.dtype);
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(*got, want) << dtype_name(target.dtype);
    }
  });
}

TEST(CastLoss, OtherTargetsAndTypesAreRefused) {
  const std::vector<float> values = {1};
  const auto refused = cast_loss(TensorView::of(values), DType::kInt8);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("int8"), std::string::npos);
  EXPECT_NE(refused.error().message.find("float8_e4m3fn"), std::string::npos);
  EXPECT_FALSE(cast_loss(TensorView::of(std::vector<std::complex<float>>(1)), DType::kFloat16).ok());
}

TEST(Statistics, StringsAndMissingDataAreRefused) {
  const std::string_view texts[] = {"a", "b"};
  const TensorView strings = TensorView::strings(texts);
  const TensorView nothing(DType::kFloat32, nullptr, Shape{2});
  const TensorView negative(DType::kFloat32, texts, Shape{-1});
  for (const TensorView& bad : {strings, nothing, negative}) {
    for (const auto& refused : {counts(bad), unit_activity(bad), unit_range(bad, {0, 1}), across_samples(bad),
                                update(bad, bad), cosine_previous(bad, bad), quantiles(bad), content_hash(bad),
                                class_counts(bad), class_pairs(bad, bad), predicted_classes(bad, 0)}) {
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    }
  }
}

}  // namespace
}  // namespace tornasole::reduce
