#include "tools/elements.h"

#include <fmt/format.h>

#include <cmath>

namespace tornasole::tools {
namespace {

template <typename T>
std::string text_of(T number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return fmt::format("{}", number);
}

}  // namespace

std::string number_text(double number) { return text_of(number); }
std::string number_text(float number) { return text_of(number); }

TensorView view_of(const Tensor& tensor, std::vector<std::string_view>* texts) {
  if (tensor.dtype() != DType::kString) return {tensor.dtype(), tensor.bytes().data(), tensor.shape()};
  texts->assign(tensor.texts().begin(), tensor.texts().end());
  return TensorView::strings(*texts);
}

std::string element_text(const Tensor& tensor, std::int64_t position) {
  if (tensor.dtype() == DType::kString) return tensor.texts()[static_cast<std::size_t>(position)];
  const auto* data = reinterpret_cast<const std::byte*>(tensor.bytes().data());
  std::string text;
  visit_elements(tensor.dtype(), [&](auto load) {
    using Value = typename decltype(load)::Value;
    const Value value = load(data, position);
    if constexpr (kIsComplex<Value>) {
      const std::string imaginary = text_of(value.imag());
      text = fmt::format("{}{}{}i", text_of(value.real()), imaginary.starts_with('-') ? "" : "+", imaginary);
    } else if constexpr (std::is_floating_point_v<Value>) {
      text = text_of(value);
    } else {
      text = fmt::format("{}", value);
    }
  });
  return text;
}

std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t position) {
  std::vector<std::int64_t> index(shape.rank());
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    const std::int64_t extent = shape[axis];
    if (extent <= 0) continue;
    index[axis] = position % extent;
    position /= extent;
  }
  return index;
}

}  // namespace tornasole::tools
