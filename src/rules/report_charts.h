#pragma once

// Charts of a report as inline SVG: no script, no outside font, every text escaped.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tornasole::rules {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  // those that are not finite are left out
};
struct ChartAxes {
  std::string_view x, y;
};
// Lines over common axes, with a legend; empty if there is not one point.
std::string line_chart(const ChartAxes& axes, std::span<const ChartLine> lines);

struct ChartBar {
  std::string name;
  double value = 0;
};
// Bars from left to right, one under the other, each with its name and number.
std::string bar_chart(std::span<const ChartBar> bars);

}  // namespace tornasole::rules
