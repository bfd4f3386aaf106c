#pragma once

// Mean and squared distances from it, put together from parts (Chan's formula). Means are kept as a distance from the
// first part's mean, so that a spread far smaller than the mean itself is not lost.

#include <cstdint>

#include "reduce/accumulate.h"

namespace tornasole::reduce {

class Moments {
 public:
  // A part: so many elements, their mean as a sum of two doubles, the sum of squared distances from that mean.
  void add(double count, double mean, double mean_rest, double squares) noexcept {
    if (count_ == 0) {
      reference_ = mean;
      offset_ = mean_rest;
    } else {
      const double delta = ((mean - reference_) + mean_rest) - offset_;
      const double share = count / (count_ + count);
      squares_.add(delta * delta * count_ * share);
      offset_ += delta * share;
    }
    count_ += count;
    squares_.add(squares);
  }
  void add(const Moments& other) noexcept {
    if (other.count_ != 0) add(other.count_, other.reference_, other.offset_, other.squares_.value());
  }
  // Sum of squared distances from the mean of all.
  double squares() const noexcept { return squares_.value(); }

 private:
  double count_ = 0;
  double reference_ = 0;
  double offset_ = 0;
  CompensatedSum squares_;
};

}  // namespace tornasole::reduce
