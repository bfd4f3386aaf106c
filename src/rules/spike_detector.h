#pragma once

// SpikeDetector: tells a number of a series that jumps out of those before it.

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

#include "tornasole/rule.h"

namespace tornasole::rules {

enum class SpikeMethod : std::uint8_t {
  kSigma,  // so many deviations above the mean of the window
  kMax,    // ten times the largest magnitude of the first hundred values
  kMad,    // so many robust deviations above the median of the window
  kEma,    // so many deviations above an exponential mean
};

struct SpikeOptions {
  SpikeMethod method = SpikeMethod::kSigma;
  std::size_t window = 128, min_points = 64;
  double sigma = 6, floor = 1e-3;
  // Of kEma:
  double alpha = 0.97, z = 2.5;
  std::int64_t warmup = 25;
};
// kInvalid for a method that is not among `allowed`, and for numbers without sense. The parameters are those below;
// kEma's where the rule has them.
Result<SpikeOptions> spike_options(std::string_view rule, const RuleArguments& arguments,
                                   std::span<const std::string_view> allowed);

inline constexpr Parameter kSpikeWindow = {"window", ParameterType::kInteger, "128",
                                           "So many values before are looked at"};
inline constexpr Parameter kSpikeMinPoints = {"min_points", ParameterType::kInteger, "64",
                                              "Nothing is judged before there are so many"};
inline constexpr Parameter kSpikeSigma = {"sigma", ParameterType::kNumber, "6.0",
                                          "A spike lies so many deviations above the rest"};
inline constexpr Parameter kSpikeFloor = {"floor", ParameterType::kNumber, "0.001",
                                          "The deviation counts as at least this share of the mean"};

class SpikeDetector {
 public:
  // The limit that the value broke, or nothing. The value is finite; it belongs to the series afterwards.
  std::optional<double> look_at(double value, const SpikeOptions& options);
  // Percent of spikes among the last 10,000 values.
  double score() const noexcept;

 private:
  static constexpr std::size_t kScored = 10'000;
  static constexpr std::int64_t kFirst = 100;

  std::optional<double> limit(const SpikeOptions& options) const;
  void add(double value, const SpikeOptions& options);

  std::deque<double> window_;
  std::int64_t count_ = 0;
  double first_max_ = 0;            // magnitude, of the first kFirst
  double mean_ = 0, variance_ = 0;  // of the values up to the end of the warm-up, exponential from then on
  std::deque<bool> spikes_;
  std::size_t spike_count_ = 0;
};

}  // namespace tornasole::rules
