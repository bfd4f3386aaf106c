#pragma once

// Mean and squared distances of one block, from its sums where that loses nothing, else by a second loop over it.

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "reduce/moments.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {

// One fixed order, whatever computed the lanes.
inline double total_of(const Lanes& lanes) noexcept {
  static_assert(kLanes == 8);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

struct BlockMean {
  double sum;      // of the elements, or of their magnitudes
  double squares;  // of all
  bool of_absolute;
};

template <typename T>
void add_block(Moments& moments, const VectorKernels& kernels, const T* x, std::size_t count,
               const BlockMean& block) noexcept {
  // How many times larger than the spread the squares may be: what the subtraction loses stays below the tolerance of a
  // float, or of a double.
  constexpr bool kAreFloats = std::is_same_v<T, float>;
  constexpr double kLossless = kAreFloats ? 65536 : 4;
  const auto n = static_cast<double>(count);
  const double mean = block.sum / n;
  const double spread = block.squares - block.sum * mean;
  if (spread * kLossless >= block.squares && std::isfinite(block.squares)) {
    moments.add(n, mean, 0, spread);
    return;
  }
  BlockDeviations found;
  if constexpr (kAreFloats) {
    kernels.deviate_floats(x, count, mean, block.of_absolute, &found);
  } else {
    kernels.deviate_doubles(x, count, mean, block.of_absolute, &found);
  }
  const double sum = total_of(found.sum);
  const double rest = sum / n;
  moments.add(n, mean, rest, std::max(0.0, total_of(found.squares) - sum * rest));
}

}  // namespace tornasole::reduce
