#pragma once

// Numbers about series of numbers: robust where a series is noisy. Values that are not finite are left out.

#include <cstddef>
#include <span>
#include <vector>

namespace tornasole::rules {

// NaN of no finite values.
double median(std::vector<double> values);
// 1.4826 times the median distance from the median: the deviation of the bulk.
double robust_deviation(const std::vector<double>& values);
double mean(std::span<const double> values);

// A series cut into windows of equal length, the last one taking the rest.
struct WindowMeans {
  std::vector<double> means = {};
  double noise = 0;  // deviation of a mean, from the differences of neighbouring values
  std::size_t length = 0;
};
// About `count` windows of at least `least` values; nothing if there are fewer than two.
WindowMeans window_means(const std::vector<double>& values, std::size_t count, std::size_t least);

}  // namespace tornasole::rules
