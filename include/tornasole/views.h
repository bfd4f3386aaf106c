#pragma once

// What programs keep their numbers in, as tensors that a hook can save: step.save("weights", matrix).
//
//   of the standard library   numbers, std::vector, std::span (tensor.h), std::array
//   of Eigen                  Matrix, Array, Map, Ref, Block, with whatever strides and storage order
//   mdspan                    std::mdspan and those that look like it, with a layout that has strides
//   DLPack                    DLTensor, by `view`, which can fail
//   anything else             view(data, shape) and view(data, shape, strides)
//
// No header of another library is needed here: types are known by what they offer. A view borrows: what it was made of
// must outlive the call it is passed to.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole {

// ---- any memory

// Row-major elements without gaps: view(pointer, {2, 3}).
template <Element T>
TensorView view(const T* data, Shape shape) noexcept {
  return {DTypeOf<T>::value, data, std::move(shape)};
}
// Strides count elements, one per dimension, as most libraries have them; zero and negative ones are allowed. kInvalid
// if there are more or fewer strides than dimensions.
inline Result<TensorView> view(const void* data, Shape shape, std::span<const std::int64_t> strides, DType dtype) {
  if (strides.size() != shape.rank()) {
    return Error{ErrorCode::kInvalid, std::to_string(strides.size()) + " strides were given for the shape " +
                                          shape.to_string() + "; allowed: one for each dimension"};
  }
  std::vector<std::int64_t> bytes(strides.begin(), strides.end());
  for (std::int64_t& stride : bytes) stride *= static_cast<std::int64_t>(dtype_size(dtype));
  return TensorView(dtype, data, std::move(shape), bytes);
}
template <Element T>
Result<TensorView> view(const T* data, Shape shape, std::span<const std::int64_t> strides) {
  return view(data, std::move(shape), strides, DTypeOf<T>::value);
}
// What save makes of a value, for whoever wants to look at it: view(matrix).
template <Viewable T>
auto view(const T& value) {
  return ViewOf<T>::view(value);
}

template <Element T, std::size_t N>
struct ViewOf<std::array<T, N>> {
  static TensorView view(const std::array<T, N>& value) { return TensorView::of(std::span<const T>(value)); }
};

// ---- Eigen

// Whatever has its elements in memory; an expression has none until it is evaluated: step.save("sum", (a + b).eval()).
template <typename T>
concept EigenDense = requires(const T& matrix) {
  typename T::Scalar;
  typename T::PlainObject;
  { matrix.data() } -> std::convertible_to<const typename T::Scalar*>;
  { matrix.rows() } -> std::convertible_to<std::int64_t>;
  { matrix.cols() } -> std::convertible_to<std::int64_t>;
  { matrix.rowStride() } -> std::convertible_to<std::int64_t>;
  { matrix.colStride() } -> std::convertible_to<std::int64_t>;
} && Element<typename T::Scalar>;

// A vector has one dimension, a matrix two, outermost rows: what NumPy makes of the same.
template <EigenDense T>
struct ViewOf<T> {
  static TensorView view(const T& matrix) {
    using Scalar = typename T::Scalar;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Scalar));
    const auto rows = static_cast<std::int64_t>(matrix.rows()), cols = static_cast<std::int64_t>(matrix.cols());
    const std::array<std::int64_t, 2> strides = {static_cast<std::int64_t>(matrix.rowStride()) * kBytes,
                                                 static_cast<std::int64_t>(matrix.colStride()) * kBytes};
    const void* data = matrix.data();
    if constexpr (T::IsVectorAtCompileTime) {
      const bool is_column = T::ColsAtCompileTime == 1;
      return {DTypeOf<Scalar>::value, data, Shape{is_column ? rows : cols},
              std::span(strides).subspan(is_column ? 0 : 1, 1)};
    } else {
      return {DTypeOf<Scalar>::value, data, Shape{rows, cols}, strides};
    }
  }
};

// ---- mdspan

template <typename T>
concept Mdspan = requires(const T& values) {
  typename T::element_type;
  typename T::extents_type;
  { T::rank() } -> std::convertible_to<std::size_t>;
  { values.data_handle() } -> std::convertible_to<const typename T::element_type*>;
  { values.extent(0) } -> std::convertible_to<std::int64_t>;
  { values.stride(0) } -> std::convertible_to<std::int64_t>;
} && Element<typename T::element_type>;

