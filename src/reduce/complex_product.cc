// The product of complex numbers, scaled like that of real ones.

#include <algorithm>
#include <cmath>
#include <complex>

#include "reduce/blocks.h"
#include "reduce/kernels.h"

namespace tornasole::reduce {

ComplexProduct product_of_complex(const TensorView& tensor) {
  ComplexProduct product;
  bool is_first = true;
  const auto multiply = [&](double real, double imaginary) {
    // Scaled like the real product. Infinite and NaN parts are left alone and follow the arithmetic.
    const double largest = std::max(std::fabs(real), std::fabs(imaginary));
    int exponent = 0;
    if (largest > 0 && std::isfinite(largest)) exponent = std::ilogb(largest);
    real = std::scalbn(real, -exponent);
    imaginary = std::scalbn(imaginary, -exponent);
    product.exponent += exponent;
    if (is_first) {
      product.real = real;
      product.imaginary = imaginary;
      is_first = false;
      return;
    }
    const double next = product.real * real - product.imaginary * imaginary;
    product.imaginary = product.real * imaginary + product.imaginary * real;
    product.real = next;
    const double size = std::max(std::fabs(product.real), std::fabs(product.imaginary));
    if (size > 0 && std::isfinite(size)) {
      const int shift = std::ilogb(size);
      product.real = std::scalbn(product.real, -shift);
      product.imaginary = std::scalbn(product.imaginary, -shift);
      product.exponent += shift;
    }
  };
  const auto take = [&]<typename Raw>(const Raw* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      multiply(static_cast<double>(x[i].real()), static_cast<double>(x[i].imag()));
    }
    return true;
  };
  if (tensor.dtype() == DType::kComplex64) {
    for_each_block<std::complex<float>>(tensor, ElementOrder::kRowMajor, take);
  } else {
    for_each_block<std::complex<double>>(tensor, ElementOrder::kRowMajor, take);
  }
  return product;
}

}  // namespace tornasole::reduce
