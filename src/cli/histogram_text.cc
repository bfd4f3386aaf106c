#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/number_text.h"
#include "cli/terminal_chart.h"
#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxBar = 50;  // columns

double value_of(const ElementReader& reader, std::int64_t position) noexcept {
  const double real = reader.real(position);
  return reader.kind() == ElementKind::kComplex ? std::hypot(real, reader.imaginary(position)) : real;
}

// One bin for each number where there are few whole ones, else bins of equal width.
std::vector<HistogramBin> bins_for(double low, double high, bool is_whole, std::size_t bin_count) {
  std::vector<HistogramBin> bins;
  if (low == high) return {{low, high, 0}};
  if (is_whole && high - low < static_cast<double>(bin_count)) {
    for (double value = low; value <= high; ++value) bins.push_back({value, value, 0});
    return bins;
  }
  const auto count = static_cast<double>(bin_count);
  for (double i = 0; i < count; ++i) {
    bins.push_back({low + (high / count - low / count) * i, low + (high / count - low / count) * (i + 1), 0});
  }
  bins.back().high = high;
  return bins;
}

std::string bar_of(double columns, bool has_unicode) {
  constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!has_unicode) return std::string(static_cast<std::size_t>(std::ceil(columns)), '#');
  const auto eighths = static_cast<std::size_t>(std::ceil(columns * 8));
  std::string bar;
  for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string label_of(const HistogramBin& bin) {
  if (bin.low == bin.high) return number_text(bin.low);
  return fmt::format("{:.3g} to {:.3g}", bin.low, bin.high);
}

}  // namespace

Histogram histogram_of(const ElementReader& reader, std::size_t bin_count) {
  Histogram histogram;
  double low = INFINITY;
  double high = -INFINITY;
  for (std::int64_t i = 0; i < reader.count(); ++i) {
    const double value = value_of(reader, i);
    if (std::isnan(value)) {
      ++histogram.nan;
    } else if (std::isinf(value)) {
      ++(value > 0 ? histogram.positive_infinities : histogram.negative_infinities);
    } else {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) return histogram;
  const bool is_whole = reader.kind() == ElementKind::kInteger || reader.kind() == ElementKind::kBool;
  histogram.bins = bins_for(low, high, is_whole, std::max<std::size_t>(bin_count, 1));
  const auto count = static_cast<double>(histogram.bins.size());
  // With a bin for each number there is one number less between the ends than there are bins.
  const double span = histogram.bins[0].low == histogram.bins[0].high ? count - 1 : count;
  for (std::int64_t i = 0; i < reader.count(); ++i) {
    const double value = value_of(reader, i);
    if (!std::isfinite(value)) continue;
    const double where = low == high ? 0 : (value / 2 - low / 2) / (high / 2 - low / 2) * span;
    ++histogram.bins[static_cast<std::size_t>(std::clamp(where, 0.0, count - 1))].count;
  }
  return histogram;
}

std::string histogram_text(const Histogram& histogram, const Terminal& terminal) {
  std::int64_t largest = 1;
  std::size_t label_width = 0;
  std::vector<std::string> labels;
  for (const HistogramBin& bin : histogram.bins) {
    largest = std::max(largest, bin.count);
    labels.push_back(label_of(bin));
    label_width = std::max(label_width, labels.back().size());
  }
  const std::size_t count_width = fmt::format("{}", largest).size();
  const std::size_t used = label_width + count_width + 4;
  const std::size_t room = std::clamp<std::size_t>(terminal.width > used ? terminal.width - used : 0, 5, kMaxBar);
  std::string text;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t count = histogram.bins[i].count;
    const double columns = static_cast<double>(room) * static_cast<double>(count) / static_cast<double>(largest);
    text += fmt::format("{:>{}}  {:>{}}  {}", labels[i], label_width, count, count_width,
                        bar_of(columns, terminal.has_unicode));
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  const auto add_count = [&](std::int64_t count, const char* name) {
    if (count > 0) text += terminal.style.error(fmt::format("{:>{}}  {}", name, label_width, count)) + "\n";
  };
  add_count(histogram.nan, "NaN");
  add_count(histogram.positive_infinities, "Inf");
  add_count(histogram.negative_infinities, "-Inf");
  return text;
}

}  // namespace tornasole::cli
