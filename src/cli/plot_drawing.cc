#include "cli/plot_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

// Told apart by people who see no red or no green, on white and in grey.
constexpr std::array<Colour, 8> kPalette = {{{0x00, 0x72, 0xB2},
                                             {0xD5, 0x5E, 0x00},
                                             {0x00, 0x9E, 0x73},
                                             {0xCC, 0x79, 0xA7},
                                             {0x56, 0xB4, 0xE9},
                                             {0xE6, 0x9F, 0x00},
                                             {0x00, 0x00, 0x00},
                                             {0x7F, 0x6F, 0x3B}}};
constexpr std::array<double, 3> kDashes = {0, 7, 3};  // a new one each time the colours are used up
constexpr Colour kInk = {0x22, 0x22, 0x22};
constexpr Colour kFaint = {0xDD, 0xDD, 0xDD};
constexpr Colour kPaper = {0xFF, 0xFF, 0xFF};
constexpr Colour kAlarm = {0xC0, 0x00, 0x20};
constexpr double kLegendLine = 16;
constexpr std::size_t kLegendChars = 60;
constexpr double kTop = 40;
constexpr double kRight = 24;
constexpr double kPlotHeight = 420;
constexpr double kBelow = 56;  // ticks and the name of the axis

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

class PlotDrawing {
 public:
  PlotDrawing(const Plot& plot, PlotCanvas* canvas) : plot_(plot), canvas_(*canvas), size_(size_of(plot)) {
    fit_scales();
    std::size_t label = 0;
    for (const auto& tick : y_.ticks()) label = std::max(label, tick.label.size());
    const double left = 24 + text_width(label);
    box_ = {left, kTop, size_.width - left - kRight, kPlotHeight};
  }

