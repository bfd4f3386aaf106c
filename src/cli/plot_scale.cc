#include "cli/plot_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tornasole::cli {
namespace {

// The round number just at or above: 1, 2 or 5 times a power of ten.
double round_step(double step) noexcept {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

// As many digits as tell neighbours apart: "0.25", "1500", "1e-07".
std::string label_of(double value, double step) {
  if (std::fabs(value) < step * 1e-6) return "0";
  const double magnitude = std::fabs(value);
  if (magnitude >= 1e6 || magnitude < 1e-4) return fmt::format("{:.6g}", value);
  const int places = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
  std::string text = fmt::format("{:.{}f}", value, places);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

PlotScale PlotScale::fit(const Wish& wish) {
  PlotScale scale;
  scale.is_log_ = wish.is_log;
  if (wish.is_log) {
    scale.fit_log(wish);
  } else {
    scale.fit_linear(wish);
  }
  return scale;
}

void PlotScale::fit_linear(const Wish& wish) {
  low_ = wish.low;
  high_ = wish.high;
  if (!(high_ > low_)) {
    // One number alone stands in the middle.
    const double margin = low_ == 0 ? 1 : std::fabs(low_) * 0.5;
    low_ = std::max(low_ - margin, -std::numeric_limits<double>::max());
    high_ = std::min(high_ + margin, std::numeric_limits<double>::max());
    if (wish.whole_numbers) {
      low_ = wish.low - 1;
      high_ = wish.high + 1;
    }
  }
  // Halves, so that the distance of two large numbers does not overflow.
  double step = round_step(2 * ((high_ / 2 - low_ / 2) / std::max(wish.ticks, 1)));
  if (wish.whole_numbers) step = std::max(1.0, std::round(step));
  // Numbers so close that steps between them vanish, or so large that they overflow, are labelled at the ends alone.
  if (!std::isfinite(step) || step <= 0 || low_ + step == low_ || high_ - step == high_) {
    ticks_ = {{0, fmt::format("{:.17g}", low_)}, {1, fmt::format("{:.17g}", high_)}};
    return;
  }
  double first = std::ceil(low_ / step - 1e-9);
  double last = std::floor(high_ / step + 1e-9);
  if (wish.rounds_out) {
    first = std::floor(low_ / step + 1e-9);
    last = std::ceil(high_ / step - 1e-9);
    if (!std::isfinite(first * step) || !std::isfinite(last * step)) return;
    low_ = std::min(low_, first * step);
    high_ = std::max(high_, last * step);
  }
  for (double i = first; i <= last; ++i) {
    if (const auto where = position(i * step)) ticks_.push_back({*where, label_of(i * step, step)});
  }
}

void PlotScale::fit_log(const Wish& wish) {
  double first = std::floor(std::log10(wish.low) + 1e-9);
  double last = std::ceil(std::log10(wish.high) - 1e-9);
  if (last <= first) {
    --first;
    ++last;
  }
  low_ = first;  // powers of ten, since the numbers themselves may leave the range of a double
  high_ = last;
  const double step = std::max(1.0, std::ceil((last - first) / std::max(wish.ticks, 1)));
  for (double power = first; power <= last; power += step) {
    ticks_.push_back({(power - first) / (last - first), fmt::format("1e{:g}", power)});
  }
}

std::optional<double> PlotScale::position(double value) const noexcept {
  if (!std::isfinite(value)) return std::nullopt;
  if (is_log_) {
    if (value <= 0) return std::nullopt;
    return (std::log10(value) - low_) / (high_ - low_);
  }
  return (value / 2 - low_ / 2) / (high_ / 2 - low_ / 2);
}

std::optional<Extent> extent_of(const std::vector<PlotPoint>& points, bool is_log) {
  std::optional<Extent> extent;
  for (const PlotPoint& point : points) {
    if (!std::isfinite(point.y) || (is_log && point.y <= 0)) continue;
    if (!extent) extent = Extent{point.y, point.y};
    extent->low = std::min(extent->low, point.y);
    extent->high = std::max(extent->high, point.y);
  }
  return extent;
}

bool thin_out(std::vector<PlotPoint>* points, std::size_t limit) {
  if (points->size() <= limit || limit < 8) return false;
  const std::size_t run = (points->size() * 4 + limit - 1) / limit;
  std::vector<PlotPoint> kept;
  for (std::size_t begin = 0; begin < points->size(); begin += run) {
    const std::size_t end = std::min(begin + run, points->size());
    std::size_t lowest = begin;
    std::size_t highest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      const double y = (*points)[i].y;
      if (!std::isfinite((*points)[lowest].y) || y < (*points)[lowest].y) lowest = i;
      if (!std::isfinite((*points)[highest].y) || y > (*points)[highest].y) highest = i;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_kept = i == begin || i + 1 == end || i == lowest || i == highest;
      if (is_kept || !std::isfinite((*points)[i].y)) kept.push_back((*points)[i]);
    }
  }
  const bool was_thinned = kept.size() < points->size();
  *points = std::move(kept);
  return was_thinned;
}

}  // namespace tornasole::cli
