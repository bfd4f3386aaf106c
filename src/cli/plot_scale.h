#pragma once

// The scale of an axis: which numbers it shows, where they lie, which of them get a label.

#include <optional>
#include <string>
#include <vector>

namespace tornasole::cli {

struct PlotPoint {
  double x = 0, y = 0;
};

class PlotScale {
 public:
  struct Tick {
    double position = 0;  // 0 at the low end, 1 at the high end
    std::string label;
  };
  struct Wish {
    double low = 0, high = 0;  // finite; low <= high
    bool is_log = false;       // then low > 0
    int ticks = 5;             // about so many
    bool whole_numbers = false;
    bool rounds_out = true;  // the ends move out to labelled numbers
  };
  static PlotScale fit(const Wish& wish);

  // Where a finite number lies; outside 0..1 if it is outside the scale. Nothing for what a log scale cannot show.
  std::optional<double> position(double value) const noexcept;
  const std::vector<Tick>& ticks() const noexcept { return ticks_; }
  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }

 private:
  void fit_linear(const Wish& wish);
  void fit_log(const Wish& wish);
  double low_ = 0, high_ = 1;
  bool is_log_ = false;
  std::vector<Tick> ticks_;
};

// The smallest and largest finite y; with is_log only of positive ones. Nothing if there is none.
struct Extent {
  double low = 0, high = 0;
};
std::optional<Extent> extent_of(const std::vector<PlotPoint>& points, bool is_log);

// At most about `limit` points: of each run of neighbours the first, lowest, highest and last, and every one that is
// not finite, in order. True if points were left out.
bool thin_out(std::vector<PlotPoint>* points, std::size_t limit);

}  // namespace tornasole::cli