  void draw() {
    canvas_.rectangle({0, 0}, size_.width, size_.height, kPaper);
    canvas_.text({size_.width / 2, 24}, short_name(plot_.title), Anchor::kMiddle, kInk);
    draw_axes();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) draw_series(i);
    draw_legend();
  }

 private:
  static double text_width(std::size_t chars) { return static_cast<double>(chars) * PlotCanvas::kCharWidth; }
  static Stroke stroke_of(std::size_t i) {
    return {kPalette[i % kPalette.size()], 1.8, kDashes[(i / kPalette.size()) % kDashes.size()]};
  }
  static std::string short_name(const std::string& name) {
    return clip_middle(printable(name), 2 * kLegendChars, false);
  }

  void fit_scales() {
    std::optional<Extent> x;
    std::optional<Extent> y;
    const auto widen = [](std::optional<Extent>* all, Extent one) {
      if (!*all) *all = one;
      (*all)->low = std::min((*all)->low, one.low);
      (*all)->high = std::max((*all)->high, one.high);
    };
    for (const PlotSeries& series : plot_.series) {
      if (const auto extent = extent_of(series.points, plot_.is_log)) widen(&y, *extent);
      if (!series.points.empty()) widen(&x, {series.points.front().x, series.points.back().x});
    }
    const Extent steps = x.value_or(Extent{0, 1});
    const Extent values = y.value_or(plot_.is_log ? Extent{1, 10} : Extent{0, 1});
    x_ = PlotScale::fit({.low = steps.low, .high = steps.high, .ticks = 8, .whole_numbers = true, .rounds_out = false});
    y_ = PlotScale::fit({.low = values.low, .high = values.high, .is_log = plot_.is_log, .ticks = 6});
  }

  PlotPoint place(double across, double up) const {
    return {box_.left + across * box_.width, box_.bottom() - up * box_.height};
  }

  void line(PlotPoint from, PlotPoint to, const Stroke& stroke) {
    const std::array<PlotPoint, 2> points = {from, to};
    canvas_.polyline(points, stroke);
  }

  void draw_axes() {
    const Stroke grid{kFaint, 1, 0};
    const Stroke axis{kInk, 1, 0};
    for (const auto& tick : y_.ticks()) {
      line(place(0, tick.position), place(1, tick.position), grid);
      const PlotPoint at = place(0, tick.position);
      canvas_.text({at.x - 8, at.y + 4}, tick.label, Anchor::kEnd, kInk);
    }
    for (const auto& tick : x_.ticks()) {
      const PlotPoint at = place(tick.position, 0);
      line(at, {at.x, at.y + 5}, axis);
      canvas_.text({at.x, at.y + 19}, tick.label, Anchor::kMiddle, kInk);
    }
    line(place(0, 0), place(1, 0), axis);
    line(place(0, 0), place(0, 1), axis);
    canvas_.text({box_.left + box_.width / 2, box_.bottom() + 40}, short_name(plot_.x_label), Anchor::kMiddle, kInk);
    canvas_.text({box_.left, box_.top - 8}, short_name(plot_.y_label), Anchor::kStart, kInk);
  }

  void draw_series(std::size_t i) {
    const PlotSeries& series = plot_.series[i];
    const Stroke stroke = stroke_of(i);
    std::vector<PlotPoint> run;
    const auto finish = [&] {
      if (run.size() > 1) canvas_.polyline(run, stroke);
      if (run.size() == 1) canvas_.marker(run[0], Marker::kDot, stroke.colour);
      run.clear();
    };
    for (const PlotPoint& point : series.points) {
      const double across = x_.position(point.x).value_or(0);
      if (const auto up = y_.position(point.y)) {
        run.push_back(place(across, *up));
        continue;
      }
      // The line breaks where there is no number; a mark at the edge says which kind was there.
      finish();
      draw_missing(across, point.y);
    }
    finish();
  }

  void draw_missing(double across, double y) {
    if (std::isnan(y)) {
      canvas_.marker(place(across, 0), Marker::kCross, kAlarm);
    } else if (std::isinf(y)) {
      canvas_.marker(place(across, y > 0 ? 1 : 0), y > 0 ? Marker::kUp : Marker::kDown, kAlarm);
    } else {
      canvas_.marker(place(across, 0), Marker::kDown, kInk);  // zero or less, on a log scale
    }
  }

  bool has_missing() const {
    return std::any_of(plot_.series.begin(), plot_.series.end(), [](const PlotSeries& series) {
      return std::any_of(series.points.begin(), series.points.end(),
                         [](const PlotPoint& point) { return !std::isfinite(point.y); });
    });
  }

  void draw_legend() {
    double y = box_.bottom() + kBelow + kLegendLine;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      const double x = box_.left + (i % 2 == 0 ? 0 : box_.width / 2);
      line({x, y - 4}, {x + 28, y - 4}, stroke_of(i));
      const auto room = static_cast<std::size_t>((box_.width / 2 - 44) / PlotCanvas::kCharWidth);
      canvas_.text({x + 36, y}, clip_middle(printable(plot_.series[i].name), std::min(room, kLegendChars), false),
                   Anchor::kStart, kInk);
      if (i % 2 == 1 || i + 1 == plot_.series.size()) y += kLegendLine;
    }
    std::string note = plot_.note;
    if (has_missing()) note = "marks at the edge: x NaN, triangles Inf and -Inf" + (note.empty() ? "" : "; " + note);
    if (!note.empty()) canvas_.text({box_.left, y}, short_name(note), Anchor::kStart, kInk);
  }

  const Plot& plot_;
  PlotCanvas& canvas_;
  PlotSize size_;
  PlotScale x_, y_;
  Box box_;
};

}  // namespace

PlotSize size_of(const Plot& plot) {
  const double lines = std::ceil(static_cast<double>(plot.series.size()) / 2) + 1;
  return {960, kTop + kPlotHeight + kBelow + (lines + 0.5) * kLegendLine};
}

void draw(const Plot& plot, PlotCanvas* canvas) { PlotDrawing(plot, canvas).draw(); }

}  // namespace tornasole::cli
