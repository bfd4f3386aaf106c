#include "rules/report_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/markup.h"

namespace tornasole::rules {
namespace {

// Told apart by people who see few colours, too.
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#7a5195", "#888888"};
constexpr double kWidth = 640;
constexpr double kHeight = 300;
constexpr double kLeft = 70;
constexpr double kTop = 14;
constexpr double kBottom = 44;
constexpr double kRight = 14;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Where a value lies, from 0 to 1. Halves first: the difference of two large numbers may overflow.
  double share(double value) const { return high == low ? 0.5 : (value / 2 - low / 2) / (high / 2 - low / 2); }
};

bool is_drawn(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, escape_markup(text));
}

}  // namespace

std::string line_chart(const ChartAxes& axes, std::span<const ChartLine> lines) {
  Range x;
  Range y;
  for (const ChartLine& line : lines) {
    for (const auto& point : line.points) {
      if (!is_drawn(point)) continue;
      x.take(point.first);
      y.take(point.second);
    }
  }
  if (x.low > x.high) return {};
  const double plot_width = kWidth - kLeft - kRight;
  const double plot_height = kHeight - kTop - kBottom;
  std::string svg = fmt::format(R"(<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">)", kWidth,
                                kHeight + 18 * static_cast<double>((lines.size() + 1) / 2));
  svg += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#999"/>)", kLeft, kTop,
                     plot_width, plot_height);
  constexpr int kTicks = 4;
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    svg += text_at(kLeft + share * plot_width, kHeight - kBottom + 16, "middle",
                   fmt::format("{:.4g}", x.low * (1 - share) + x.high * share));
    svg += text_at(kLeft - 6, kTop + (1 - share) * plot_height + 4, "end",
                   fmt::format("{:.4g}", y.low * (1 - share) + y.high * share));
  }
  svg += text_at(kLeft + plot_width / 2, kHeight - kBottom + 34, "middle", axes.x);
  svg += fmt::format(R"svg(<text transform="translate(12 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
                     kTop + plot_height / 2, escape_markup(axes.y));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    std::string path;
    std::string dots;
    for (const auto& point : lines[i].points) {
      if (!is_drawn(point)) continue;
      const double at_x = kLeft + x.share(point.first) * plot_width;
      const double at_y = kTop + (1 - y.share(point.second)) * plot_height;
      path += fmt::format("{}{:.2f},{:.2f}", path.empty() ? "" : " ", at_x, at_y);
      if (lines[i].points.size() <= 50) {
        dots += fmt::format(R"(<circle cx="{:.2f}" cy="{:.2f}" r="2.5" fill="{}"/>)", at_x, at_y, colour);
      }
    }
    svg += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="1.5"/>)", path, colour) + dots;
    const double legend_x = kLeft + (i % 2 == 0 ? 0 : plot_width / 2);
    const double legend_y = kHeight + 18 * static_cast<double>(i / 2) + 8;
    svg += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="10" height="10" fill="{}"/>)", legend_x, legend_y - 9,
                       colour);
    svg += text_at(legend_x + 15, legend_y, "start", lines[i].name);
  }
  return svg + "</svg>\n";
}

std::string bar_chart(std::span<const ChartBar> bars) {
  constexpr double kRow = 20;
  constexpr double kNames = 210;
  double largest = 0;
  for (const ChartBar& bar : bars) {
    if (std::isfinite(bar.value)) largest = std::max(largest, bar.value);
  }
  const double height = kRow * static_cast<double>(bars.size()) + 4;
  std::string svg = fmt::format(R"(<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">)", kWidth, height);
  double y = 2;
  for (const ChartBar& bar : bars) {
    const double share = largest > 0 && bar.value > 0 ? std::min(bar.value / largest, 1.0) : 0;
    const double length = share * (kWidth - kNames - 90);
    svg += text_at(kNames - 8, y + 14, "end", bar.name);
    svg += fmt::format(R"(<rect x="{}" y="{:.1f}" width="{:.2f}" height="{}" fill="{}"/>)", kNames, y + 2, length,
                       kRow - 5, kColours[0]);
    svg += text_at(kNames + length + 6, y + 14, "start", fmt::format("{:.5g}", bar.value));
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace tornasole::rules
