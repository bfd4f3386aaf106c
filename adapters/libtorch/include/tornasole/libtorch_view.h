#pragma once

// Tensors of libtorch as a hook can read them: dense, resolved, in the memory of the processor. With this header
// step.save("loss", loss) and x = step.tap("relu1", torch::relu(x)) take them as they are.

#include <ATen/ATen.h>
#include <torch/version.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tornasole/tensor.h"

namespace tornasole::libtorch {

// The element type here of one of libtorch; nothing for those of quantised and other special tensors.
inline std::optional<DType> dtype_of(at::ScalarType type) noexcept {
  switch (type) {
    case at::kFloat: return DType::kFloat32;
    case at::kDouble: return DType::kFloat64;
    case at::kHalf: return DType::kFloat16;
    case at::kBFloat16: return DType::kBfloat16;
    case at::kByte: return DType::kUint8;
    case at::kChar: return DType::kInt8;
    case at::kShort: return DType::kInt16;
    case at::kInt: return DType::kInt32;
    case at::kLong: return DType::kInt64;
    case at::kBool: return DType::kBool;
    case at::kComplexFloat: return DType::kComplex64;
    case at::kComplexDouble: return DType::kComplex128;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    case at::kUInt16: return DType::kUint16;
    case at::kUInt32: return DType::kUint32;
    case at::kUInt64: return DType::kUint64;
    case at::kFloat8_e5m2: return DType::kFloat8E5m2;
    case at::kFloat8_e4m3fn: return DType::kFloat8E4m3fn;
#endif
    default: return std::nullopt;
  }
}

// Whether its elements can be read where they are.
inline bool is_readable(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
         !tensor.is_conj() && !tensor.is_neg() && !tensor.is_meta() && dtype_of(tensor.scalar_type()).has_value();
}

// The same values, readable; the tensor itself where it is. Changes nothing and records nothing for the backward pass.
// What throws is libtorch, for what cannot be copied.
inline at::Tensor to_host(const at::Tensor& tensor) {
  if (is_readable(tensor)) return tensor;
  const at::NoGradGuard no_gradient;
  at::Tensor host = tensor.detach();
  if (host.is_quantized()) host = host.dequantize();
  if (host.layout() != at::kStrided) host = host.to_dense();
  if (!host.device().is_cpu()) host = host.to(at::kCPU);
  return host.resolve_conj().resolve_neg();
}

// A view that keeps what it looks at.
class HeldView : public TensorView {
 public:
  // Of a readable tensor.
  explicit HeldView(at::Tensor tensor) : TensorView(view_of(tensor)), tensor_(std::move(tensor)) {}
  // Of a tensor that could not be read: a type that no hook knows, so that the loss is counted.
  HeldView() : TensorView(DType{0}, nullptr, Shape{1}) {}

 private:
  static TensorView view_of(const at::Tensor& tensor) {
    const DType dtype = *dtype_of(tensor.scalar_type());
    Shape shape(std::span<const std::int64_t>(tensor.sizes().data(), tensor.sizes().size()));
#if TORCH_VERSION_MAJOR >= 2
    const void* data = tensor.const_data_ptr();  // a lazy copy stays lazy
#else
    const void* data = tensor.data_ptr();
#endif
    if (tensor.is_contiguous()) return {dtype, data, std::move(shape)};
    std::vector<std::int64_t> strides(tensor.strides().begin(), tensor.strides().end());
    for (std::int64_t& stride : strides) stride *= static_cast<std::int64_t>(tensor.element_size());
    return {dtype, data, std::move(shape), strides};
  }
  at::Tensor tensor_;
};

// Never throws: this is called inside a training.
inline HeldView view(const at::Tensor& tensor) noexcept {
  try {
    if (is_readable(tensor)) return HeldView(tensor);
    if (!tensor.defined() || tensor.is_meta()) return {};
    at::Tensor host = to_host(tensor);
    return is_readable(host) ? HeldView(std::move(host)) : HeldView();
  } catch (...) {
    return {};
  }
}

}  // namespace tornasole::libtorch

namespace tornasole {

template <>
struct ViewOf<at::Tensor> {
  static libtorch::HeldView view(const at::Tensor& tensor) noexcept { return libtorch::view(tensor); }
};

}  // namespace tornasole
