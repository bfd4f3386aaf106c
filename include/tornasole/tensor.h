#pragma once

// TensorView: a tensor borrowed for one call. Tensor: the same, owned. Neither knows a framework.

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tornasole/export.h"

namespace tornasole {

// Element types. The numbers are the type codes on disk (docs/format.md 3.2).
enum class DType : std::uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5m2 = 24,
  kFloat8E4m3fn = 25,
};

// Every type that has a fixed element size, in the order of their codes.
inline constexpr std::array<DType, 17> kNumericDTypes = {
    DType::kFloat32,   DType::kFloat64, DType::kInt32,  DType::kUint8,      DType::kInt16,       DType::kInt8,
    DType::kComplex64, DType::kInt64,   DType::kBool,   DType::kBfloat16,   DType::kUint16,      DType::kComplex128,
    DType::kFloat16,   DType::kUint32,  DType::kUint64, DType::kFloat8E5m2, DType::kFloat8E4m3fn};

// Bytes of one element; 0 for strings and for a value that is no DType.
TORNASOLE_EXPORT std::size_t dtype_size(DType dtype) noexcept;
// NumPy's name: "float32", "bfloat16", "float8_e5m2", "string"; "unknown" for a value that is no DType.
TORNASOLE_EXPORT std::string_view dtype_name(DType dtype) noexcept;
// True for float16, bfloat16, float8, float32, float64 and the complex types.
TORNASOLE_EXPORT bool dtype_is_inexact(DType dtype) noexcept;

// The extents of a tensor, outermost first. Up to eight dimensions need no allocation.
class TORNASOLE_EXPORT Shape {
 public:
  Shape() noexcept = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  std::size_t rank() const noexcept { return rank_; }
  std::span<const std::int64_t> dims() const noexcept {
    return {rank_ <= kInline ? inline_.data() : heap_.data(), rank_};
  }
  std::int64_t operator[](std::size_t axis) const noexcept { return dims()[axis]; }
  // The product of the extents, 1 for zero dimensions; -1 if an extent is negative or the product overflows.
  std::int64_t element_count() const noexcept;
  bool operator==(const Shape& other) const noexcept;
  // "[2, 3]"; "[]" for zero dimensions.
  std::string to_string() const;

 private:
  static constexpr std::size_t kInline = 8;
  std::size_t rank_ = 0;
  std::array<std::int64_t, kInline> inline_{};  // the first rank_ are set
  std::vector<std::int64_t> heap_;              // all of them, when they do not fit
};

// The DType of a C++ element type.
template <typename T>
struct DTypeOf;
// clang-format off
template <> struct DTypeOf<float> { static constexpr DType value = DType::kFloat32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kFloat64; };
template <> struct DTypeOf<std::int8_t> { static constexpr DType value = DType::kInt8; };
template <> struct DTypeOf<std::int16_t> { static constexpr DType value = DType::kInt16; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::kInt32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::kInt64; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::kUint8; };
template <> struct DTypeOf<std::uint16_t> { static constexpr DType value = DType::kUint16; };
template <> struct DTypeOf<std::uint32_t> { static constexpr DType value = DType::kUint32; };
template <> struct DTypeOf<std::uint64_t> { static constexpr DType value = DType::kUint64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::kBool; };
template <> struct DTypeOf<std::complex<float>> { static constexpr DType value = DType::kComplex64; };
template <> struct DTypeOf<std::complex<double>> { static constexpr DType value = DType::kComplex128; };
// clang-format on

template <typename T>
concept Element = requires { DTypeOf<std::remove_const_t<T>>::value; };

// A tensor that belongs to somebody else: valid for the call it is passed to, and never kept.
class TORNASOLE_EXPORT TensorView {
 public:
  // Row-major elements without gaps.
  TensorView(DType dtype, const void* data, Shape shape) noexcept
      : data_(static_cast<const std::byte*>(data)), shape_(std::move(shape)), dtype_(dtype) {}
  // Strides are in bytes, one per dimension; zero and negative ones are allowed.
  TensorView(DType dtype, const void* data, Shape shape, std::span<const std::int64_t> strides_bytes);

  // One text per element, one dimension. The texts must be UTF-8.
  static TensorView strings(std::span<const std::string_view> texts);

  template <Element T>
  static TensorView of(std::span<const T> values, Shape shape) {
    return {DTypeOf<T>::value, values.data(), std::move(shape)};
  }
  template <Element T>
  static TensorView of(std::span<const T> values) {
    return {DTypeOf<T>::value, values.data(), Shape{static_cast<std::int64_t>(values.size())}};
  }
  template <Element T>
  static TensorView of(const std::vector<T>& values)
    requires(!std::is_same_v<T, bool>)
  {
    return of(std::span<const T>(values));
  }
  template <Element T>
  static TensorView of(const std::vector<T>& values, Shape shape)
    requires(!std::is_same_v<T, bool>)
  {
    return of(std::span<const T>(values), std::move(shape));
  }
  // One number, shape [1]. The number must outlive the call the view is passed to.
  template <Element T>
  static TensorView of(const T& value) {
    return {DTypeOf<T>::value, &value, Shape{1}};
  }

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  const std::byte* data() const noexcept { return data_; }
  // Empty when the elements are contiguous.
  std::span<const std::int64_t> strides_bytes() const noexcept { return strides_; }
  std::span<const std::string_view> texts() const noexcept { return texts_; }

  std::int64_t element_count() const noexcept { return shape_.element_count(); }
  bool is_contiguous() const noexcept;
  // Bytes of the elements laid out row-major without gaps; of all texts for strings. -1 if it overflows.
  std::int64_t size_bytes() const noexcept;
  // Copies the elements row-major without gaps; `out` holds at least size_bytes(). Not for strings.
  void copy_to(std::byte* out) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  Shape shape_;
  std::vector<std::int64_t> strides_;
  std::span<const std::string_view> texts_;
  DType dtype_ = DType::kFloat32;
};

// An owned tensor: row-major elements, or texts.
class TORNASOLE_EXPORT Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape, std::string bytes)
      : dtype_(dtype), shape_(std::move(shape)), bytes_(std::move(bytes)) {}
  explicit Tensor(std::vector<std::string> texts, Shape shape);
  // A row-major copy.
  explicit Tensor(const TensorView& view);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::string_view bytes() const noexcept { return bytes_; }
  std::span<const std::string> texts() const noexcept { return texts_; }
  std::int64_t element_count() const noexcept { return shape_.element_count(); }
  // The elements as T, or an empty span when T is not their type.
  template <Element T>
  std::span<const T> values() const noexcept {
    if (DTypeOf<T>::value != dtype_) return {};
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  bool operator==(const Tensor& other) const noexcept = default;

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  std::string bytes_;
  std::vector<std::string> texts_;
};

// How save and tap see a value of type T: a specialisation has `static TensorView view(const T&)`.
// Adapters specialise it for their framework's tensor.
template <typename T>
struct ViewOf;

template <>
struct ViewOf<TensorView> {
  static const TensorView& view(const TensorView& value) noexcept { return value; }
};
template <Element T>
struct ViewOf<T> {
  static TensorView view(const T& value) noexcept { return TensorView::of(value); }
};
template <Element T>
struct ViewOf<std::vector<T>> {
  static TensorView view(const std::vector<T>& value) { return TensorView::of(value); }
};
template <Element T>
struct ViewOf<std::span<T>> {
  static TensorView view(const std::span<T>& value) {
    return TensorView::of(std::span<const std::remove_const_t<T>>(value));
  }
};

template <typename T>
concept Viewable = requires(const T& value) { ViewOf<T>::view(value); };

}  // namespace tornasole
