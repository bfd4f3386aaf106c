#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "reduce/reduce.h"

namespace tornasole::reduce {
namespace {

template <typename From, typename To>
void expect_widened(const std::vector<From>& from, const std::vector<To>& want) {
  bool is_exact_only = true;
  const std::optional<Tensor> got = widen_for_smdebug(TensorView::of(from), &is_exact_only);
  ASSERT_TRUE(got);
  EXPECT_FALSE(is_exact_only);
  const auto values = got->template values<To>();
  EXPECT_EQ(std::vector<To>(values.begin(), values.end()), want);
}

TEST(WidenForSmdebug, WidensWhatTheReferenceCannotRead) {
  expect_widened<std::int8_t, std::int32_t>({-128, -1, 127}, {-128, -1, 127});
  expect_widened<std::int16_t, std::int32_t>({INT16_MIN, INT16_MAX}, {INT16_MIN, INT16_MAX});
  expect_widened<std::uint16_t, std::int32_t>({0, 65535}, {0, 65535});
  expect_widened<std::uint32_t, std::int64_t>({0, UINT32_MAX}, {0, UINT32_MAX});
  expect_widened<std::uint64_t, std::int64_t>({0, INT64_MAX}, {0, INT64_MAX});
  expect_widened<std::complex<float>, std::complex<double>>({{1.5F, -2}}, {{1.5, -2}});
}

TEST(WidenForSmdebug, WidensSmallFloatsToFloat32) {
  const std::uint16_t bfloats[] = {0x3F80, 0xC000};
  const std::uint8_t e5m2[] = {0x3C, 0xC0};
  const std::uint8_t e4m3fn[] = {0x38, 0xC0};
  const TensorView views[] = {{DType::kBfloat16, bfloats, Shape{1, 2}},
                              {DType::kFloat8E5m2, e5m2, Shape{1, 2}},
                              {DType::kFloat8E4m3fn, e4m3fn, Shape{1, 2}}};
  for (const TensorView& view : views) {
    const auto got = widen_for_smdebug(view, nullptr);
    ASSERT_TRUE(got) << dtype_name(view.dtype());
    EXPECT_EQ(got->shape(), (Shape{1, 2})) << "the shape is kept";
    const auto values = got->values<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{1, -2}))
        << dtype_name(view.dtype());
  }
}

TEST(WidenForSmdebug, LeavesAloneWhatTheReferenceReads) {
  const std::string zeros(16, '\0');
  using enum DType;
  for (const DType dtype : {kFloat32, kFloat64, kInt32, kUint8, kInt64, kBool, kComplex128, kFloat16, kString}) {
    bool is_exact_only = true;
    EXPECT_FALSE(widen_for_smdebug(TensorView(dtype, zeros.data(), Shape{1}), &is_exact_only)) << dtype_name(dtype);
    EXPECT_FALSE(is_exact_only) << dtype_name(dtype);
  }
}

TEST(WidenForSmdebug, KeepsUint64BeyondInt64AndSaysSo) {
  bool is_exact_only = false;
  EXPECT_FALSE(widen_for_smdebug(TensorView::of(std::vector<std::uint64_t>{1, UINT64_MAX}), &is_exact_only));
  EXPECT_TRUE(is_exact_only);
}

TEST(WidenForSmdebug, ReadsStridedElementsRowMajor) {
  const std::int8_t base[] = {1, 2, 3, 4, 5, 6};
  const std::int64_t strides[] = {1, 3};
  const auto got = widen_for_smdebug(TensorView(DType::kInt8, base, Shape{3, 2}, strides), nullptr);
  ASSERT_TRUE(got);
  const auto values = got->values<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(values.begin(), values.end()), (std::vector<std::int32_t>{1, 4, 2, 5, 3, 6}));
  const auto empty = widen_for_smdebug(TensorView(DType::kInt8, nullptr, Shape{0, 2}), nullptr);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->dtype(), DType::kInt32);
}

}  // namespace
}  // namespace tornasole::reduce
