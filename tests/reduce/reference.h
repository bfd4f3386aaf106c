#pragma once

// The slow oracle of the reductions: every element decoded on its own, in long double or in 128-bit integers.

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tornasole/reduction.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

__extension__ typedef __int128 Wide;

struct Expected {
  DType dtype = DType::kFloat64;
  std::complex<long double> value = {};  // already rounded to what the dtype can hold
  Wide exact = 0;                        // of integer results
  long double slack = 0;                 // what the work type may be off besides the relative tolerance
};

// Nothing if the reduction is not defined for the type or size. The tensor is dense.
std::optional<Expected> expected(const Tensor& tensor, Reduction reduction);

// Empty if the value is the expected one within the tolerance of its type, else what is wrong.
std::string difference(const Tensor& got, const Expected& want);

// One element as a number, by the definition of its type: sign * mantissa * 2^exponent.
long double decode_float(DType dtype, std::uint64_t bits);

bool is_integer(DType dtype);
bool is_complex(DType dtype);

}  // namespace tornasole::reduce
