// Statistics of samples: per unit, against the tensor before, and quantiles.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "reduce/derived.h"
#include "reduce/statistics_fixture.h"

namespace tornasole::reduce {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kDoubleNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();

// ---- units

struct SlowUnits {
  std::int64_t units = 1;
  std::vector<std::vector<long double>> samples = {};
};
SlowUnits slow_units(const Tensor& dense) {
  const Shape& shape = dense.shape();
  SlowUnits slow;
  std::int64_t inner = 1;
  if (shape.rank() > 0) {
    const std::size_t axis = shape.rank() >= 3 ? 1 : shape.rank() - 1;
    slow.units = shape[axis];
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  slow.samples.resize(static_cast<std::size_t>(slow.units));
  const auto elements = elements_of(dense);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    slow.samples[(i / static_cast<std::size_t>(inner)) % slow.samples.size()].push_back(elements[i]);
  }
  return slow;
}

TEST(UnitStatistics, UnitsLieAlongTheChannelsOrTheLastAxis) {
  const std::vector<float> values = {1, -1, 2, 0, 3, kNan, -4, 5};
  struct Case {
    const char* what;
    Shape shape;
    std::vector<float> activity;
  };
  const Case cases[] = {
      {"a vector is one sample of many units", {8}, {1, 0, 1, 0, 1, 0, 0, 1}},
      {"a matrix has its units along the last axis", {4, 2}, {0.75F, 0.25F}},
      {"three axes: along the middle one", {2, 2, 2}, {0.5F, 0.5F}},
      {"four axes: along the second one", {1, 4, 2, 1}, {0.5F, 0.5F, 0.5F, 0.5F}},
  };
  for (const Case& c : cases) {
    const auto got = unit_activity(TensorView::of(values, c.shape));
    ASSERT_TRUE(got.ok()) << c.what;
    EXPECT_EQ(got->shape(), (Shape{static_cast<std::int64_t>(c.activity.size())})) << c.what;
    EXPECT_EQ(values_of<float>(*got), c.activity) << c.what;
  }
}

TEST(UnitStatistics, ANumberWithoutDimensionsIsOneUnit) {
  const float number = -2;
  const TensorView scalar(DType::kFloat32, &number, Shape{});
  EXPECT_EQ(values_of<float>(*unit_activity(scalar)), std::vector<float>{0});
  EXPECT_EQ(values_of<float>(*across_samples(scalar)), (std::vector<float>{-2, 4, 2}));
}

TEST(UnitStatistics, WithoutSamplesTheyAreNan) {
  const TensorView none(DType::kFloat32, nullptr, Shape{0, 2});
  EXPECT_TRUE(are_same(values_of<float>(*unit_activity(none)), {kNan, kNan}));
  EXPECT_TRUE(are_same(values_of<float>(*across_samples(none)), std::vector<float>(6, kNan)));
  const TensorView no_units(DType::kFloat32, nullptr, Shape{4, 0});
  EXPECT_EQ(unit_activity(no_units)->shape(), Shape{0});
  EXPECT_EQ(across_samples(no_units)->shape(), (Shape{3, 0}));
}

TEST(UnitStatistics, RangeCountsWhatIsOutsideAndNan) {
  const std::vector<float> values = {-1, 0, 1, 0.5F, kNan, 2, kInfinity, -kInfinity};
  EXPECT_EQ(values_of<float>(*unit_range(TensorView::of(values, {8, 1}), {-1, 1})), std::vector<float>{0.5F});
  EXPECT_EQ(values_of<float>(*unit_range(TensorView::of(values, {8, 1}), {-kDoubleInfinity, kDoubleInfinity})),
            std::vector<float>{0.125F});
  EXPECT_FALSE(unit_range(TensorView::of(values), {1, -1}).ok());
  EXPECT_FALSE(unit_range(TensorView::of(values), {kDoubleNan, 1}).ok());
}

TEST(UnitStatistics, EveryTypeSizeAndLayoutAgreesWithASlowLoop) {
  for_each_tensor(12, [](const TensorView& tensor, const Tensor& dense) {
    const SlowUnits slow = slow_units(dense);
    const auto activity = unit_activity(tensor);
    const auto range = unit_range(tensor, {-0.5, 1});
    const auto across = across_samples(tensor);
    ASSERT_TRUE(activity.ok() && range.ok() && across.ok());
    ASSERT_EQ(activity->shape(), Shape{slow.units});
    ASSERT_EQ(range->shape(), Shape{slow.units});
    ASSERT_EQ(across->shape(), (Shape{3, slow.units}));
    const auto units = static_cast<std::size_t>(slow.units);
    for (std::size_t unit = 0; unit < units; ++unit) {
      long double active = 0, outside = 0, sum = 0, squares = 0, magnitudes = 0;
      for (const long double x : slow.samples[unit]) {
        active += x > 0 ? 1 : 0;
        outside += x >= -0.5L && x <= 1 ? 0 : 1;
        sum += x;
        squares += x * x;
        magnitudes += std::fabs(x);
      }
      const auto n = static_cast<long double>(slow.samples[unit].size());
      EXPECT_TRUE(is_near(activity->values<float>()[unit], static_cast<float>(active / n), 0, 0));
      EXPECT_TRUE(is_near(range->values<float>()[unit], static_cast<float>(outside / n), 0, 0));
      const auto means = across->values<float>();
      EXPECT_TRUE(is_near(means[unit], static_cast<float>(sum / n), 1e-6L, 1e-14L * magnitudes));
      EXPECT_TRUE(is_near(means[units + unit], static_cast<float>(squares / n), 1e-6L, 0));
      EXPECT_TRUE(is_near(means[2 * units + unit], static_cast<float>(magnitudes / n), 1e-6L, 0));
    }
  });
}

TEST(UnitStatistics, ManyUnitsAndRunsSpanBlocks) {
  TensorMaker maker(5);
  for (const Shape& shape : {Shape{3, 5'000}, Shape{2, 3, 4'000}, Shape{5'000, 3}, Shape{3, 5'000, 1}}) {
    const Tensor dense = maker.tensor(DType::kFloat32, shape, Values::kModerate);
    const SlowUnits slow = slow_units(dense);
    const auto across = across_samples(view(dense));
    ASSERT_TRUE(across.ok());
    for (std::size_t unit = 0; unit < slow.samples.size(); ++unit) {
      long double sum = 0;
      for (const long double x : slow.samples[unit]) sum += x;
      const auto n = static_cast<long double>(slow.samples[unit].size());
      EXPECT_TRUE(is_near(across->values<float>()[unit], sum / n, 1e-6L, 1e-6L));
    }
  }
}

TEST(UnitStatistics, ATensorOfTooManyUnitsIsRefused) {
  const float number = 1;
  const std::int64_t strides[] = {0};
  const TensorView wide(DType::kFloat32, &number, Shape{kMaxUnits + 1}, strides);
  for (const auto& refused : {unit_activity(wide), across_samples(wide), unit_range(wide, {0, 1})}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_NE(refused.error().message.find("1048576"), std::string::npos);
  }
}

// ---- before and now

TEST(Update, IsTheLengthOfTheChangeAndOfWhatWasBefore) {
  struct Case {
    const char* what;
    std::vector<double> now, before;
    std::vector<double> update, cosine;
  };
  const double huge = 1e300;
  const double tiny = 1e-300;
  const Case cases[] = {
      {"a step", {4, 4}, {1, 0}, {5, 1}, {1 / std::sqrt(2.0), 1}},
      {"no step", {1, 2}, {1, 2}, {0, std::sqrt(5.0)}, {1, std::sqrt(5.0)}},
      {"the other way", {-3, 0}, {3, 0}, {6, 3}, {-1, 3}},
      {"from zero there is no angle", {3, 4}, {0, 0}, {5, 0}, {kDoubleNan, 0}},
      {"to zero neither", {0, 0}, {3, 4}, {5, 5}, {kDoubleNan, 5}},
      {"nothing", {}, {}, {0, 0}, {kDoubleNan, 0}},
      {"a NaN", {kDoubleNan, 1}, {1, 1}, {kDoubleNan, std::sqrt(2.0)}, {kDoubleNan, std::sqrt(2.0)}},
      {"squares that overflow", {3 * huge, 0}, {0, 4 * huge}, {5 * huge, 4 * huge}, {0, 4 * huge}},
      {"squares that vanish", {3 * tiny, 0}, {0, 4 * tiny}, {5 * tiny, 4 * tiny}, {0, 4 * tiny}},
      {"far apart", {huge, 0}, {tiny, 0}, {huge, tiny}, {1, tiny}},
      {"an infinity", {kDoubleInfinity}, {1}, {kDoubleInfinity, 1}, {kDoubleNan, 1}},
  };
  for (const Case& c : cases) {
    const auto moved = update(TensorView::of(c.now), TensorView::of(c.before));
    const auto turned = cosine_previous(TensorView::of(c.now), TensorView::of(c.before));
    ASSERT_TRUE(moved.ok() && turned.ok()) << c.what;
    EXPECT_EQ(moved->dtype(), DType::kFloat64);
    EXPECT_EQ(moved->shape(), Shape{2});
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(is_near(moved->values<double>()[i], c.update[i], 1e-14L, 0))
          << c.what << " " << moved->values<double>()[i];
      EXPECT_TRUE(is_near(turned->values<double>()[i], c.cosine[i], 1e-14L, 0))
          << c.what << " " << turned->values<double>()[i];
    }
  }
}

