// The SVG paper: text by hand, no script, no outside font, every name escaped.

#include <fmt/format.h>

#include "base/markup.h"
#include "cli/plot_drawing.h"

namespace tornasole::cli {
namespace {

// A hundredth of a pixel is more than anyone sees, and keeps files small and equal on every machine.
std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string colour_text(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

class SvgCanvas : public PlotCanvas {
 public:
  explicit SvgCanvas(PlotSize size) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{2}\">\n",
        coordinate(size.width), coordinate(size.height), kTextHeight);
  }

  void polyline(std::span<const PlotPoint> points, const Stroke& stroke) override {
    text_ += "<polyline points=\"";
    for (const PlotPoint& point : points) {
      text_ += fmt::format("{}{},{}", &point == points.data() ? "" : " ", coordinate(point.x), coordinate(point.y));
    }
    text_ += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
                         colour_text(stroke.colour), coordinate(stroke.width));
    if (stroke.dash > 0) text_ += fmt::format(" stroke-dasharray=\"{}\"", coordinate(stroke.dash));
    text_ += "/>\n";
  }

  void rectangle(PlotPoint corner, double width, double height, Colour fill) override {
    text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", coordinate(corner.x),
                         coordinate(corner.y), coordinate(width), coordinate(height), colour_text(fill));
  }

  void marker(PlotPoint at, Marker shape, Colour colour) override {
    if (shape == Marker::kDot) {
      text_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{}\"/>\n", coordinate(at.x), coordinate(at.y),
                           colour_text(colour));
      return;
    }
    const std::string path = shape == Marker::kCross ? "m-4,-4 l8,8 m0,-8 l-8,8"
                             : shape == Marker::kUp  ? "m0,-4 l4,8 l-8,0 z"
                                                     : "m0,4 l4,-8 l-8,0 z";
    text_ += fmt::format("<path d=\"M{},{} {}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", coordinate(at.x),
                         coordinate(at.y), path, shape == Marker::kCross ? "none" : colour_text(colour),
                         colour_text(colour));
  }

  void text(PlotPoint at, std::string_view text, Anchor anchor, Colour colour) override {
    const char* side = anchor == Anchor::kStart ? "start" : anchor == Anchor::kMiddle ? "middle" : "end";
    text_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", coordinate(at.x),
                         coordinate(at.y), side, colour_text(colour), escape_markup(text));
  }

  std::string finish() && { return std::move(text_) + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace

std::string svg_of(const Plot& plot) {
  SvgCanvas canvas(size_of(plot));
  draw(plot, &canvas);
  return std::move(canvas).finish();
}

}  // namespace tornasole::cli