template <Mdspan T>
struct ViewOf<T> {
  static TensorView view(const T& values) {
    using Value = std::remove_const_t<typename T::element_type>;
    std::array<std::int64_t, T::rank() == 0 ? 1 : T::rank()> extents{}, strides{};
    for (std::size_t axis = 0; axis < T::rank(); ++axis) {
      extents[axis] = static_cast<std::int64_t>(values.extent(axis));
      strides[axis] = static_cast<std::int64_t>(values.stride(axis)) * static_cast<std::int64_t>(sizeof(Value));
    }
    const Value* data = values.data_handle();
    return {DTypeOf<Value>::value, data, Shape(std::span<const std::int64_t>(extents).first(T::rank())),
            std::span<const std::int64_t>(strides).first(T::rank())};
  }
};

// ---- DLPack

// DLTensor of any version of DLPack; of a DLManagedTensor take dl_tensor.
template <typename T>
concept DlpackTensor = requires(const T& tensor) {
  { tensor.data } -> std::convertible_to<const void*>;
  { tensor.device.device_type } -> std::convertible_to<int>;
  { tensor.ndim } -> std::convertible_to<std::int32_t>;
  { tensor.dtype.code } -> std::convertible_to<int>;
  { tensor.dtype.bits } -> std::convertible_to<int>;
  { tensor.dtype.lanes } -> std::convertible_to<int>;
  { tensor.shape } -> std::convertible_to<const std::int64_t*>;
  { tensor.strides } -> std::convertible_to<const std::int64_t*>;
  { tensor.byte_offset } -> std::convertible_to<std::uint64_t>;
};

// The element type of a DLDataType: its code, bits and lanes. kUnsupported for what has no type here.
inline Result<DType> dlpack_dtype(int code, int bits, int lanes) {
  struct Row {
    int code, bits;
    DType dtype;
  };
  static constexpr Row kRows[] = {
      {0, 8, DType::kInt8},          {0, 16, DType::kInt16},       {0, 32, DType::kInt32},
      {0, 64, DType::kInt64},        {1, 8, DType::kUint8},        {1, 16, DType::kUint16},
      {1, 32, DType::kUint32},       {1, 64, DType::kUint64},      {2, 16, DType::kFloat16},
      {2, 32, DType::kFloat32},      {2, 64, DType::kFloat64},     {4, 16, DType::kBfloat16},
      {5, 64, DType::kComplex64},    {5, 128, DType::kComplex128}, {6, 8, DType::kBool},
      {10, 8, DType::kFloat8E4m3fn}, {12, 8, DType::kFloat8E5m2},
  };
  for (const Row& row : kRows) {
    if (row.code == code && row.bits == bits && lanes == 1) return row.dtype;
  }
  return Error{ErrorCode::kUnsupported,
               "a DLPack tensor with elements of code " + std::to_string(code) + ", " + std::to_string(bits) +
                   " bits, " + std::to_string(lanes) +
                   " lanes; allowed: integers, floats, complex numbers and booleans of one lane"};
}

// kUnsupported for a tensor of another device than the processor, or of elements that have no type here.
template <DlpackTensor T>
Result<TensorView> view(const T& tensor) {
  constexpr int kCpu = 1, kCudaHost = 3, kRocmHost = 11, kCudaManaged = 13;
  const auto device = static_cast<int>(tensor.device.device_type);
  if (device != kCpu && device != kCudaHost && device != kRocmHost && device != kCudaManaged) {
    return Error{ErrorCode::kUnsupported, "a DLPack tensor of the device type " + std::to_string(device) +
                                              "; allowed: memory of the processor, copy it there first"};
  }
  const Result<DType> dtype = dlpack_dtype(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  if (!dtype) return dtype.error();
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return Error{ErrorCode::kInvalid,
                 "a DLPack tensor of " + std::to_string(tensor.ndim) + " dimensions without a shape"};
  }
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  Shape shape(std::span<const std::int64_t>(tensor.shape, rank));
  const void* data = tensor.data == nullptr ? nullptr : static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  if (tensor.strides == nullptr) return TensorView(*dtype, data, std::move(shape));
  return view(data, std::move(shape), std::span<const std::int64_t>(tensor.strides, rank), *dtype);
}

}  // namespace tornasole
