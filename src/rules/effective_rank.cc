#include "rules/effective_rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "rules/singular_values.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

// Some of the rows, the same ones for every matrix of that height.
std::vector<std::size_t> sample(std::size_t rows, std::size_t wanted) {
  std::vector<std::size_t> all(rows);
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (rows <= wanted) return all;
  std::mt19937_64 random(rows);
  for (std::size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + random() % (rows - i)]);
  all.resize(wanted);
  std::ranges::sort(all);
  return all;
}

}  // namespace

std::vector<double> singular_values_of(const Tensor& matrix, std::size_t max_rows) {
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  const std::vector<double> all = to_doubles(matrix);
  std::vector<double> rows;
  const auto chosen = sample(static_cast<std::size_t>(matrix.shape()[0]), max_rows);
  for (const std::size_t row : chosen) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(row * columns);
    rows.insert(rows.end(), at, at + static_cast<std::ptrdiff_t>(columns));
  }
  return singular_values(rows, chosen.size(), columns);
}

double effective_rank(std::span<const double> singular_values) {
  const double sum = std::accumulate(singular_values.begin(), singular_values.end(), 0.0);
  if (sum == 0) return 0;
  double entropy = 0;
  for (const double value : singular_values) {
    const double share = value / sum;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

}  // namespace tornasole::rules
