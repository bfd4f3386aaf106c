// The paper of pixels: lines with soft edges, letters of a bitmap font, two pixels to a unit for sharp screens.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "cli/bitmap_font.h"
#include "cli/plot_drawing.h"
#include "tools/png_file.h"

namespace tornasole::cli {
namespace {

constexpr double kScale = 2;
constexpr int kDotPixels = 2;

// The font has ASCII alone: other characters are told by their number.
std::string ascii_of(std::string_view text) {
  std::string out;
  const std::string safe = printable(text);
  for (std::size_t i = 0; i < safe.size();) {
    const auto first = static_cast<unsigned char>(safe[i]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    std::uint32_t c = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < safe.size(); ++k) {
      c = (c << 6) | (static_cast<unsigned char>(safe[i + k]) & 0x3FU);
    }
    out += c < 0x80 ? std::string(1, static_cast<char>(c)) : fmt::format("\\u{:04x}", c);
    i += length;
  }
  return out;
}

class RasterCanvas : public PlotCanvas {
 public:
  explicit RasterCanvas(PlotSize size) {
    picture_.width = static_cast<std::uint32_t>(std::lround(size.width * kScale));
    picture_.height = static_cast<std::uint32_t>(std::lround(size.height * kScale));
    picture_.bytes.assign(std::size_t{picture_.width} * picture_.height * 3, 0xFF);
  }

  void polyline(std::span<const PlotPoint> points, const Stroke& stroke) override {
    double travelled = 0;  // dashes go on across the corners
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      travelled = segment(points[i], points[i + 1], stroke, travelled);
    }
  }

  void rectangle(PlotPoint corner, double width, double height, Colour fill) override {
    const auto [left, top] = scaled(corner);
    for (int y = static_cast<int>(top); y < static_cast<int>(top + height * kScale); ++y) {
      for (int x = static_cast<int>(left); x < static_cast<int>(left + width * kScale); ++x) blend(x, y, fill, 1);
    }
  }

  void marker(PlotPoint at, Marker shape, Colour colour) override {
    const Stroke pen{colour, 1.8, 0};
    if (shape == Marker::kDot) {
      segment(at, {at.x + 0.01, at.y}, {colour, 5, 0}, 0);
    } else if (shape == Marker::kCross) {
      segment({at.x - 4, at.y - 4}, {at.x + 4, at.y + 4}, pen, 0);
      segment({at.x - 4, at.y + 4}, {at.x + 4, at.y - 4}, pen, 0);
    } else {
      const double tip = shape == Marker::kUp ? -4 : 4;
      for (double y = 0; y <= 8; y += 0.5) {
        const double half = shape == Marker::kUp ? y / 2 : (8 - y) / 2;
        segment({at.x - half, at.y + y - 4}, {at.x + half, at.y + y - 4}, {colour, 1, 0}, 0);
      }
      segment({at.x, at.y + tip}, {at.x, at.y}, pen, 0);
    }
  }

  void text(PlotPoint at, std::string_view text, Anchor anchor, Colour colour) override {
    const std::string letters = ascii_of(text);
    const int width = static_cast<int>(letters.size()) * kGlyphAdvance * kDotPixels;
    const auto [x, y] = scaled(at);
    int left = static_cast<int>(x);
    if (anchor == Anchor::kMiddle) left -= width / 2;
    if (anchor == Anchor::kEnd) left -= width;
    const int top = static_cast<int>(y) - (kGlyphHeight - 1) * kDotPixels;
    for (const char c : letters) {
      glyph(c, left, top, colour);
      left += kGlyphAdvance * kDotPixels;
    }
  }

  const tools::Picture& picture() const noexcept { return picture_; }

 private:
  static PlotPoint scaled(PlotPoint point) { return {point.x * kScale, point.y * kScale}; }

  void glyph(char c, int left, int top, Colour colour) {
    for (int y = 0; y < kGlyphHeight * kDotPixels; ++y) {
      for (int x = 0; x < kGlyphWidth * kDotPixels; ++x) {
        if (glyph_dot(c, x / kDotPixels, y / kDotPixels)) blend(left + x, top + y, colour, 1);
      }
    }
  }

  // A pixel is covered as far as it lies within half the width of the line. Returns the length travelled so far.
  double segment(PlotPoint from, PlotPoint to, const Stroke& stroke, double travelled) {
    const PlotPoint a = scaled(from);
    const PlotPoint b = scaled(to);
    const double half = stroke.width * kScale / 2;
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    const int left = clamp_x(std::min(a.x, b.x) - half - 1);
    const int right = clamp_x(std::max(a.x, b.x) + half + 1);
    const int top = clamp_y(std::min(a.y, b.y) - half - 1);
    const int bottom = clamp_y(std::max(a.y, b.y) + half + 1);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const double px = x + 0.5 - a.x;
        const double py = y + 0.5 - a.y;
        const double along = length == 0 ? 0 : std::clamp((px * (b.x - a.x) + py * (b.y - a.y)) / length, 0.0, length);
        if (is_gap(stroke, travelled + along)) continue;
        const double t = length == 0 ? 0 : along / length;
        const double distance = std::hypot(px - t * (b.x - a.x), py - t * (b.y - a.y));
        blend(x, y, stroke.colour, std::clamp(half + 0.5 - distance, 0.0, 1.0));
      }
    }
    return travelled + length;
  }
  static bool is_gap(const Stroke& stroke, double travelled) {
    return stroke.dash > 0 && std::fmod(travelled / (stroke.dash * kScale), 2) >= 1;
  }
  int clamp_x(double x) const { return static_cast<int>(std::clamp(x, 0.0, picture_.width - 1.0)); }
  int clamp_y(double y) const { return static_cast<int>(std::clamp(y, 0.0, picture_.height - 1.0)); }

  void blend(int x, int y, Colour colour, double cover) {
    if (cover <= 0 || x < 0 || y < 0 || x >= static_cast<int>(picture_.width) ||
        y >= static_cast<int>(picture_.height)) {
      return;
    }
    std::uint8_t* pixel =
        &picture_.bytes[(static_cast<std::size_t>(y) * picture_.width + static_cast<std::size_t>(x)) * 3];
    const auto mix = [cover](std::uint8_t under, std::uint8_t over) {
      return static_cast<std::uint8_t>(std::lround(under + (over - under) * cover));
    };
    pixel[0] = mix(pixel[0], colour.red);
    pixel[1] = mix(pixel[1], colour.green);
    pixel[2] = mix(pixel[2], colour.blue);
  }

  tools::Picture picture_;
};

}  // namespace

std::string png_of(const Plot& plot) {
  RasterCanvas canvas(size_of(plot));
  draw(plot, &canvas);
  return tools::encode_png(canvas.picture());
}

}  // namespace tornasole::cli
