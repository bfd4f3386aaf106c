#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tornasole::rules {

// The singular values of a row-major matrix, largest first: min(rows, columns) of them. Those below about 1e-8 of the
// largest come out as zero or as noise of that size. Empty if an element is not finite.
std::vector<double> singular_values(std::span<const double> matrix, std::size_t rows, std::size_t columns);

}  // namespace tornasole::rules
