// Singular values as the roots of the eigenvalues of the smaller product of the matrix with itself:
//
//   1. scale by the largest magnitude, so that products neither overflow nor vanish
//   2. Gram matrix of the rows or the columns, whichever are fewer
//   3. Householder reflections -> tridiagonal
//   4. QL iterations with implicit shifts -> eigenvalues

#include "rules/singular_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tornasole::rules {
namespace {

class SquareMatrix {
 public:
  explicit SquareMatrix(std::size_t size) : size_(size), elements_(size * size, 0.0) {}
  std::size_t size() const noexcept { return size_; }
  double& operator()(std::size_t row, std::size_t column) { return elements_[row * size_ + column]; }

 private:
  std::size_t size_;
  std::vector<double> elements_;
};

SquareMatrix gram(std::span<const double> matrix, std::size_t rows, std::size_t columns, double scale) {
  const bool of_rows = rows <= columns;
  const std::size_t size = of_rows ? rows : columns;
  const std::size_t length = of_rows ? columns : rows;
  std::vector<double> vectors(size * length);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t to = of_rows ? row * length + column : column * length + row;
      vectors[to] = matrix[row * columns + column] * scale;
    }
  }
  SquareMatrix products(size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0;
      const double* a = &vectors[i * length];
      const double* b = &vectors[j * length];
      for (std::size_t k = 0; k < length; ++k) sum += a[k] * b[k];
      products(i, j) = products(j, i) = sum;
    }
  }
  return products;
}

struct Tridiagonal {
  std::vector<double> diagonal, below;  // below[i] lies between i and i + 1; the last is zero
};

// Each reflection clears one row left of its neighbour of the diagonal, from the last row up.
Tridiagonal tridiagonal_of(SquareMatrix a) {
  const std::size_t size = a.size();
  Tridiagonal result{std::vector<double>(size), std::vector<double>(size, 0.0)};
  std::vector<double> v(size);
  std::vector<double> p(size);
  for (std::size_t row = size; row-- > 2;) {
    double norm = 0;
    for (std::size_t j = 0; j < row; ++j) norm = std::hypot(norm, a(row, j));
    const double last = a(row, row - 1);
    if (norm == std::fabs(last)) continue;  // cleared already
    const double target = last > 0 ? -norm : norm;
    double square = 0;
    for (std::size_t j = 0; j < row; ++j) {
      v[j] = a(row, j) - (j == row - 1 ? target : 0);
      square += v[j] * v[j];
    }
    // a := H a H with H = 1 - 2 v v' / v'v, on the part above the row.
    double projection = 0;
    for (std::size_t i = 0; i < row; ++i) {
      p[i] = 0;
      for (std::size_t j = 0; j < row; ++j) p[i] += a(i, j) * v[j];
      p[i] *= 2 / square;
      projection += p[i] * v[i];
    }
    for (std::size_t i = 0; i < row; ++i) p[i] -= projection / square * v[i];
    for (std::size_t i = 0; i < row; ++i) {
      for (std::size_t j = 0; j < row; ++j) a(i, j) -= p[i] * v[j] + v[i] * p[j];
    }
    a(row, row - 1) = target;
  }
  for (std::size_t i = 0; i < size; ++i) {
    result.diagonal[i] = a(i, i);
    if (i + 1 < size) result.below[i] = a(i + 1, i);
  }
  return result;
}

// One sweep of rotations over first ... last, with the shift that the first two elements suggest.
void rotate(Tridiagonal& t, std::size_t first, std::size_t last) {
  auto& [d, e] = t;
  const double half = (d[first + 1] - d[first]) / (2 * e[first]);
  const double root = std::hypot(half, 1.0);
  double g = d[last] - d[first] + e[first] / (half + std::copysign(root, half));
  double sine = 1;
  double cosine = 1;
  double moved = 0;
  for (std::size_t i = last; i-- > first;) {
    const double f = sine * e[i];
    const double b = cosine * e[i];
    const double radius = std::hypot(f, g);
    e[i + 1] = radius;
    if (radius == 0) {  // it falls apart here
      d[i + 1] -= moved;
      e[last] = 0;
      return;
    }
    sine = f / radius;
    cosine = g / radius;
    g = d[i + 1] - moved;
    const double turned = (d[i] - g) * sine + 2 * cosine * b;
    moved = sine * turned;
    d[i + 1] = g + moved;
    g = cosine * turned - b;
  }
  d[first] -= moved;
  e[first] = g;
  e[last] = 0;
}

std::vector<double> eigenvalues(Tridiagonal t) {
  constexpr int kMaxSweeps = 60;  // a few are usual
  const std::size_t size = t.diagonal.size();
  for (std::size_t first = 0; first < size; ++first) {
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      std::size_t last = first;
      while (last + 1 < size) {
        const double neighbours = std::fabs(t.diagonal[last]) + std::fabs(t.diagonal[last + 1]);
        if (std::fabs(t.below[last]) <= std::numeric_limits<double>::epsilon() * neighbours) break;
        ++last;
      }
      if (last == first) break;
      rotate(t, first, last);
    }
  }
  return t.diagonal;
}

}  // namespace

std::vector<double> singular_values(std::span<const double> matrix, std::size_t rows, std::size_t columns) {
  double largest = 0;
  for (const double x : matrix) {
    if (!std::isfinite(x)) return {};
    largest = std::max(largest, std::fabs(x));
  }
  if (largest == 0) return std::vector<double>(std::min(rows, columns), 0.0);
  std::vector<double> values = eigenvalues(tridiagonal_of(gram(matrix, rows, columns, 1 / largest)));
  for (double& value : values) value = std::sqrt(std::max(value, 0.0)) * largest;
  std::ranges::sort(values, std::greater<>());
  return values;
}

}  // namespace tornasole::rules
