#pragma once

// What a plot is drawn with. One drawing (plot_drawing.cc), two kinds of paper: SVG text and pixels.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/plot_scale.h"

namespace tornasole::cli {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

struct Stroke {
  Colour colour = {};
  double width = 1;
  double dash = 0;  // length of dashes and gaps; 0: solid
};

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };
enum class Marker : std::uint8_t { kDot, kCross, kUp, kDown };

// Coordinates in pixels, y downwards.
class PlotCanvas {
 public:
  static constexpr double kTextHeight = 12;
  static constexpr double kCharWidth = 6.6;  // about

  virtual ~PlotCanvas() = default;
  virtual void polyline(std::span<const PlotPoint> points, const Stroke& stroke) = 0;
  virtual void rectangle(PlotPoint corner, double width, double height, Colour fill) = 0;
  virtual void marker(PlotPoint at, Marker shape, Colour colour) = 0;
  // `at` is on the base line. The text is made harmless by the canvas.
  virtual void text(PlotPoint at, std::string_view text, Anchor anchor, Colour colour) = 0;
};

}  // namespace tornasole::cli
