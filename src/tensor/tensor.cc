#include "tornasole/tensor.h"

#include <algorithm>
#include <cstring>

namespace tornasole {

std::size_t dtype_size(DType dtype) noexcept {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kBool:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn: return 1;
    case DType::kInt16:
    case DType::kUint16:
    case DType::kFloat16:
    case DType::kBfloat16: return 2;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32: return 4;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUint64:
    case DType::kComplex64: return 8;
    case DType::kComplex128: return 16;
    case DType::kString: return 0;
  }
  return 0;
}

std::string_view dtype_name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kInt32: return "int32";
    case DType::kUint8: return "uint8";
    case DType::kInt16: return "int16";
    case DType::kInt8: return "int8";
    case DType::kString: return "string";
    case DType::kComplex64: return "complex64";
    case DType::kInt64: return "int64";
    case DType::kBool: return "bool";
    case DType::kBfloat16: return "bfloat16";
    case DType::kUint16: return "uint16";
    case DType::kComplex128: return "complex128";
    case DType::kFloat16: return "float16";
    case DType::kUint32: return "uint32";
    case DType::kUint64: return "uint64";
    case DType::kFloat8E5m2: return "float8_e5m2";
    case DType::kFloat8E4m3fn: return "float8_e4m3fn";
  }
  return "unknown";
}

bool dtype_is_inexact(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128: return true;
    default: return false;
  }
}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  if (rank_ <= kInline) {
    std::copy(dims.begin(), dims.end(), inline_.begin());
  } else {
    heap_.assign(dims.begin(), dims.end());
  }
}

std::int64_t Shape::element_count() const noexcept {
  std::int64_t count = 1;
  bool has_zero = false;
  bool overflows = false;
  for (const std::int64_t extent : dims()) {
    if (extent < 0) return -1;
    if (extent == 0) has_zero = true;
    overflows = overflows || __builtin_mul_overflow(count, extent, &count);
  }
  if (has_zero) return 0;
  return overflows ? -1 : count;
}

bool Shape::operator==(const Shape& other) const noexcept { return std::ranges::equal(dims(), other.dims()); }

std::string Shape::to_string() const {
  std::string text = "[";
  for (const std::int64_t extent : dims()) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

TensorView::TensorView(DType dtype, const void* data, Shape shape, std::span<const std::int64_t> strides_bytes)
    : data_(static_cast<const std::byte*>(data)),
      shape_(std::move(shape)),
      strides_(strides_bytes.begin(), strides_bytes.end()),
      dtype_(dtype) {
  // Dense strides are dropped, so that everybody takes the fast path for them.
  if (is_contiguous()) strides_.clear();
}

TensorView TensorView::strings(std::span<const std::string_view> texts) {
  TensorView view(DType::kString, nullptr, Shape{static_cast<std::int64_t>(texts.size())});
  view.texts_ = texts;
  return view;
}

bool TensorView::is_contiguous() const noexcept {
  if (strides_.empty()) return true;
  auto expected = static_cast<std::int64_t>(dtype_size(dtype_));
  for (std::size_t axis = shape_.rank(); axis-- > 0;) {
    if (shape_[axis] == 0) return true;
    if (shape_[axis] != 1 && strides_[axis] != expected) return false;
    expected *= shape_[axis];
  }
  return true;
}

std::int64_t TensorView::size_bytes() const noexcept {
  std::int64_t total = 0;
  if (dtype_ == DType::kString) {
    for (const std::string_view text : texts_) total += static_cast<std::int64_t>(text.size());
    return total;
  }
  const std::int64_t count = element_count();
  if (count < 0 || __builtin_mul_overflow(count, static_cast<std::int64_t>(dtype_size(dtype_)), &total)) return -1;
  return total;
}

void TensorView::copy_to(std::byte* out) const noexcept {
  const std::int64_t total = size_bytes();
  if (total <= 0) return;
  if (strides_.empty()) {
    std::memcpy(out, data_, static_cast<std::size_t>(total));
    return;
  }
  const std::size_t item = dtype_size(dtype_);
  const std::size_t rank = shape_.rank();
  // Odometer over all axes but the last; the last is an inner loop.
  const std::int64_t inner = shape_[rank - 1];
  const std::int64_t inner_stride = strides_[rank - 1];
  const bool inner_is_dense = inner_stride == static_cast<std::int64_t>(item);
  const std::int64_t rows = element_count() / inner;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::byte* from = data_;
    std::int64_t rest = row;
    for (std::size_t axis = rank - 1; axis-- > 0;) {
      from += (rest % shape_[axis]) * strides_[axis];
      rest /= shape_[axis];
    }
    if (inner_is_dense) {
      std::memcpy(out, from, item * static_cast<std::size_t>(inner));
      out += item * static_cast<std::size_t>(inner);
      continue;
    }
    for (std::int64_t i = 0; i < inner; ++i, from += inner_stride, out += item) std::memcpy(out, from, item);
  }
}

Tensor::Tensor(std::vector<std::string> texts, Shape shape)
    : dtype_(DType::kString), shape_(std::move(shape)), texts_(std::move(texts)) {}

Tensor::Tensor(const TensorView& view) : dtype_(view.dtype()), shape_(view.shape()) {
  if (dtype_ == DType::kString) {
    texts_.assign(view.texts().begin(), view.texts().end());
    return;
  }
  bytes_.resize(static_cast<std::size_t>(std::max<std::int64_t>(view.size_bytes(), 0)));
  view.copy_to(reinterpret_cast<std::byte*>(bytes_.data()));
}

}  // namespace tornasole
