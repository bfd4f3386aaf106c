#pragma once

// A line plot of series over steps: axes, ticks, grid, legend; NaN and infinities are marked, never left out.

#include <string>
#include <vector>

#include "cli/plot_canvas.h"

namespace tornasole::cli {

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // by rising x
};

struct Plot {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<PlotSeries> series = {};
  bool is_log = false;
  std::string note = {};  // under the plot: what was left out or thinned
};

struct PlotSize {
  double width = 960, height = 540;
};
inline constexpr std::size_t kMaxPlotSeries = 24;  // told apart by colour and dash
inline constexpr std::size_t kMaxPlotPoints = 4000;

// The size that this plot needs: the legend grows with the number of series.
PlotSize size_of(const Plot& plot);
void draw(const Plot& plot, PlotCanvas* canvas);

// A whole file each.
std::string svg_of(const Plot& plot);
std::string png_of(const Plot& plot);

}  // namespace tornasole::cli
