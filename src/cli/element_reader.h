#pragma once

// The elements of an owned tensor one at a time, whatever their type: for printing, not for arithmetic in bulk.

#include <cstdint>
#include <string>

#include "tornasole/tensor.h"

namespace tornasole::cli {

enum class ElementKind : std::uint8_t { kReal, kComplex, kInteger, kBool, kText };

class ElementReader {
 public:
  // The tensor must outlive the reader.
  explicit ElementReader(const Tensor& tensor) noexcept;

  ElementKind kind() const noexcept { return kind_; }
  DType dtype() const noexcept { return tensor_.dtype(); }
  const Tensor& tensor() const noexcept { return tensor_; }
  // The elements that are there: never more than the shape has, never more than the bytes hold.
  std::int64_t count() const noexcept { return count_; }

  // The value as a double, exact but for 64-bit integers; the real part of a complex one; 0 for a text.
  double real(std::int64_t position) const noexcept;
  double imaginary(std::int64_t position) const noexcept;  // 0 unless complex
  std::string integer_text(std::int64_t position) const;   // of integers, exact
  const std::string& text(std::int64_t position) const noexcept;

 private:
  const Tensor& tensor_;
  ElementKind kind_;
  std::int64_t count_;
};

}  // namespace tornasole::cli
