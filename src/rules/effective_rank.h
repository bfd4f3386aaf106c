#pragma once

// How many of its directions a matrix uses. Of a tall one some rows stand for all, always the same ones.

#include <cstddef>
#include <span>
#include <vector>

#include "tornasole/tensor.h"

namespace tornasole::rules {

// Of a tensor of two dimensions, largest first; empty if an element is not finite.
std::vector<double> singular_values_of(const Tensor& matrix, std::size_t max_rows);
// exp of the entropy of the singular values' shares: 1 if one direction is all, their number if all are alike.
double effective_rank(std::span<const double> singular_values);

}  // namespace tornasole::rules
