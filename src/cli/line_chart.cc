#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/terminal_chart.h"
#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxChartWidth = 100;  // columns; wider lines only spread the points

// Dots behind characters: 2 by 4 in braille, one in ASCII.
class DotGrid {
 public:
  DotGrid(std::size_t columns, std::size_t rows, bool has_unicode)
      : columns_(columns),
        rows_(rows),
        across_(has_unicode ? 2 : 1),
        down_(has_unicode ? 4 : 1),
        cells_(columns * rows, 0) {}

  int width() const noexcept { return static_cast<int>(columns_ * across_); }
  int height() const noexcept { return static_cast<int>(rows_ * down_); }

  void set(int x, int y) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    const auto column = static_cast<std::size_t>(x) / across_;
    const auto row = static_cast<std::size_t>(y) / down_;
    const auto dot_x = static_cast<std::size_t>(x) % across_;
    const auto dot_y = static_cast<std::size_t>(y) % down_;
    // The order of the dots in U+2800.
    constexpr std::array<std::array<unsigned, 4>, 2> kBits = {{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    cells_[row * columns_ + column] |= down_ == 1 ? 1U : kBits[dot_x][dot_y];
  }
  void line(int x0, int y0, int x1, int y1) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      set(static_cast<int>(std::lround(x0 + t * (x1 - x0))), static_cast<int>(std::lround(y0 + t * (y1 - y0))));
    }
  }
  std::string cell(std::size_t column, std::size_t row) const {
    const unsigned bits = cells_[row * columns_ + column];
    if (bits == 0) return " ";
    if (down_ == 1) return "*";
    return {static_cast<char>(0xE2), static_cast<char>(0xA0 + (bits >> 6)), static_cast<char>(0x80 + (bits & 0x3FU))};
  }

 private:
  std::size_t columns_, rows_, across_, down_;
  std::vector<unsigned> cells_;
};

struct Marks {
  std::vector<bool> top, bottom;  // columns with an infinity or NaN above, with a negative infinity below
};

class LineChart {
 public:
  LineChart(const TerminalChart& chart, const PlotScale& x, const PlotScale& y, const Terminal& terminal)
      : chart_(chart), x_(x), y_(y), terminal_(terminal) {
    for (const auto& tick : y_.ticks()) label_width_ = std::max(label_width_, tick.label.size());
    const std::size_t width = std::min(terminal.width, kMaxChartWidth);
    columns_ = width > label_width_ + 12 ? width - label_width_ - 2 : 10;
  }

  std::string text() {
    DotGrid grid(columns_, chart_.height, terminal_.has_unicode);
    Marks marks{std::vector<bool>(columns_), std::vector<bool>(columns_)};
    draw(&grid, &marks);
    std::string text;
    for (std::size_t row = 0; row < chart_.height; ++row) text += row_text(grid, marks, row);
    return text + axis_text();
  }

 private:
  void draw(DotGrid* grid, Marks* marks) const {
    int last_x = -1;
    int last_y = 0;
    for (const PlotPoint& point : chart_.points) {
      const double across = x_.position(point.x).value_or(0);
      const int x = static_cast<int>(std::lround(across * (grid->width() - 1)));
      const auto up = y_.position(point.y);
      if (!up) {
        const std::size_t column =
            std::min(static_cast<std::size_t>(across * static_cast<double>(columns_)), columns_ - 1);
        (point.y < 0 || point.y == 0 ? marks->bottom : marks->top)[column] = true;
        last_x = -1;  // no line through what is not there
        continue;
      }
      const int y = static_cast<int>(std::lround((1 - *up) * (grid->height() - 1)));
      if (last_x >= 0) {
        grid->line(last_x, last_y, x, y);
      } else {
        grid->set(x, y);
      }
      last_x = x;
      last_y = y;
    }
  }

  std::string row_text(const DotGrid& grid, const Marks& marks, std::size_t row) const {
    std::string label;
    for (const auto& tick : y_.ticks()) {
      const auto at =
          static_cast<std::size_t>(std::lround((1 - tick.position) * static_cast<double>(chart_.height - 1)));
      if (at == row) label = tick.label;
    }
    std::string line =
        fmt::format("{:>{}} {}", label, label_width_, terminal_.has_unicode ? (label.empty() ? "│" : "┤") : "|");
    std::string dots;
    for (std::size_t column = 0; column < columns_; ++column) {
      const bool is_marked = (row == 0 && marks.top[column]) || (row + 1 == chart_.height && marks.bottom[column]);
      dots += is_marked ? terminal_.style.error(terminal_.has_unicode ? "×" : "!") : grid.cell(column, row);
    }
    dots.erase(dots.find_last_not_of(' ') + 1);
    return line + dots + "\n";
  }

  std::string axis_text() const {
    const std::string margin(label_width_ + 1, ' ');
    std::string rule;
    for (std::size_t i = 0; i < columns_; ++i) rule += terminal_.has_unicode ? "─" : "-";
    const std::string low = fmt::format("{:.0f}", chart_.points.front().x);
    const std::string high = fmt::format("{:.0f}", chart_.points.back().x);
    std::string labels = margin + " " + low;
    if (chart_.points.size() > 1 && low.size() + high.size() + 2 <= columns_) {
      labels += std::string(columns_ - low.size() - high.size(), ' ') + high;
    }
    return margin + (terminal_.has_unicode ? "└" : "+") + rule + "\n" + labels + "\n";
  }

  const TerminalChart& chart_;
  const PlotScale& x_;
  const PlotScale& y_;
  const Terminal& terminal_;
  std::size_t label_width_ = 0;
  std::size_t columns_ = 0;
};

}  // namespace

std::string chart_text(TerminalChart chart, const Terminal& terminal) {
  if (chart.points.empty()) return {};
  thin_out(&chart.points, 4 * kMaxChartWidth);
  const Extent extent = extent_of(chart.points, chart.is_log).value_or(Extent{chart.is_log ? 1.0 : 0, 1});
  const PlotScale y = PlotScale::fit({.low = extent.low, .high = extent.high, .is_log = chart.is_log, .ticks = 3});
  const double last = chart.points.back().x;
  const double first = chart.points.front().x;
  const PlotScale x = PlotScale::fit(
      {.low = first, .high = last > first ? last : first + 1, .whole_numbers = true, .rounds_out = false});
  return LineChart(chart, x, y, terminal).text();
}

}  // namespace tornasole::cli
