#pragma once

// A line over steps and a histogram, drawn with characters: braille dots and blocks, or plain ASCII.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/element_reader.h"
#include "cli/plot_scale.h"
#include "cli/terminal.h"

namespace tornasole::cli {

struct TerminalChart {
  std::vector<PlotPoint> points;  // by rising x; y may be NaN or infinite, which is marked at the edge
  bool is_log = false;
  std::size_t height = 8;  // lines, without the axis
};
// Lines with a line break each, as wide as the terminal at most. Empty if there is nothing to draw.
std::string chart_text(TerminalChart chart, const Terminal& terminal);

struct HistogramBin {
  double low = 0, high = 0;  // the last one holds `high` as well
  std::int64_t count = 0;
};
struct Histogram {
  std::vector<HistogramBin> bins;  // of the finite elements; of complex ones, the magnitude
  std::int64_t nan = 0, positive_infinities = 0, negative_infinities = 0;
};
Histogram histogram_of(const ElementReader& reader, std::size_t bin_count);
std::string histogram_text(const Histogram& histogram, const Terminal& terminal);

}  // namespace tornasole::cli
