#include "rules/check/number_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tornasole::rules {

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double robust_deviation(const std::vector<double>& values) {
  const double center = median(values);
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::fabs(value - center));
  return 1.4826 * median(std::move(distances));
}

double mean(std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

WindowMeans window_means(const std::vector<double>& values, std::size_t count, std::size_t least) {
  WindowMeans windows;
  windows.length = std::max(least, values.size() / std::max<std::size_t>(count, 1));
  if (windows.length == 0 || values.size() < 2 * windows.length) return {};
  const std::size_t whole = values.size() / windows.length;
  for (std::size_t i = 0; i < whole; ++i) {
    const std::size_t begin = i * windows.length;
    const std::size_t end = i + 1 == whole ? values.size() : begin + windows.length;
    windows.means.push_back(mean(std::span(values).subspan(begin, end - begin)));
  }
  // Differences of neighbours do not see a trend, so what falls steadily is not taken for noise.
  std::vector<double> differences;
  for (std::size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  const double deviation = robust_deviation(differences) / std::sqrt(2.0);
  windows.noise = std::isfinite(deviation) ? deviation / std::sqrt(static_cast<double>(windows.length)) : 0;
  return windows;
}

}  // namespace tornasole::rules
