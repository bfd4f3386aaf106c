#include "tornasole/views.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#if __has_include(<eigen3/Eigen/Dense>)
#include <eigen3/Eigen/Dense>
#define TORNASOLE_TEST_HAS_EIGEN 1
#endif

namespace tornasole {
namespace {

template <typename T>
std::vector<T> values_of(const TensorView& view) {
  std::vector<T> values(static_cast<std::size_t>(view.element_count()));
  view.copy_to(reinterpret_cast<std::byte*>(values.data()));
  return values;
}

const std::vector<float> kNumbers = {0, 1, 2, 3, 4, 5};

TEST(Views, MemoryIsSeenWithShapeAndStrides) {
  struct Case {
    const char* what;
    Shape shape;
    std::vector<std::int64_t> strides;
    std::ptrdiff_t first;
    std::vector<float> values;
  };
  const Case kCases[] = {
      {"rows one after the other", {2, 3}, {3, 1}, 0, {0, 1, 2, 3, 4, 5}},
      {"columns one after the other", {2, 3}, {1, 2}, 0, {0, 2, 4, 1, 3, 5}},
      {"every second element", {3}, {2}, 0, {0, 2, 4}},
      {"backwards", {6}, {-1}, 5, {5, 4, 3, 2, 1, 0}},
      {"one element repeated", {2, 2}, {0, 0}, 3, {3, 3, 3, 3}},
      {"a single element", {}, {}, 4, {4}},
  };
  for (const Case& c : kCases) {
    const auto seen = view(kNumbers.data() + c.first, c.shape, c.strides);
    ASSERT_TRUE(seen.ok()) << c.what;
    EXPECT_EQ(seen->shape(), c.shape) << c.what;
    EXPECT_EQ(values_of<float>(*seen), c.values) << c.what;
  }
  EXPECT_EQ(values_of<float>(view(kNumbers.data(), {3, 2})), kNumbers);
  EXPECT_EQ(view(kNumbers.data(), {3, 2}).shape(), (Shape{3, 2}));
}

TEST(Views, StridesThatDoNotFitTheShapeAreRefusedByName) {
  const std::array<std::int64_t, 1> strides = {1};
  const auto seen = view(kNumbers.data(), {2, 3}, strides);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(seen.error().message, "1 strides were given for the shape [2, 3]; allowed: one for each dimension");
}

TEST(Views, StandardContainersAreTensors) {
  const std::array<std::int64_t, 3> array = {7, 8, 9};
  EXPECT_EQ(view(array).dtype(), DType::kInt64);
  EXPECT_EQ(values_of<std::int64_t>(view(array)), (std::vector<std::int64_t>{7, 8, 9}));
  EXPECT_EQ(values_of<float>(view(std::span<const float>(kNumbers).subspan(4))), (std::vector<float>{4, 5}));
  const double number = 2.5;
  EXPECT_EQ(values_of<double>(view(number)), std::vector<double>{2.5});
}

// What std::mdspan of C++23 offers, with the strides of any layout.
template <typename T, std::size_t Rank>
struct TableSpan {
  using element_type = T;
  using extents_type = std::array<std::size_t, Rank>;
  static constexpr std::size_t rank() { return Rank; }
  T* data_handle() const { return data; }
  std::size_t extent(std::size_t axis) const { return extents[axis]; }
  std::size_t stride(std::size_t axis) const { return strides[axis]; }
  T* data;
  extents_type extents, strides;
};

TEST(Views, AnMdspanIsATensorWhateverItsLayout) {
  const TableSpan<const float, 2> rows{kNumbers.data(), {2, 3}, {3, 1}};
  const TableSpan<const float, 2> columns{kNumbers.data(), {2, 3}, {1, 2}};
  EXPECT_EQ(view(rows).shape(), (Shape{2, 3}));
  EXPECT_TRUE(view(rows).is_contiguous());
  EXPECT_EQ(values_of<float>(view(rows)), kNumbers);
  EXPECT_EQ(values_of<float>(view(columns)), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  const TableSpan<const float, 0> number{kNumbers.data() + 2, {}, {}};
  EXPECT_EQ(view(number).shape(), Shape{});
  EXPECT_EQ(values_of<float>(view(number)), std::vector<float>{2});
}

#ifdef TORNASOLE_TEST_HAS_EIGEN
TEST(Views, EigenMatricesAreTensorsInTheOrderOfTheirRows) {
  Eigen::MatrixXf by_columns(2, 3);
  by_columns << 0, 1, 2, 3, 4, 5;
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> by_rows = by_columns.cast<double>();
  EXPECT_EQ(view(by_columns).shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of<float>(view(by_columns)), kNumbers);
  EXPECT_EQ(view(by_rows).dtype(), DType::kFloat64);
  EXPECT_EQ(values_of<double>(view(by_rows)), (std::vector<double>{0, 1, 2, 3, 4, 5}));

  const Eigen::Vector3i column(7, 8, 9);
  const Eigen::RowVectorXf row = by_columns.row(1);
  EXPECT_EQ(view(column).shape(), Shape{3});
  EXPECT_EQ(values_of<std::int32_t>(view(column)), (std::vector<std::int32_t>{7, 8, 9}));
  EXPECT_EQ(view(row).shape(), Shape{3});
  EXPECT_EQ(values_of<float>(view(row)), (std::vector<float>{3, 4, 5}));

  const auto block = by_columns.block(0, 1, 2, 2);
  EXPECT_EQ(values_of<float>(view(block)), (std::vector<float>{1, 2, 4, 5}));
  const auto row_of_columns = by_columns.row(0);
  EXPECT_EQ(values_of<float>(view(row_of_columns)), (std::vector<float>{0, 1, 2}));
  const Eigen::Map<const Eigen::ArrayXf, 0, Eigen::InnerStride<2>> every_second(kNumbers.data(), 3);
  EXPECT_EQ(values_of<float>(view(every_second)), (std::vector<float>{0, 2, 4}));
  EXPECT_FALSE(Viewable<decltype(by_columns + by_columns)>);  // nothing in memory yet
}
#endif

// The struct of dlpack.h, which a framework brings along.
struct DlTensor {
  void* data;
  struct {
    int device_type;
    std::int32_t device_id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

TEST(Views, ADlpackTensorIsBorrowed) {
  std::vector<float> numbers = kNumbers;
  std::array<std::int64_t, 2> shape = {2, 2}, strides = {1, 2};
  DlTensor tensor{numbers.data(), {1, 0}, 2, {2, 32, 1}, shape.data(), nullptr, 4};
  EXPECT_EQ(values_of<float>(*view(tensor)), (std::vector<float>{1, 2, 3, 4}));
  tensor.strides = strides.data();
  EXPECT_EQ(values_of<float>(*view(tensor)), (std::vector<float>{1, 3, 2, 4}));
  tensor.ndim = 0;
  EXPECT_EQ(view(tensor)->shape(), Shape{});
}

TEST(Views, EveryElementTypeOfDlpackThatWeHaveKeepsItsSize) {
  for (int code = 0; code < 20; ++code) {
    for (const int bits : {4, 8, 16, 32, 64, 128}) {
      const auto dtype = dlpack_dtype(code, bits, 1);
      if (!dtype) continue;
      EXPECT_EQ(dtype_size(*dtype) * 8, static_cast<std::size_t>(bits)) << code;
    }
  }
  EXPECT_EQ(*dlpack_dtype(4, 16, 1), DType::kBfloat16);
}

TEST(Views, ADlpackTensorThatCannotBeReadIsRefusedWithTheReason) {
  struct Case {
    const char* what;
    DlTensor tensor;
    const char* message;
  };
  std::array<std::int64_t, 1> shape = {1};
  const Case kCases[] = {
      {"memory of a graphics card", {nullptr, {2, 0}, 1, {2, 32, 1}, shape.data(), nullptr, 0}, "device type 2"},
      {"several lanes", {nullptr, {1, 0}, 1, {2, 32, 4}, shape.data(), nullptr, 0}, "4 lanes"},
      {"an opaque handle", {nullptr, {1, 0}, 1, {3, 64, 1}, shape.data(), nullptr, 0}, "code 3"},
      {"no shape", {nullptr, {1, 0}, 1, {2, 32, 1}, nullptr, nullptr, 0}, "without a shape"},
  };
  for (const Case& c : kCases) {
    const auto seen = view(c.tensor);
    ASSERT_FALSE(seen.ok()) << c.what;
    EXPECT_NE(seen.error().message.find(c.message), std::string::npos) << c.what << ": " << seen.error().message;
  }
}

}  // namespace
}  // namespace tornasole