TEST(Update, NeighboursOf64BitsDiffer) {
  const std::vector<std::int64_t> before = {std::int64_t{1} << 62};
  const std::vector<std::int64_t> now = {(std::int64_t{1} << 62) + 1};
  EXPECT_EQ(update(TensorView::of(now), TensorView::of(before))->values<double>()[0], 1);
  const std::vector<std::uint64_t> low = {0}, high = {~std::uint64_t{0}};
  EXPECT_EQ(update(TensorView::of(low), TensorView::of(high))->values<double>()[0], 0x1p64);
}

TEST(Update, EveryTypeSizeAndLayoutAgreesWithASlowLoop) {
  TensorMaker maker(13);
  for (const DType dtype : real_dtypes()) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(count));
      const std::vector<std::int64_t> shape = {count % 3 + 1, count};
      const AnyTensor now = maker.strided(dtype, shape, Values::kMixed);
      const AnyTensor before = maker.strided(dtype, shape, Values::kMixed);
      const auto a = elements_of(now.dense());
      const auto b = elements_of(before.dense());
      long double aa = 0, bb = 0, dd = 0, ab = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        dd += (a[i] - b[i]) * (a[i] - b[i]);
        ab += a[i] * b[i];
      }
      const auto moved = update(now.view(), before.view());
      const auto turned = cosine_previous(now.view(), before.view());
      ASSERT_TRUE(moved.ok() && turned.ok());
      EXPECT_TRUE(is_near(moved->values<double>()[0], std::sqrt(dd), 1e-12L, 0));
      EXPECT_TRUE(is_near(moved->values<double>()[1], std::sqrt(bb), 1e-12L, 0));
      EXPECT_TRUE(is_near(turned->values<double>()[0], ab / std::sqrt(aa) / std::sqrt(bb), 1e-12L, 1));
      EXPECT_TRUE(is_near(turned->values<double>()[1], std::sqrt(bb), 1e-12L, 0));
      if (HasFailure()) return;
    }
  }
}

