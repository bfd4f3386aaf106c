#include "reduce/small_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reduce/reference.h"

namespace tornasole::reduce {
namespace {

// Every bit pattern against the definition of the type.
void expect_all_exact(DType dtype, std::uint32_t patterns, const std::function<float(std::uint32_t)>& convert) {
  for (std::uint32_t bits = 0; bits < patterns; ++bits) {
    const auto got = static_cast<long double>(convert(bits));
    const long double want = decode_float(dtype, bits);
    const bool is_same = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
    ASSERT_TRUE(is_same) << dtype_name(dtype) << " bits " << bits;
  }
}

TEST(SmallFloats, EveryPatternHasTheValueOfItsDefinition) {
  expect_all_exact(DType::kFloat16, 65536,
                   [](std::uint32_t b) { return float_from_half(static_cast<std::uint16_t>(b)); });
  expect_all_exact(DType::kBfloat16, 65536,
                   [](std::uint32_t b) { return float_from_bfloat16(static_cast<std::uint16_t>(b)); });
  expect_all_exact(DType::kFloat8E5m2, 256,
                   [](std::uint32_t b) { return float_from_e5m2(static_cast<std::uint8_t>(b)); });
  expect_all_exact(DType::kFloat8E4m3fn, 256,
                   [](std::uint32_t b) { return float_from_e4m3fn(static_cast<std::uint8_t>(b)); });
}

TEST(SmallFloats, HaveTheirPublishedExtremes) {
  EXPECT_EQ(float_from_half(0x7BFF), 65504.0F);
  EXPECT_EQ(float_from_half(0x0001), 0x1p-24F);
  EXPECT_EQ(float_from_e5m2(0x7B), 57344.0F);
  EXPECT_EQ(float_from_e4m3fn(0x7E), 448.0F);
  EXPECT_EQ(float_from_e4m3fn(0x01), 0x1p-9F);
  EXPECT_TRUE(std::isnan(float_from_e4m3fn(0xFF)));
  EXPECT_EQ(float_from_bfloat16(0x3F80), 1.0F);
}

}  // namespace
}  // namespace tornasole::reduce
