#include "tools/compare_values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tools/made_trial.h"

namespace tornasole::tools {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

TEST(CompareValues, TwoNumbersAgreeByTheRules) {
  struct Case {
    const char* what;
    double a, b;
    Tolerance tolerance;
    bool agrees;
  };
  const double next = std::nextafter(1.0, 2.0);
  const Case cases[] = {
      {"equal numbers agree exactly", 1, 1, {}, true},
      {"neighbours do not agree exactly", 1, next, {}, false},
      {"neighbours are one ulp apart", 1, next, {.ulp = 1}, true},
      {"two ulps are more than one", 1, std::nextafter(next, 2.0), {.ulp = 1}, false},
      {"both zeros are the same", 0.0, -0.0, {}, true},
      {"the smallest numbers around zero are two ulps apart", -kTiny, kTiny, {.ulp = 2}, true},
      {"and not one", -kTiny, kTiny, {.ulp = 1}, false},
      {"NaN agrees with NaN", kNan, -kNan, {}, true},
      {"NaN agrees with no number", kNan, 1, {.rel = 1e300, .abs = 1e300, .ulp = ~0ULL}, false},
      {"an infinity agrees with itself", kInf, kInf, {}, true},
      {"infinities of either sign do not agree", kInf, -kInf, {.rel = 1e300, .abs = 1e300, .ulp = ~0ULL}, false},
      {"an infinity is not one ulp from the largest number", kInf, kMax, {.ulp = 10}, false},
      {"abs is inclusive", 1, 1.5, {.abs = 0.5}, true},
      {"abs is a bound", 1, 1.5, {.abs = 0.49}, false},
      {"rel counts from the larger magnitude", 100, 101, {.rel = 1.0 / 101}, true},
      {"rel is a bound", 100, 101, {.rel = 0.0099}, false},
      {"any of the three suffices", 1, 2, {.rel = 1e-9, .abs = 1}, true},
      {"large numbers of either sign do not overflow", kMax, -kMax, {.rel = 1.9}, false},
      {"their relative difference is two", kMax, -kMax, {.rel = 2}, true},
  };
  for (const Case& c : cases) {
    for (const bool swapped : {false, true}) {
      const Tensor a = tensor_of<double>({swapped ? c.b : c.a});
      const Tensor b = tensor_of<double>({swapped ? c.a : c.b});
      EXPECT_EQ(compare_values(a, b, c.tolerance).elements_different == 0, c.agrees) << c.what;
    }
  }
}

TEST(CompareValues, UlpsAreThoseOfTheElementType) {
  struct Case {
    const char* what;
    DType dtype;
    Bytes a, b;
    std::uint64_t ulp;
  };
  const Case cases[] = {
      {"float16", DType::kFloat16, Bytes("\x00\x3C", 2), Bytes("\x01\x3C", 2), 1},
      {"bfloat16", DType::kBfloat16, Bytes("\x80\x3F", 2), Bytes("\x83\x3F", 2), 3},
      {"float8 e5m2", DType::kFloat8E5m2, Bytes("\x3C", 1), Bytes("\x3D", 1), 1},
      {"float8 e4m3fn across zero", DType::kFloat8E4m3fn, Bytes("\x81", 1), Bytes("\x01", 1), 2},
      {"float32", DType::kFloat32, Bytes("\x00\x00\x80\x3F", 4), Bytes("\x05\x00\x80\x3F", 4), 5},
      {"uint8 counts in ones", DType::kUint8, Bytes("\x03", 1), Bytes("\xFF", 1), 252},
      {"complex64 takes its worse part", DType::kComplex64, Bytes("\0\0\0\0\x00\x00\x80\x3F", 8),
       Bytes("\0\0\0\0\x07\x00\x80\x3F", 8), 7},
  };
  for (const Case& c : cases) {
    const Tensor a(c.dtype, Shape{1}, c.a);
    const Tensor b(c.dtype, Shape{1}, c.b);
    const Comparison exact = compare_values(a, b, {.ulp = c.ulp - 1});
    EXPECT_EQ(exact.max_ulp, c.ulp) << c.what;
    EXPECT_EQ(exact.elements_different, 1) << c.what;
    EXPECT_EQ(compare_values(a, b, {.ulp = c.ulp}).elements_different, 0) << c.what;
  }
}

TEST(CompareValues, IntegersAreComparedWithoutRounding) {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  const Comparison found = compare_values(tensor_of<std::int64_t>({large}), tensor_of<std::int64_t>({large - 1}), {});
  EXPECT_EQ(found.elements_different, 1);
  EXPECT_EQ(found.max_abs, 1);
  const auto mixed = compare_values(tensor_of<std::int64_t>({-1}), tensor_of<std::uint64_t>({~std::uint64_t{0}}), {});
  EXPECT_EQ(mixed.elements_different, 1);
  EXPECT_EQ(mixed.max_abs, std::ldexp(1.0, 64));
  EXPECT_EQ(compare_values(tensor_of<std::int64_t>({7}), tensor_of<std::uint64_t>({7}), {}).elements_different, 0);
}

TEST(CompareValues, TheFirstAndAllDifferencesAreCounted) {
  const Comparison found =
      compare_values(tensor_of<float>({1, 2, 3, 4}), tensor_of<float>({1, 2.5, 3, 8}), {.abs = 0.1});
  EXPECT_EQ(found.elements_different, 2);
  EXPECT_EQ(found.first, 1);
  EXPECT_EQ(found.first_gap.abs, 0.5);
  EXPECT_EQ(found.max_abs, 4);
  EXPECT_EQ(found.max_rel, 0.5);
}

TEST(CompareValues, TypesMayDiffer) {
  const Tensor a = tensor_of<float>({0.5F, 3});
  EXPECT_EQ(compare_values(a, tensor_of<double>({0.5, 3}), {}).elements_different, 0);
  EXPECT_EQ(compare_values(a, tensor_of<double>({0.5, 3.25}), {.abs = 0.25}).elements_different, 0);
  // No ulp is defined between two types, so none makes them agree.
  EXPECT_EQ(compare_values(a, tensor_of<double>({0.5, 3.25}), {.ulp = ~0ULL}).elements_different, 1);
  const std::vector<std::complex<float>> complex = {{0.5F, 0}, {3, 1}};
  EXPECT_EQ(compare_values(a, tensor_of(complex), {}).elements_different, 1);
}

TEST(CompareValues, TextsAreEqualOrNot) {
  const Tensor a({"x", "y"}, Shape{2});
  EXPECT_EQ(compare_values(a, Tensor({"x", "y"}, Shape{2}), {}).elements_different, 0);
  EXPECT_EQ(compare_values(a, Tensor({"x", "z"}, Shape{2}), {.abs = 1e9}).first, 1);
  EXPECT_EQ(compare_values(a, tensor_of<float>({1, 2}), {}).elements_different, 2);
}

TEST(CompareValues, UlpsOfRandomFloatsAreTheStepsBetweenThem) {
  std::mt19937_64 random(20240817);
  for (int round = 0; round < 1000; ++round) {
    const auto bits = static_cast<std::uint32_t>(random());
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    const auto steps = random() % 50;
    float other = value;
    for (std::uint64_t i = 0; i < steps; ++i) other = std::nextafter(other, std::numeric_limits<float>::max());
    // The two zeros are one number, which nextafter passes in one step.
    EXPECT_EQ(compare_values(tensor_of<float>({value}), tensor_of<float>({other}), {}).max_ulp,
              value == other ? 0 : steps);
  }
}

}  // namespace
}  // namespace tornasole::tools