// What was kept is without gaps, what is now may have some; one walk over both gives both statistics.
TEST(Update, OfManyElementsIsTheSameInEveryLayoutAndInOneWalk) {
  TensorMaker maker(16);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{70'001}, {300, 31}, {7, 5, 90}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + Shape(shape).to_string());
      const AnyTensor now = maker.strided(dtype, shape, Values::kModerate);
      const AnyTensor before = maker.strided(dtype, shape, Values::kModerate);
      const Tensor dense_now = now.dense(), dense_before = before.dense();
      const auto moved = update(view(dense_now), view(dense_before));
      const auto turned = cosine_previous(view(dense_now), view(dense_before));
      ASSERT_TRUE(moved.ok() && turned.ok());
      for (const auto& both : {movement(view(dense_now), view(dense_before)), movement(now.view(), view(dense_before)),
                               movement(now.view(), before.view())}) {
        ASSERT_TRUE(both.ok());
        EXPECT_EQ(values_of<double>(both->update), values_of<double>(*moved));
        EXPECT_EQ(values_of<double>(both->cosine_previous), values_of<double>(*turned));
      }
    }
  }
}

TEST(Update, OtherTypesAndShapesAreRefused) {
  const std::vector<float> floats = {1, 2};
  const std::vector<double> doubles = {1, 2};
  for (const auto& refused : {update(TensorView::of(floats), TensorView::of(doubles)),
                              cosine_previous(TensorView::of(floats), TensorView::of(floats, {2, 1}))}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_NE(refused.error().message.find("float32 [2]"), std::string::npos) << refused.error().message;
  }
}

