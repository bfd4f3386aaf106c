#pragma once

// The loops that are worth writing for each instruction set: one table of functions per set, the best of them chosen
// once. All of them give the same bits: element i of a block belongs to lane i % kLanes whatever the width of the
// registers, lanes are added in one fixed order, and nothing is fused.
//
//   in:  a block of at most kBlockElements elements, contiguous, at any alignment
//   out: plain numbers about the block

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/accumulate.h"
#include "tornasole/tensor.h"

namespace tornasole::reduce {

struct BlockSums {
  double min, max, abs_min;  // of no use when an element is NaN
  Lanes sum, abs_sum, squares;
  Lanes dropped;  // what `sum` lost to rounding; only worked out for doubles
  std::size_t zeros;
};

// Distances from a centre.
struct BlockDeviations {
  Lanes sum, squares;
};

// Product of the magnitudes: mantissas in [1, 2) multiplied, biased exponents of doubles added. No element is zero or
// not finite.
struct BlockProduct {
  Lanes mantissa;
  std::array<std::uint64_t, kLanes> exponent;
  std::uint64_t sign;  // the top bit is the sign of the product
};

// A block beside the same block as it was before.
struct BlockPairSums {
  Lanes now, before, difference;  // of squares
  Lanes product;                  // of now times before
};

// Where the sums of neighbouring units are, one element of a block for each.
struct UnitSums {
  double* sum;
  double* squares;
  double* magnitudes;
};

struct VectorKernels {
  const char* name;
  void (*sum_floats)(const float* x, std::size_t count, BlockSums* out);  // the sums alone
  void (*summarize_floats)(const float* x, std::size_t count, BlockSums* out);
  void (*summarize_doubles)(const double* x, std::size_t count, BlockSums* out);
  void (*deviate_floats)(const float* x, std::size_t count, double centre, bool of_absolute, BlockDeviations* out);
  void (*deviate_doubles)(const double* x, std::size_t count, double centre, bool of_absolute, BlockDeviations* out);
  void (*multiply_floats)(const float* x, std::size_t count, BlockProduct* out);
  void (*widen_halves)(const std::uint16_t* x, std::size_t count, float* out);
  void (*widen_bfloat16s)(const std::uint16_t* x, std::size_t count, float* out);
  // Integers of a type, and bools as 0 and 1, as doubles; false if one does not fit a double without rounding.
  bool (*widen_integers)(DType dtype, const void* x, std::size_t count, double* out);
  void (*take_moduli)(const std::complex<float>* x, std::size_t count, double* out);
  // How many keys lie below `low`; those with low <= key <= high are appended to `out`, which has room for all.
  std::size_t (*partition_keys)(const std::uint32_t* bits, std::size_t count, std::uint32_t low, std::uint32_t high,
                                bool of_absolute, std::uint32_t* out, std::size_t* kept);
  void (*compare_floats)(const float* now, const float* before, std::size_t count, BlockPairSums* out);
  // Widens [min, max] to hold the block; false if an element is not finite.
  bool (*extend_range)(const float* x, std::size_t count, float* min, float* max);
  // (x - low) * scale, rounded down and at most `last`. Never negative, and the products fit an int32.
  void (*classify_floats)(const float* x, std::size_t count, float low, float scale, std::uint16_t last,
                          std::uint16_t* out);
  void (*add_to_units)(const float* x, std::size_t count, const UnitSums& units);
  // Adds one to the count of each unit whose element is greater than zero.
  void (*count_active_units)(const float* x, std::size_t count, std::uint32_t* units);
  std::size_t (*count_active)(const float* x, std::size_t count);
};

// What this processor runs fastest.
const VectorKernels& vector_kernels() noexcept;
// Everything this processor can run, for tests that compare them.
std::span<const VectorKernels* const> supported_vector_kernels() noexcept;
// Makes one of them the chosen one until the next call; for tests.
void use_vector_kernels(const VectorKernels& kernels) noexcept;

}  // namespace tornasole::reduce
