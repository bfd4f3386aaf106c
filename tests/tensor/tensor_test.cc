#include "tornasole/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tornasole/reduction.h"

namespace tornasole {
namespace {

TEST(Shape, CountsElementsAndNoticesOverflow) {
  EXPECT_EQ(Shape{}.element_count(), 1);
  EXPECT_EQ((Shape{2, 3}).element_count(), 6);
  EXPECT_EQ((Shape{2, 0, 3}).element_count(), 0);
  EXPECT_EQ((Shape{2, -1}).element_count(), -1);
  EXPECT_EQ((Shape{INT64_MAX, 2}).element_count(), -1);
  EXPECT_EQ((Shape{INT64_MAX, 2, 0}).element_count(), 0);
  const std::vector<std::int64_t> many(20, 1);
  EXPECT_EQ(Shape(many).rank(), 20U);
  EXPECT_EQ(Shape(many).element_count(), 1);
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2, 3]");
}

TEST(TensorView, CopiesAnyStridesRowMajor) {
  std::vector<std::int32_t> base(24);
  std::iota(base.begin(), base.end(), 0);
  struct Case {
    const char* what;
    int offset;
    Shape shape;
    std::vector<std::int64_t> strides;
    std::vector<std::int32_t> expected;
  };
  const Case cases[] = {
      {"dense", 0, {2, 3}, {12, 4}, {0, 1, 2, 3, 4, 5}},
      {"transposed", 0, {3, 2}, {4, 12}, {0, 3, 1, 4, 2, 5}},
      {"every second column", 0, {2, 2}, {16, 8}, {0, 2, 4, 6}},
      {"reversed", 5, {6}, {-4}, {5, 4, 3, 2, 1, 0}},
      {"broadcast", 7, {2, 3}, {0, 0}, {7, 7, 7, 7, 7, 7}},
      {"three axes, dense last", 0, {2, 2, 2}, {48, 16, 4}, {0, 1, 4, 5, 12, 13, 16, 17}},
      {"zero dimensions", 3, {}, {}, {3}},
  };
  for (const Case& c : cases) {
    const Tensor copy(TensorView(DType::kInt32, base.data() + c.offset, c.shape, c.strides));
    const auto values = copy.values<std::int32_t>();
    EXPECT_EQ(std::vector<std::int32_t>(values.begin(), values.end()), c.expected) << c.what;
  }
  EXPECT_EQ(Tensor(TensorView(DType::kInt32, base.data(), Shape{0, 3}, std::vector<std::int64_t>{12, 4})).bytes(), "");
}

TEST(DType, EveryNumericTypeHasASizeAndAName) {
  for (const DType dtype : kNumericDTypes) {
    EXPECT_GT(dtype_size(dtype), 0U);
    EXPECT_NE(dtype_name(dtype), "unknown");
  }
  EXPECT_EQ(dtype_size(DType::kString), 0U);
  EXPECT_EQ(dtype_name(static_cast<DType>(99)), "unknown");
}

TEST(Reduction, NamesAreReadInEverySpelling) {
  for (const ReductionKind kind : kAllReductionKinds) {
    for (const bool of_absolute : {false, true}) {
      const Reduction reduction{kind, of_absolute};
      EXPECT_EQ(parse_reduction(reduction_name(reduction)), reduction);
      EXPECT_EQ(parse_reduction(reduction_config_text(reduction)), reduction);
    }
  }
  EXPECT_EQ(reduction_config_text({ReductionKind::kL2, true}), "abs_l2_norm");
  for (const char* bad : {"", "abs_", "norm", "min_norm", "l3", "abs_abs_min", "Min"}) {
    EXPECT_FALSE(parse_reduction(bad)) << bad;
  }
}

}  // namespace
}  // namespace tornasole