// ---- quantiles

std::vector<float> slow_quantiles(const Tensor& dense) {
  std::vector<long double> sorted = elements_of(dense);
  const bool has_nan = std::ranges::any_of(sorted, [](long double x) { return std::isnan(x); });
  if (sorted.empty() || has_nan) return std::vector<float>(5, kNan);
  std::ranges::sort(sorted);
  std::vector<float> values;
  for (const double q : {0.01, 0.05, 0.5, 0.95, 0.99}) {
    const double position = static_cast<double>(sorted.size() - 1) * q;
    const auto at = static_cast<std::size_t>(position);
    const long double lower = sorted[at];
    const long double upper = sorted[std::min(at + 1, sorted.size() - 1)];
    const long double fraction = position - static_cast<double>(at);
    const long double value = lower == upper || fraction == 0 ? lower : lower + (upper - lower) * fraction;
    values.push_back(static_cast<float>(value));
  }
  return values;
}

void expect_slow_quantiles(const TensorView& tensor, const Tensor& dense) {
  const auto got = quantiles(tensor);
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got->shape(), Shape{5});
  const std::vector<float> want = slow_quantiles(dense);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(is_near(got->values<float>()[i], want[i], 1e-6L, 0))
        << i << ": " << got->values<float>()[i] << " not " << want[i];
  }
}

TEST(Quantiles, AreInterpolatedBetweenNeighbours) {
  struct Case {
    const char* what;
    std::vector<double> values;
    std::vector<float> quantiles;
  };
  std::vector<double> hundred;
  for (int i = 100; i >= 0; --i) hundred.push_back(i);
  const Case cases[] = {
      {"of nothing", {}, std::vector<float>(5, kNan)},
      {"of one element", {3}, std::vector<float>(5, 3)},
      {"of two", {0, 100}, {1, 5, 50, 95, 99}},
      {"of a hundred and one in reverse", hundred, {1, 5, 50, 95, 99}},
      {"with a NaN", {1, kDoubleNan, 2}, std::vector<float>(5, kNan)},
      {"infinities are values",
       {-kDoubleInfinity, -kDoubleInfinity, 1, kDoubleInfinity, kDoubleInfinity},
       {-kInfinity, -kInfinity, 1, kInfinity, kInfinity}},
      {"beyond a float", {1e300, 1e300}, std::vector<float>(5, kInfinity)},
      {"a range that overflows", {-1.7e308, 1.7e308}, {-kInfinity, -kInfinity, 0, kInfinity, kInfinity}},
  };
  for (const Case& c : cases) {
    const auto got = quantiles(TensorView::of(c.values));
    ASSERT_TRUE(got.ok()) << c.what;
    const auto values = values_of<float>(*got);
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_TRUE(is_near(values[i], c.quantiles[i], 1e-6L, 0)) << c.what << values[i];
  }
}

