#include "rules/spike_detector.h"
#include "base/errors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rules/argument_checks.h"
#include "rules/robust_spread.h"

namespace tornasole::rules {
namespace {

constexpr std::array<std::string_view, 4> kMethods = {"sigma", "max", "mad", "ema"};

}  // namespace

Result<SpikeOptions> spike_options(std::string_view rule, const RuleArguments& arguments,
                                   std::span<const std::string_view> allowed) {
  TORNASOLE_CHECK(check_word(rule, arguments, "method", allowed));
  TORNASOLE_CHECK(check_at_least(rule, arguments, "window", 2));
  TORNASOLE_CHECK(check_range(rule, arguments, "min_points", 2, arguments.number("window")));
  TORNASOLE_CHECK(check_at_least(rule, arguments, "sigma", 0));
  TORNASOLE_CHECK(check_at_least(rule, arguments, "floor", 0));
  SpikeOptions options{.window = static_cast<std::size_t>(arguments.integer("window")),
                       .min_points = static_cast<std::size_t>(arguments.integer("min_points")),
                       .sigma = arguments.number("sigma"),
                       .floor = arguments.number("floor")};
  for (std::size_t i = 0; i < kMethods.size(); ++i) {
    if (arguments.text("method") == kMethods[i]) options.method = static_cast<SpikeMethod>(i);
  }
  if (arguments.has("alpha")) {
    TORNASOLE_CHECK(check_range(rule, arguments, "alpha", 0, 1));
    TORNASOLE_CHECK(check_at_least(rule, arguments, "z", 0));
    TORNASOLE_CHECK(check_at_least(rule, arguments, "warmup", 1));
    options.alpha = arguments.number("alpha");
    options.z = arguments.number("z");
    options.warmup = arguments.integer("warmup");
  }
  return options;
}

std::optional<double> SpikeDetector::limit(const SpikeOptions& options) const {
  switch (options.method) {
    case SpikeMethod::kMax:
      // Reached is broken: the limit itself is the smallest spike.
      if (count_ < kFirst || first_max_ == 0) return std::nullopt;
      return std::nextafter(10 * first_max_, -std::numeric_limits<double>::infinity());
    case SpikeMethod::kEma:
      if (count_ < options.warmup) return std::nullopt;
      return mean_ + options.z * std::sqrt(variance_);
    case SpikeMethod::kSigma: {
      if (window_.size() < options.min_points) return std::nullopt;
      const auto count = static_cast<double>(window_.size());
      double mean = 0;
      for (const double value : window_) mean += value / count;
      double squares = 0;
      for (const double value : window_) squares += (value - mean) * (value - mean);
      const double deviation = std::sqrt(squares / (count - 1));
      return mean + options.sigma * std::max(deviation, options.floor * std::fabs(mean));
    }
    case SpikeMethod::kMad: {
      if (window_.size() < options.min_points) return std::nullopt;
      const RobustSpread spread = robust_spread({window_.begin(), window_.end()});
      return spread.median + options.sigma * spread.deviation;
    }
  }
  return std::nullopt;
}

void SpikeDetector::add(double value, const SpikeOptions& options) {
  window_.push_back(value);
  if (window_.size() > options.window) window_.pop_front();
  if (count_ < kFirst) first_max_ = std::max(first_max_, std::fabs(value));
  ++count_;
  const double from_mean = value - mean_;
  // Plain means while it warms up, then such in which a value fades.
  const double weight = count_ <= options.warmup ? 1 / static_cast<double>(count_) : 1 - options.alpha;
  mean_ += weight * from_mean;
  variance_ = (1 - weight) * (variance_ + weight * from_mean * from_mean);
}

std::optional<double> SpikeDetector::look_at(double value, const SpikeOptions& options) {
  auto broken = limit(options);
  if (broken && !(value > *broken)) broken.reset();
  add(value, options);
  spikes_.push_back(broken.has_value());
  if (broken) ++spike_count_;
  if (spikes_.size() > kScored) {
    if (spikes_.front()) --spike_count_;
    spikes_.pop_front();
  }
  return broken;
}

double SpikeDetector::score() const noexcept {
  return spikes_.empty() ? 0 : 100 * static_cast<double>(spike_count_) / static_cast<double>(spikes_.size());
}

}  // namespace tornasole::rules