TEST(Quantiles, EveryTypeSizeAndLayoutAgreesWithASlowLoop) {
  for_each_tensor(14, [](const TensorView& tensor, const Tensor& dense) {
    // Next to infinities the interpolation is arithmetic of its own; the table has it.
    if (std::ranges::any_of(elements_of(dense), [](long double x) { return std::isinf(x); })) return;
    expect_slow_quantiles(tensor, dense);
  });
}

// Enough for the selection that keeps no copy.
TEST(Quantiles, OfManyElementsAgreeWithASlowLoop) {
  TensorMaker maker(15);
  for (const DType dtype : real_dtypes()) {
    SCOPED_TRACE(dtype_name(dtype));
    const Tensor mixed = maker.tensor(dtype, Shape{70'001}, Values::kMixed);
    expect_slow_quantiles(view(mixed), mixed);
    const AnyTensor strided = maker.strided(dtype, {300, 301}, Values::kModerate);
    expect_slow_quantiles(strided.view(), strided.dense());
  }
  for (const std::vector<double>& heaps : {std::vector<double>{2.5}, {-1, 1}, {0, 1e-300, -1e300}}) {
    std::vector<double> values(80'000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = heaps[i % heaps.size()];
    expect_slow_quantiles(TensorView::of(values), Tensor(TensorView::of(values)));
  }
}

// Floats are told apart by value before they are by bits: crowds, outliers and the ends of the range.
TEST(Quantiles, OfFloatsInEveryDistributionAgreeWithASlowLoop) {
  std::mt19937_64 random(17);
  std::normal_distribution<float> normal;
  struct Case {
    const char* what;
    std::function<float(std::size_t)> value;
  };
  const Case cases[] = {
      {"spread", [&](std::size_t) { return normal(random); }},
      {"one far from all others", [&](std::size_t i) { return i == 7 ? 1e9F : normal(random); }},
      {"heavy tails", [&](std::size_t) { return std::pow(normal(random), 9.0F); }},
      {"equal", [](std::size_t) { return 2.5F; }},
      {"zeros of both signs", [](std::size_t i) { return i % 3 == 0 ? -0.0F : 0.0F; }},
      {"zeros among others", [&](std::size_t i) { return i % 5 == 0   ? normal(random)
                                                         : i % 2 == 0 ? -0.0F
                                                                      : 0.0F; }},
      {"two heaps", [](std::size_t i) { return i % 2 == 0 ? -1.0F : 1.0F; }},
      {"a range that overflows", [](std::size_t i) { return (i % 2 == 0 ? 3e38F : -3e38F) / float(i % 7 + 1); }},
      {"a range whose inverse overflows", [](std::size_t i) { return float(i % 9) * 1e-45F; }},
      {"neighbours", [](std::size_t i) { return std::bit_cast<float>(0x3F800000U + std::uint32_t(i % 1000)); }},
      {"in order", [](std::size_t i) { return static_cast<float>(i); }},
      {"with a NaN", [&](std::size_t i) { return i == 300 ? kNan : normal(random); }},
      {"with an infinity", [&](std::size_t i) { return i == 300 ? kInfinity : normal(random); }},
  };
  for (const Case& c : cases) {
    for (const std::size_t count : {511U, 512U, 2'049U, 9'000U, 70'001U, 300'000U}) {
      SCOPED_TRACE(std::string(c.what) + " " + std::to_string(count));
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = c.value(i);
      expect_slow_quantiles(TensorView::of(values), Tensor(TensorView::of(values)));
    }
  }
}

}  // namespace
}  // namespace tornasole::reduce
